//! Filters and tests where Jinja2's differ from the engine's or are missing there.

use super::json::float_repr;
use super::python::{is_line_end, justify, lines_of, strip};
use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, Output, State};

pub fn install(environment: &mut Environment) {
    environment.set_formatter(print);
    environment.add_filter("tojson", super::json::tojson);
    environment.add_filter("center", center);
    environment.add_filter("e", escape);
    environment.add_filter("escape", escape);
    environment.add_filter("float", float);
    environment.add_filter("indent", indent);
    environment.add_filter("int", int);
    environment.add_filter("string", string);
    environment.add_filter("trim", trim);
    environment.add_filter("wordcount", word_count);
    environment.add_test("callable", is_callable);
    environment.add_test("iterable", is_iterable);
    environment.add_test("sequence", is_sequence);
}

/// What `{{ value }}` prints.
fn print(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match as_float(value) {
        Some(float) => out.write_str(&float_repr(float)).map_err(Error::from),
        None => minijinja::escape_formatter(out, state, value),
    }
}

fn as_float(value: &Value) -> Option<f64> {
    let is_float = value.kind() == ValueKind::Number && !value.is_integer();
    is_float.then(|| f64::try_from(value.clone()).ok()).flatten()
}

/// Python's `str(value)`.
fn string(value: &Value) -> String {
    as_float(value).map_or_else(|| value.to_string(), float_repr)
}

/// The `trim` filter is `str.strip`, and takes any value.
fn trim(value: &Value, chars: Option<&str>) -> String {
    strip(&string(value), chars, true, true).to_owned()
}

/// A number as an integer; what is no number is the default.
fn int(value: &Value, default: Option<Value>, base: Option<u32>) -> Value {
    let default = || default.unwrap_or_else(|| Value::from(0));
    let truncated = |float: f64| float.is_finite().then(|| Value::from(float.trunc() as i64));
    match value.kind() {
        ValueKind::Bool => Value::from(i64::from(value.is_true())),
        ValueKind::Number if value.is_integer() => value.clone(),
        ValueKind::Number => as_float(value).and_then(truncated).unwrap_or_else(default),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default().trim().replace('_', "");
            let base = base.filter(|base| (2..=36).contains(base)).unwrap_or(10);
            let whole = i128::from_str_radix(&text, base).ok().map(Value::from);
            whole.or_else(|| text.parse().ok().and_then(truncated)).unwrap_or_else(default)
        }
        _ => default(),
    }
}

fn float(value: &Value, default: Option<Value>) -> Value {
    let number = match value.kind() {
        ValueKind::String => value.as_str().unwrap_or_default().trim().replace('_', "").parse().ok(),
        ValueKind::Number | ValueKind::Bool => f64::try_from(value.clone()).ok(),
        _ => None,
    };
    number.map(Value::from).or(default).unwrap_or_else(|| Value::from(0.0))
}

/// Runs of letters, digits and underscores.
fn word_count(text: &str) -> usize {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).count()
}

/// An undefined value can be iterated and has a length, none cannot and has not.
fn is_iterable(value: &Value) -> bool {
    use ValueKind::{Iterable, Map, Seq, String, Undefined};
    matches!(value.kind(), String | Seq | Map | Iterable | Undefined)
}

fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Undefined)
}

/// Functions are plain objects, as namespaces are; a macro shows itself only when printed.
fn is_callable(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Plain => !super::space::is_namespace(value),
        ValueKind::Map => value.to_string().starts_with("<macro "),
        _ => false,
    }
}

/// MarkupSafe's own entities.
fn escape(value: &Value) -> Value {
    if value.is_safe() {
        return value.clone();
    }
    let mut out = String::new();
    for c in string(value).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '\'' => out += "&#39;",
            '"' => out += "&#34;",
            _ => out.push(c),
        }
    }
    Value::from_safe_string(out)
}

fn center(state: &State, value: &Value, width: Option<usize>) -> Result<Value, Error> {
    justify(state, &string(value), "center", &[Value::from(width.unwrap_or(80))])
}

/// All lines but the first are indented, empty ones only when asked.
fn indent(state: &State, value: &Value, args: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let width = named.get::<Option<Value>>("width")?.or(args.first().cloned());
    let flag = |name, at: usize| -> Result<bool, Error> {
        let given = named.get::<Option<bool>>(name)?;
        Ok(given.unwrap_or_else(|| args.get(at).is_some_and(Value::is_true)))
    };
    let (first, blank) = (flag("first", 1)?, flag("blank", 2)?);
    let width = width.unwrap_or_else(|| Value::from(4));
    named.assert_all_used()?;
    let margin = match width.as_str() {
        Some(text) => text.to_owned(),
        None => " ".repeat(usize::try_from(width).unwrap_or(0).min(1024)),
    };
    let text = string(value);
    let lines = lines_of(&text, false);
    state.consume_fuel((margin.len() * lines.len() / 64) as u64)?;
    let ends_open = text.is_empty() || text.ends_with(is_line_end);
    let mut out = String::new();
    for (index, line) in lines.into_iter().chain(ends_open.then_some("")).enumerate() {
        if index > 0 {
            out.push('\n');
        }
        if if index == 0 { first } else { blank || !line.is_empty() } {
            out += &margin;
        }
        out += line;
    }
    Ok(out)
}
