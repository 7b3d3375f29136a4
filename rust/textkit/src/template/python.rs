//! Python's ways where templates can tell them from the engine's and minijinja-contrib's.

use super::json::float_repr;
use super::operators::bounded_widths;
use minijinja::value::{from_args, Tuple, Value, ValueKind};
use minijinja::{Error, ErrorKind, Output, State};
use minijinja_contrib::pycompat;

pub fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    if value.kind() == ValueKind::Seq && name == "index" {
        return list_index(value, args);
    }
    if value.kind() == ValueKind::String {
        let text = value.as_str().unwrap_or_default();
        if let Some(result) = string_method(state, text, name, args) {
            return result;
        }
    }
    pycompat::unknown_method_callback(state, value, name, args)
}

/// What `{{ value }}` prints.
pub fn print(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
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
pub fn string(value: &Value) -> String {
    as_float(value).map_or_else(|| value.to_string(), float_repr)
}

/// The `trim` filter is `str.strip`, and takes any value.
pub fn trim(value: &Value, chars: Option<&str>) -> String {
    strip(&string(value), chars, true, true).to_owned()
}

/// A number as an integer; what is no number is the default.
pub fn int(value: &Value, default: Option<Value>, base: Option<u32>) -> Value {
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

pub fn float(value: &Value, default: Option<Value>) -> Value {
    let number = match value.kind() {
        ValueKind::String => value.as_str().unwrap_or_default().trim().replace('_', "").parse().ok(),
        ValueKind::Number | ValueKind::Bool => f64::try_from(value.clone()).ok(),
        _ => None,
    };
    number.map(Value::from).or(default).unwrap_or_else(|| Value::from(0.0))
}

/// Runs of letters, digits and underscores.
pub fn word_count(text: &str) -> usize {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).count()
}

/// An undefined value can be iterated and has a length, none cannot and has not.
pub fn is_iterable(value: &Value) -> bool {
    use ValueKind::{Iterable, Map, Seq, String, Undefined};
    matches!(value.kind(), String | Seq | Map | Iterable | Undefined)
}

pub fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Undefined)
}

/// Functions are plain objects, as namespaces are; a macro shows itself only when printed.
pub fn is_callable(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Plain => !super::space::is_namespace(value),
        ValueKind::Map => value.to_string().starts_with("<macro "),
        _ => false,
    }
}

/// MarkupSafe's own entities.
pub fn escape(value: &Value) -> Value {
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

pub fn center(state: &State, value: &Value, width: Option<usize>) -> Result<Value, Error> {
    justify(state, &string(value), "center", &[Value::from(width.unwrap_or(80))])
}

fn string_method(state: &State, text: &str, name: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    Some(match name {
        "strip" | "lstrip" | "rstrip" => strip_method(text, name, args),
        "removeprefix" => {
            from_args(args).map(|(prefix,): (&str,)| text.strip_prefix(prefix).unwrap_or(text).into())
        }
        "removesuffix" => {
            from_args(args).map(|(suffix,): (&str,)| text.strip_suffix(suffix).unwrap_or(text).into())
        }
        "partition" | "rpartition" => partition(text, name == "partition", args),
        "split" | "rsplit" => split(text, name == "split", args),
        "splitlines" => split_lines(text, args),
        "title" => from_args(args).map(|()| title(text).into()),
        "swapcase" => from_args(args).map(|()| swap_case(text).into()),
        "casefold" => from_args(args).map(|()| text.to_lowercase().into()),
        "ljust" | "rjust" | "center" | "zfill" => justify(state, text, name, args),
        "format" => return bounded_widths(text).err().map(Err),
        "index" | "rindex" => index(text, name == "index", args),
        _ => return None,
    })
}

/// Python counts the four separators U+001C to U+001F as blanks, Rust does not.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn strip<'a>(text: &'a str, chars: Option<&str>, left: bool, right: bool) -> &'a str {
    let blank = |c: char| chars.map_or_else(|| is_space(c), |set| set.contains(c));
    let text = if left { text.trim_start_matches(blank) } else { text };
    if right {
        text.trim_end_matches(blank)
    } else {
        text
    }
}

fn strip_method(text: &str, name: &str, args: &[Value]) -> Result<Value, Error> {
    let (chars,): (Option<&str>,) = from_args(args)?;
    Ok(strip(text, chars, name != "rstrip", name != "lstrip").into())
}

fn partition(text: &str, first: bool, args: &[Value]) -> Result<Value, Error> {
    let (separator,): (&str,) = from_args(args)?;
    require_separator(separator)?;
    let cut = if first { text.split_once(separator) } else { text.rsplit_once(separator) };
    let parts = match cut {
        Some((left, right)) => [left, separator, right],
        None if first => [text, "", ""],
        None => ["", "", text],
    };
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}

fn require_separator(separator: &str) -> Result<(), Error> {
    if separator.is_empty() {
        return Err(Error::new(ErrorKind::InvalidOperation, "empty separator"));
    }
    Ok(())
}

fn split(text: &str, from_left: bool, args: &[Value]) -> Result<Value, Error> {
    let (separator, limit, options): (Option<&str>, Option<i64>, minijinja::value::Kwargs) = from_args(args)?;
    let separator = options.get::<Option<&str>>("sep")?.or(separator);
    let limit = options.get::<Option<i64>>("maxsplit")?.or(limit);
    options.assert_all_used()?;
    let pieces = usize::try_from(limit.unwrap_or(-1)).map_or(usize::MAX, |n| n.saturating_add(1));
    let mut parts: Vec<&str> = match separator {
        Some(separator) => {
            require_separator(separator)?;
            match from_left {
                true => text.splitn(pieces, separator).collect(),
                false => text.rsplitn(pieces, separator).collect(),
            }
        }
        None => split_blanks(text, from_left, pieces),
    };
    if !from_left {
        parts.reverse();
    }
    Ok(parts.into_iter().map(Value::from).collect())
}

/// Words; the last piece keeps its inner blanks. From the right the pieces come in reverse order.
fn split_blanks(text: &str, from_left: bool, pieces: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = strip(text, None, from_left, !from_left);
    while !rest.is_empty() {
        let cut = if from_left { rest.find(is_space) } else { rest.rfind(is_space) };
        let Some(at) = cut.filter(|_| parts.len() + 1 < pieces) else {
            parts.push(strip(rest, None, !from_left, from_left));
            break;
        };
        if from_left {
            parts.push(&rest[..at]);
            rest = strip(&rest[at..], None, true, false);
        } else {
            let blank = rest[at..].chars().next().map_or(0, char::len_utf8);
            parts.push(&rest[at + blank..]);
            rest = strip(&rest[..at], None, false, true);
        }
    }
    parts
}

fn split_lines(text: &str, args: &[Value]) -> Result<Value, Error> {
    let (keep_ends, options): (Option<bool>, minijinja::value::Kwargs) = from_args(args)?;
    let keep_ends = options.get::<Option<bool>>("keepends")?.or(keep_ends).unwrap_or(false);
    options.assert_all_used()?;
    let is_end = |c: char| {
        matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, end) = match rest.find(is_end) {
            Some(at) if rest[at..].starts_with("\r\n") => (at, 2),
            Some(at) => (at, rest[at..].chars().next().map_or(0, char::len_utf8)),
            None => (rest.len(), 0),
        };
        lines.push(Value::from(&rest[..if keep_ends { line + end } else { line }]));
        rest = &rest[line + end..];
    }
    Ok(Value::from(lines))
}

fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        inside = c.is_lowercase() || c.is_uppercase();
    }
    out
}

fn swap_case(text: &str) -> String {
    let swap = |c: char| -> String {
        if c.is_uppercase() {
            c.to_lowercase().collect()
        } else {
            c.to_uppercase().collect()
        }
    };
    text.chars().map(swap).collect()
}

fn justify(state: &State, text: &str, name: &str, args: &[Value]) -> Result<Value, Error> {
    let (width, fill): (usize, Option<char>) = from_args(args)?;
    let missing = width.saturating_sub(text.chars().count());
    state.consume_fuel((missing / 16) as u64)?;
    let fill = fill.unwrap_or(' ');
    let run = |fill: char, count: usize| std::iter::repeat_n(fill, count).collect::<String>();
    Ok(Value::from(match name {
        "ljust" => text.to_owned() + &run(fill, missing),
        "rjust" => run(fill, missing) + text,
        "center" => {
            let left = missing / 2 + (missing & width & 1);
            run(fill, left) + text + &run(fill, missing - left)
        }
        _ => {
            let digits = text.trim_start_matches(['+', '-']);
            let sign = if text.len() - digits.len() == 1 { &text[..1] } else { "" };
            sign.to_owned() + &run('0', missing) + &text[sign.len()..]
        }
    }))
}

fn index(text: &str, first: bool, args: &[Value]) -> Result<Value, Error> {
    let (what,): (&str,) = from_args(args)?;
    let found = if first { text.find(what) } else { text.rfind(what) };
    found
        .map(|at| Value::from(text[..at].chars().count()))
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "substring not found"))
}

fn list_index(list: &Value, args: &[Value]) -> Result<Value, Error> {
    let (what,): (&Value,) = from_args(args)?;
    let mut items = list.try_iter()?;
    let found = items.position(|item| item == *what);
    found.map(Value::from).ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "the value is not in the list"))
}
