//! JSON schemas before llguidance sees them, and the place in one that it refuses.

use crate::error::{Error, Result};
use serde_json::{json, Map, Value};

const MAX_DEPTH: usize = 64;
const MAX_NODES: usize = 20_000;

/// Blanks between tokens: one, or a line break with some indentation. A model that may write any number
/// of them writes nothing else.
const BLANKS: &str = r"[ ]|\n[ ]{0,12}";

/// Keywords of JSON Schema that llguidance does not enforce. It refuses them itself; this list finds
/// their place.
const NOT_ENFORCED: [&str; 19] = [
    "$dynamicRef",
    "$recursiveRef",
    "contains",
    "contentSchema",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "disallow",
    "divisibleBy",
    "else",
    "extends",
    "if",
    "maxContains",
    "minContains",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

pub fn prepare(text: &str) -> Result<Value> {
    let refuse = |message: &str| Error::bad_request(format!("\n{message}"));
    let mut schema: Value = serde_json::from_str(text).map_err(|e| refuse(&format!("is not valid JSON: {e}")))?;
    if depth(&schema) > MAX_DEPTH {
        return Err(refuse(&format!("nests more than {MAX_DEPTH} levels")));
    }
    if nodes(&schema) > MAX_NODES {
        return Err(refuse(&format!("has more than {MAX_NODES} values")));
    }
    if let Some(path) = bare_repeat(&schema, "") {
        return Err(Error::bad_request(format!("{path}\nthe repeat sign has nothing to repeat")));
    }
    if may_close(&schema) {
        close(&mut schema);
    }
    match &mut schema {
        Value::Object(object) => {
            object.insert("x-guidance".into(), json!({"whitespace_pattern": BLANKS}));
        }
        Value::Bool(true) => schema = json!({"x-guidance": {"whitespace_pattern": BLANKS}}),
        _ => return Err(refuse("must be an object")),
    }
    Ok(schema)
}

/// Members that hold instances, not schemas.
const INSTANCES: [&str; 4] = ["const", "default", "enum", "examples"];

/// The path of a pattern with a repeat sign and nothing before it.
fn bare_repeat(schema: &Value, path: &str) -> Option<String> {
    let members = match schema {
        Value::Array(items) => {
            return items.iter().enumerate().find_map(|(i, item)| bare_repeat(item, &format!("{path}[{i}]")))
        }
        Value::Object(members) => members,
        _ => return None,
    };
    members.iter().filter(|(key, _)| !INSTANCES.contains(&key.as_str())).find_map(|(key, value)| {
        let here = format!("{path}.{key}");
        let patterns: Vec<&str> = match (key.as_str(), value) {
            ("pattern", Value::String(pattern)) => vec![pattern],
            ("patternProperties", Value::Object(map)) => map.keys().map(String::as_str).collect(),
            _ => vec![],
        };
        if patterns.into_iter().any(repeats_nothing) {
            return Some(here);
        }
        bare_repeat(value, &here)
    })
}

/// A repeat sign at the start of a regular expression, a group or an alternative.
pub fn repeats_nothing(regex: &str) -> bool {
    let bytes = regex.as_bytes();
    let (mut empty, mut at) = (true, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'*' | b'+' | b'?' if empty => return true,
            b'{' if empty && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => return true,
            b'(' => {
                empty = true;
                if bytes.get(at + 1) == Some(&b'?') {
                    at += group_head(&bytes[at + 1..]);
                }
            }
            b'|' | b'^' => empty = true,
            b'[' => {
                at += class_size(&bytes[at..]) - 1;
                empty = false;
            }
            b'\\' => {
                at += 1;
                empty = false;
            }
            _ => empty = false,
        }
        at += 1;
    }
    false
}

/// Bytes of `?:`, `?i:`, `?<name>` and the like.
fn group_head(bytes: &[u8]) -> usize {
    let end = bytes.iter().position(|b| matches!(b, b':' | b'>' | b'=' | b'!' | b')'));
    end.map_or(1, |end| if bytes[end] == b')' { end } else { end + 1 })
}

/// Bytes of a character class; a bracket right after its start is one of its characters.
fn class_size(bytes: &[u8]) -> usize {
    let mut at = 1 + usize::from(bytes.get(1) == Some(&b'^'));
    at += usize::from(bytes.get(at) == Some(&b']'));
    while at < bytes.len() && bytes[at] != b']' {
        at += 1 + usize::from(bytes[at] == b'\\');
    }
    (at + 1).min(bytes.len())
}

/// Whether no schema is merged with another one: then objects can be closed one by one.
fn may_close(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().all(may_close),
        Value::Object(members) => {
            let merges = members.contains_key("allOf")
                || (["$ref", "anyOf", "oneOf"].iter().any(|key| members.contains_key(*key))
                    && ["properties", "required", "$ref"]
                        .iter()
                        .filter(|key| members.contains_key(**key))
                        .count()
                        > usize::from(members.contains_key("$ref")));
            !merges && members.iter().all(|(key, value)| INSTANCES.contains(&key.as_str()) || may_close(value))
        }
        _ => true,
    }
}

/// Objects list their properties in the order of the schema. One that also allows others would let a
/// model begin the name of a property whose turn is over, and never come to its end: where a schema
/// says nothing of others, none are offered.
fn close(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Object(members) => {
            if lists_all(members) {
                members.insert("additionalProperties".into(), json!(false));
            }
            for (key, value) in members.iter_mut() {
                if !INSTANCES.contains(&key.as_str()) {
                    close(value);
                }
            }
        }
        _ => {}
    }
}

/// An object schema that says nothing of properties beside those that it lists.
fn lists_all(schema: &Map<String, Value>) -> bool {
    let Some(Value::Object(properties)) = schema.get("properties") else { return false };
    let required = schema.get("required").and_then(Value::as_array);
    let known = |name: &Value| name.as_str().is_some_and(|name| properties.contains_key(name));
    let silent = ["additionalProperties", "patternProperties", "minProperties"];
    !properties.is_empty()
        && schema.get("type") == Some(&json!("object"))
        && !silent.iter().any(|key| schema.contains_key(*key))
        && required.is_none_or(|names| names.iter().all(known))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
        _ => 1,
    }
}

/// The first keyword, in the order of the schema, that cannot be compiled: its path and why. `compile`
/// says what is wrong with a small schema.
pub fn blame(schema: &Value, compile: &dyn Fn(Value) -> Option<String>) -> Option<(String, String)> {
    blame_at(schema, "", compile)
}

fn blame_at(schema: &Value, path: &str, compile: &dyn Fn(Value) -> Option<String>) -> Option<(String, String)> {
    let object = schema.as_object()?;
    for (keyword, value) in object {
        let here = format!("{path}.{keyword}");
        if let Some(message) = blame_keyword(keyword, value, object, compile) {
            return Some((here, message));
        }
        if let Some(found) = blame_children(keyword, value, &here, compile) {
            return Some(found);
        }
    }
    None
}

fn blame_keyword(
    keyword: &str,
    value: &Value,
    siblings: &Map<String, Value>,
    compile: &dyn Fn(Value) -> Option<String>,
) -> Option<String> {
    match keyword {
        _ if NOT_ENFORCED.contains(&keyword) => Some("this keyword is not enforced".into()),
        "uniqueItems" if value != &json!(false) => Some("this keyword is not enforced".into()),
        "pattern" | "format" => compile(json!({"type": "string", keyword: value})),
        "patternProperties" => {
            let patterns = value.as_object()?;
            patterns.keys().find_map(|p| compile(json!({"type": "string", "pattern": p})))
        }
        "$ref" => match value.as_str() {
            Some(reference) if reference.starts_with('#') => None,
            _ => Some("only references inside the schema (#/...) are followed".into()),
        },
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            let kind = siblings.get("type").cloned().unwrap_or(json!("number"));
            compile(json!({"type": kind, keyword: value}))
        }
        "type" | "const" | "enum" | "required" | "minLength" | "maxLength" | "minItems" | "maxItems"
        | "minProperties" | "maxProperties" => compile(json!({ keyword: value })),
        _ => None,
    }
}

fn blame_children(
    keyword: &str,
    value: &Value,
    here: &str,
    compile: &dyn Fn(Value) -> Option<String>,
) -> Option<(String, String)> {
    match (keyword, value) {
        ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(members)) => {
            members.iter().find_map(|(name, child)| blame_at(child, &format!("{here}.{name}"), compile))
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(list)) => {
            list.iter().enumerate().find_map(|(i, child)| blame_at(child, &format!("{here}[{i}]"), compile))
        }
        ("items" | "additionalItems" | "additionalProperties", Value::Object(_)) => blame_at(value, here, compile),
        _ => None,
    }
}
