//! The operators that program.rs takes out of the engine's hands.

use minijinja::formatting::{format, FormatStyle};
use minijinja::value::Value;
use minijinja::{context, Environment, Error, ErrorKind, Expression, State};
use std::sync::LazyLock;

const MAX_LIST: usize = 1 << 20;

pub fn sum(state: &State, left: &Value, right: &Value) -> Result<Value, Error> {
    if let (Some(left), Some(right)) = (left.as_str(), right.as_str()) {
        return Ok(Value::from([left, right].concat()));
    }
    if left.as_object().is_some() && right.as_object().is_some() {
        let length = left.len().unwrap_or(0).saturating_add(right.len().unwrap_or(0));
        if length > MAX_LIST {
            return Err(Error::from(ErrorKind::OutOfFuel));
        }
        state.consume_fuel(1 + (length / 64) as u64)?;
    }
    static PLUS: LazyLock<Expression<'static, 'static>> = LazyLock::new(|| expression("left + right"));
    PLUS.eval(context! { left, right })
}

/// A string on the left is a format, as in Python.
pub fn remainder(left: &Value, right: &Value) -> Result<Value, Error> {
    if let Some(text) = left.as_str() {
        bounded_widths(text)?;
        let args = match right.is_tuple() {
            true => right.try_iter()?.checked().collect::<Result<Vec<_>, _>>()?,
            false => vec![right.clone()],
        };
        return format(FormatStyle::Printf, text, &args).map(Value::from);
    }
    static REMAINDER: LazyLock<Expression<'static, 'static>> = LazyLock::new(|| expression("left % right"));
    REMAINDER.eval(context! { left, right })
}

/// Refuses formats that pad to more than 9999 characters, or to a width given beside.
pub fn bounded_widths(format: &str) -> Result<(), Error> {
    let mut digits = 0;
    for c in format.chars() {
        digits = if c.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > 4 {
            return Err(Error::from(ErrorKind::OutOfFuel));
        }
    }
    Ok(())
}

fn expression(source: &'static str) -> Expression<'static, 'static> {
    static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(Environment::empty);
    ENVIRONMENT.compile_expression(source).expect("a valid expression")
}
