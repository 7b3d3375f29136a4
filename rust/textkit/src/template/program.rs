//! A compiled template whose engine holes are mended and whose names are checked at load.

use super::{operators, space};
use crate::error::{Error, Result};
use minijinja::machinery::{eval, make_string_output, parse, CodeGenerator, Instruction, Instructions};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, ErrorKind, State};
use std::collections::{BTreeMap, HashSet};

const NAME: &str = "chat_template";

pub struct Program {
    // They borrow from the texts below, so they are declared, and dropped, before them.
    instructions: Instructions<'static>,
    blocks: BTreeMap<&'static str, Instructions<'static>>,
    setters: Vec<Setter>,
    _source: Box<str>,
}

/// The filter that `{% set variable.attribute = value %}` becomes.
struct Setter {
    filter: Box<str>,
    variable: String,
    attribute: String,
}

impl Program {
    pub fn compile(source: String, syntax: &SyntaxConfig) -> std::result::Result<Self, minijinja::Error> {
        let source = source.into_boxed_str();
        // SAFETY: `source` is kept beside the instructions and dropped after them.
        let text = unsafe { outlive(&source) };
        let tree = parse(text, NAME, syntax.clone())?;
        let mut generator = CodeGenerator::new(NAME, text);
        generator.compile_stmt(&tree);
        let (mut instructions, mut blocks) = generator.finish();
        let mut setters = Vec::new();
        for part in std::iter::once(&mut instructions).chain(blocks.values_mut()) {
            redirect_operators(part);
            redirect_attributes(part, &mut setters)?;
        }
        Ok(Program { instructions, blocks, setters, _source: source })
    }

    /// Adds the filters that the compiled code calls.
    pub fn equip(&self, environment: &mut Environment) {
        environment.add_filter(SUM, operators::sum);
        environment.add_filter(REMAINDER, operators::remainder);
        for Setter { filter, variable, attribute } in &self.setters {
            let (variable, attribute) = (variable.clone(), attribute.clone());
            let set = move |state: &State, value: Value| space::set(state, &variable, &attribute, value);
            environment.add_filter(filter.to_string(), set);
        }
    }

    pub fn run(
        &self,
        environment: &Environment,
        variables: Value,
    ) -> std::result::Result<String, minijinja::Error> {
        let mut text = String::new();
        let mut out = make_string_output(&mut text);
        eval(environment, &self.instructions, variables, &self.blocks, &mut out, AutoEscape::None)?;
        Ok(text)
    }

    /// Refuses filters, tests and functions that do not exist; the engine would notice only when it
    /// came by.
    pub fn check_names(&self, environment: &Environment, context_functions: &[&str]) -> Result<()> {
        let parts = || std::iter::once(&self.instructions).chain(self.blocks.values());
        let mut known: HashSet<&str> = parts().flat_map(walk).filter_map(|(_, i)| named_value(i)).collect();
        known.extend(context_functions);
        known.extend(environment.globals().map(|(name, _)| name));
        let mut state = environment.empty_state();
        for (part, (index, instruction)) in parts().flat_map(|part| walk(part).map(move |found| (part, found))) {
            if let Some((what, name)) = unknown_name(instruction, &mut state, &known) {
                let line = part.get_line(index).unwrap_or(0);
                return Err(Error::bad_file(format!(
                    "the chat template does not compile: line {line}: unknown {what} {name:?}"
                )));
            }
        }
        Ok(())
    }
}

fn walk<'a>(part: &'a Instructions<'static>) -> impl Iterator<Item = (u32, &'a Instruction<'static>)> {
    (0..).map_while(|index| part.get(index).map(|instruction| (index, instruction)))
}

/// A name that has or may have a value: what it holds is not known here.
fn named_value(instruction: &Instruction<'static>) -> Option<&'static str> {
    match instruction {
        Instruction::StoreLocal(name) | Instruction::Lookup(name) => Some(name),
        _ => None,
    }
}

fn unknown_name(
    instruction: &Instruction<'static>,
    state: &mut State,
    known: &HashSet<&str>,
) -> Option<(&'static str, &'static str)> {
    let lacks =
        |kind, result: std::result::Result<(), minijinja::Error>| matches!(result, Err(e) if e.kind() == kind);
    match instruction {
        Instruction::ApplyFilter(name, ..) => {
            let result = state.apply_filter(name, &[]).map(drop);
            lacks(ErrorKind::UnknownFilter, result).then_some(("filter", *name))
        }
        Instruction::PerformTest(name, ..) => {
            let result = state.perform_test(name, &[]).map(drop);
            lacks(ErrorKind::UnknownTest, result).then_some(("test", *name))
        }
        Instruction::CallFunction(name, ..) => {
            let built_in = ["super", "loop", "caller", "self"].contains(name);
            (!built_in && !known.contains(name)).then_some(("function", *name))
        }
        _ => None,
    }
}

/// # Safety
/// The box neither moves its text nor changes it; the caller keeps it longer than what is returned.
unsafe fn outlive(text: &str) -> &'static str {
    &*std::ptr::from_ref(text)
}

const UNCACHED: u8 = u8::MAX;
/// Filters that operators become; no template can write these names.
const SUM: &str = "+";
const REMAINDER: &str = "%";

/// The engine's `list + list` is lazy and free of charge, so doubling a list forty times asks for all
/// the memory there is; and its `%` does not format strings. Both go through
/// filters of our own.
fn redirect_operators(part: &mut Instructions<'static>) {
    let mut index = 0;
    while let Some(instruction) = part.get_mut(index) {
        let filter = match instruction {
            Instruction::Add => Some(SUM),
            Instruction::Rem => Some(REMAINDER),
            _ => None,
        };
        if let Some(filter) = filter {
            *instruction = Instruction::ApplyFilter(filter, Some(2), UNCACHED);
        }
        index += 1;
    }
}

/// Setting an attribute goes to our own namespaces: [value] [Lookup variable] [SetAttr attribute]
/// becomes [value] [a filter that sets it] [DiscardTop], so that no jump moves.
fn redirect_attributes(
    part: &mut Instructions<'static>,
    setters: &mut Vec<Setter>,
) -> std::result::Result<(), minijinja::Error> {
    let mut index = 0;
    while let Some(instruction) = part.get(index) {
        if let Instruction::SetAttr(attribute) = *instruction {
            let Some(Instruction::Lookup(variable)) = part.get(index.wrapping_sub(1)) else {
                return Err(minijinja::Error::new(
                    ErrorKind::SyntaxError,
                    "only an attribute of a name can be set",
                ));
            };
            let filter = format!("{variable}.{attribute}=").into_boxed_str();
            // SAFETY: the setter is kept beside the instructions and dropped after them.
            let name = unsafe { outlive(&filter) };
            setters.push(Setter { filter, variable: (*variable).to_owned(), attribute: attribute.to_owned() });
            replace(part, index - 1, Instruction::ApplyFilter(name, Some(1), UNCACHED));
            replace(part, index, Instruction::DiscardTop);
        }
        index += 1;
    }
    Ok(())
}

fn replace(part: &mut Instructions<'static>, index: u32, instruction: Instruction<'static>) {
    *part.get_mut(index).expect("an index that was just read") = instruction;
}
