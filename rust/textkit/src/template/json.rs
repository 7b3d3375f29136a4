//! `tojson` as transformers defines it: Python's json.dumps with ensure_ascii off, no HTML escapes.

use crate::guard::MARK;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
use std::fmt::Write;

const MAX_DEPTH: usize = 256;

struct Writer<'a> {
    out: String,
    state: &'a State<'a, 'a>,
    charged: usize,
    ensure_ascii: bool,
    sort_keys: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
}

/// `value | tojson(ensure_ascii, indent, separators, sort_keys)`
pub fn tojson(state: &State, value: &Value, ensure_ascii: Option<bool>, options: Kwargs) -> Result<Value, Error> {
    let ensure_ascii = options.get::<Option<bool>>("ensure_ascii")?.or(ensure_ascii).unwrap_or(false);
    let indent = indent(options.get::<Option<Value>>("indent")?)?;
    let (item_separator, key_separator) = separators(options.get("separators")?, indent.is_some())?;
    let sort_keys = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    options.assert_all_used()?;
    let mut writer = Writer {
        out: String::new(),
        state,
        charged: 0,
        ensure_ascii,
        sort_keys,
        indent,
        item_separator,
        key_separator,
    };
    writer.value(value, 0)?;
    Ok(Value::from(writer.out))
}

fn indent(value: Option<Value>) -> Result<Option<String>, Error> {
    let Some(value) = value.filter(|v| !v.is_none() && !v.is_undefined()) else { return Ok(None) };
    if let Some(text) = value.as_str() {
        return Ok(Some(text.to_owned()));
    }
    let blanks = i64::try_from(value)?.clamp(0, 64);
    Ok(Some(" ".repeat(blanks as usize)))
}

fn separators(value: Option<Value>, indented: bool) -> Result<(String, String), Error> {
    let Some(value) = value.filter(|v| !v.is_none()) else {
        return Ok((if indented { "," } else { ", " }.to_owned(), ": ".to_owned()));
    };
    let pair: Vec<Value> = value.try_iter()?.checked().collect::<Result<_, _>>()?;
    match pair.as_slice() {
        [item, key] => Ok((item.to_string(), key.to_string())),
        _ => Err(invalid("separators must be a pair")),
    }
}

fn invalid(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("tojson: {message}"))
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(invalid("the value is nested too deeply"));
        }
        self.charge()?;
        match value.kind() {
            ValueKind::None => self.out += "null",
            ValueKind::Bool => self.out += if value.is_true() { "true" } else { "false" },
            ValueKind::Number => self.out += &number(value),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.list(value, depth)?,
            ValueKind::Map => self.object(value, depth)?,
            ValueKind::Undefined => return Err(invalid("the value is undefined")),
            _ => return Err(invalid("the value has no JSON form")),
        }
        Ok(())
    }

    /// Serialising walks the value, which costs more than the bytes that it makes.
    fn charge(&mut self) -> Result<(), Error> {
        let grown = self.out.len() - self.charged;
        self.charged = self.out.len();
        self.state.consume_fuel(1 + (grown / 16) as u64)
    }

    fn list(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut empty = true;
        for item in value.try_iter()?.checked() {
            self.before_item(empty, depth + 1);
            empty = false;
            self.value(&item?, depth + 1)?;
        }
        self.close(empty, depth, ']');
        Ok(())
    }

    fn object(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.checked().collect::<Result<_, _>>()?;
        if self.sort_keys {
            keys.sort();
        }
        self.out.push('{');
        for (index, key) in keys.iter().enumerate() {
            self.before_item(index == 0, depth + 1);
            let name = self.key(key)?;
            self.string(&name);
            self.out += &self.key_separator;
            self.value(&value.get_item(key)?, depth + 1)?;
        }
        self.close(keys.is_empty(), depth, '}');
        Ok(())
    }

    fn key(&self, key: &Value) -> Result<String, Error> {
        match key.kind() {
            ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
            ValueKind::None => Ok("null".to_owned()),
            ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
            ValueKind::Number => Ok(number(key)),
            _ => Err(invalid("a key must be a string, a number, a boolean or none")),
        }
    }

    fn before_item(&mut self, first: bool, depth: usize) {
        if !first {
            self.out += &self.item_separator;
        }
        self.new_line(depth);
    }

    fn close(&mut self, empty: bool, depth: usize, bracket: char) {
        if !empty {
            self.new_line(depth);
        }
        self.out.push(bracket);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            self.out += &indent.repeat(depth);
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out += "\\\"",
                '\\' => self.out += "\\\\",
                '\n' => self.out += "\\n",
                '\r' => self.out += "\\r",
                '\t' => self.out += "\\t",
                '\u{8}' => self.out += "\\b",
                '\u{c}' => self.out += "\\f",
                '\0'..='\u{1f}' => self.escaped(c),
                // The guard's mark must stay a mark.
                '\u{7f}'.. if self.ensure_ascii && c != MARK => self.escaped(c),
                _ => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn escaped(&mut self, c: char) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(self.out, "\\u{unit:04x}");
        }
    }
}

fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float_json)
}

fn float_json(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    float_repr(value)
}

/// Python's repr of a float: the shortest digits that read back, with an exponent outside 1e-4..1e16.
pub fn float_repr(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string().to_lowercase();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.unsigned_abs());
    }
    let plain = value.to_string();
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_like_python() {
        let cases = [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1.5e300, "1.5e+300"),
            (123456789.125, "123456789.125"),
        ];
        for (value, text) in cases {
            assert_eq!(float_repr(value), text);
        }
    }
}
