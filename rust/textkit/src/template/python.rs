//! Python's string and list methods where templates can tell them from minijinja-contrib's.

use super::operators::bounded_widths;
use minijinja::value::{from_args, Kwargs, Tuple, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
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

pub fn strip<'a>(text: &'a str, chars: Option<&str>, left: bool, right: bool) -> &'a str {
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
    let (separator, limit, options): (Option<&str>, Option<i64>, Kwargs) = from_args(args)?;
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
    let (keep_ends, options): (Option<bool>, Kwargs) = from_args(args)?;
    let keep_ends = options.get::<Option<bool>>("keepends")?.or(keep_ends).unwrap_or(false);
    options.assert_all_used()?;
    Ok(lines_of(text, keep_ends).into_iter().map(Value::from).collect())
}

pub fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

pub fn lines_of(text: &str, keep_ends: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, end) = match rest.find(is_line_end) {
            Some(at) if rest[at..].starts_with("\r\n") => (at, 2),
            Some(at) => (at, rest[at..].chars().next().map_or(0, char::len_utf8)),
            None => (rest.len(), 0),
        };
        lines.push(&rest[..if keep_ends { line + end } else { line }]);
        rest = &rest[line + end..];
    }
    lines
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

pub fn justify(state: &State, text: &str, name: &str, args: &[Value]) -> Result<Value, Error> {
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
