//! Hugging Face chat templates, byte for byte as `transformers` renders them.

mod clock;
mod filters;
mod json;
mod operators;
mod program;
mod python;
mod source;
mod space;
mod words;

pub use clock::Clock;

use crate::error::{Error, Result};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use program::Program;
use std::fmt::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;
use words::Words;

/// A template is a program from a model file: what it may spend is bounded. One unit pays for an
/// instruction or for 64 bytes of data; long conversations earn more.
const FUEL: u64 = 2_000_000;
const FUEL_PER_CONTEXT_BYTE: u64 = 4;
/// Values nested as deep as the fuel allows are freed recursively, so rendering has its own stack;
/// pages that it does not touch cost nothing.
const STACK_BYTES: usize = 512 << 20;
const MAX_SOURCE_BYTES: usize = 1 << 20;

pub struct ChatTemplate {
    parts: Arc<Parts>,
    /// Fuel bounds nearly all work; what it misses (comparing values that share their parts over and
    /// over) is bounded by time.
    max_time: Duration,
    /// Renders that ran out of time and still run: their threads cannot be stopped, so nothing is
    /// rendered beside them.
    runaways: Arc<AtomicUsize>,
}

struct Parts {
    program: Program,
    environment: Environment<'static>,
    words: Words,
    bos_token: String,
    eos_token: String,
}

impl ChatTemplate {
    pub fn new(source: &str, bos_token: &str, eos_token: &str, max_time: Duration) -> Result<Self> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(Error::bad_file(format!("the chat template is larger than {MAX_SOURCE_BYTES} bytes")));
        }
        let syntax = syntax();
        let source = source::adapted(source, &syntax).map_err(|e| bad_template(&e))?;
        let words = Words::of(&source, &syntax);
        let program = Program::compile(source, &syntax).map_err(|e| bad_template(&e))?;
        let mut environment = environment();
        program.equip(&mut environment);
        program.check_names(&environment, &["strftime_now"])?;
        let parts =
            Parts { program, environment, words, bos_token: bos_token.into(), eos_token: eos_token.into() };
        Ok(ChatTemplate { parts: Arc::new(parts), max_time, runaways: Arc::default() })
    }

    /// `context`: a JSON object of the template's variables.
    pub fn render(&self, context: &str, clock: Clock) -> Result<String> {
        if self.runaways.load(Ordering::Relaxed) > 0 {
            return Err(self.out_of_time());
        }
        // Without a buffer: sending fails exactly when nobody waits any more.
        let (sender, receiver) = std::sync::mpsc::sync_channel(0);
        let (parts, runaways, context) = (self.parts.clone(), self.runaways.clone(), context.to_owned());
        let work = move || {
            let result = catch_unwind(AssertUnwindSafe(|| parts.render(&context, clock)))
                .unwrap_or_else(|_| Err(Error::internal("the chat template engine panicked")));
            if sender.send(result).is_err() {
                runaways.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new()
            .name("chat-template".into())
            .stack_size(STACK_BYTES)
            .spawn(work)
            .map_err(|e| Error::internal(format!("no thread for the chat template: {e}")))?;
        match receiver.recv_timeout(self.max_time) {
            Ok(result) => {
                let _ = thread.join(); // it has nothing left to do
                result
            }
            Err(_) => {
                self.runaways.fetch_add(1, Ordering::Relaxed);
                Err(self.out_of_time())
            }
        }
    }

    fn out_of_time(&self) -> Error {
        Error::bad_request(format!(
            "the chat template cannot render these messages: it ran for more than {} ms",
            self.max_time.as_millis()
        ))
    }

    pub fn mentions(&self, word: &str) -> bool {
        self.parts.words.mention(word)
    }
}

impl Parts {
    fn render(&self, context: &str, clock: Clock) -> Result<String> {
        let variables = self.variables(context, clock)?;
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(FUEL + FUEL_PER_CONTEXT_BYTE * context.len() as u64));
        let result = self.program.run(&environment, variables).map_err(|e| refused(&e));
        space::release();
        result
    }

    /// What transformers always defines, under what the caller sets.
    fn variables(&self, context: &str, clock: Clock) -> Result<Value> {
        let not_an_object = |e: &dyn std::fmt::Display| {
            Error::bad_request(format!("the template's context is not a JSON object: {e}"))
        };
        let context: Value = serde_json::from_str(context).map_err(|e| not_an_object(&e))?;
        let mut variables: Vec<(String, Value)> = Vec::new();
        for (name, token) in [("bos_token", &self.bos_token), ("eos_token", &self.eos_token)] {
            if !token.is_empty() {
                variables.push((name.into(), Value::from(token.as_str())));
            }
        }
        for name in ["tools", "documents"] {
            variables.push((name.into(), Value::from(())));
        }
        let strftime = move |format: &str| clock.strftime(format);
        variables.push(("strftime_now".into(), Value::from_function(strftime)));
        let pairs =
            context.as_object().filter(|_| context.kind() == ValueKind::Map).and_then(|o| o.try_iter_pairs());
        for (key, value) in pairs.ok_or_else(|| not_an_object(&context.kind()))? {
            variables.push((key.to_string(), value));
        }
        Ok(Value::from_pairs(variables))
    }
}

fn syntax() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder.trim_blocks(true).lstrip_blocks(true);
    builder.build().expect("the default delimiters")
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_unknown_method_callback(python::method);
    minijinja_contrib::add_to_environment(&mut environment);
    filters::install(&mut environment);
    environment.add_function("namespace", space::namespace);
    environment.add_function("raise_exception", raise_exception);
    environment
}

/// The template's own refusal, told apart from the engine's errors.
#[derive(Debug)]
struct Raised(String);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raise_exception(message: Rest<Value>) -> std::result::Result<Value, minijinja::Error> {
    let message = message.first().map(ToString::to_string).unwrap_or_default();
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, "raised").with_source(Raised(message)))
}

fn raised(error: &minijinja::Error) -> Option<String> {
    let mut source = Some(error as &(dyn std::error::Error + 'static));
    while let Some(at) = source {
        if let Some(Raised(message)) = at.downcast_ref() {
            return Some(message.clone());
        }
        source = at.source();
    }
    None
}

fn refused(error: &minijinja::Error) -> Error {
    match raised(error) {
        Some(message) => Error::bad_request(format!("the chat template refuses these messages: {message}")),
        None => Error::bad_request(format!("the chat template cannot render these messages: {}", told(error))),
    }
}

fn bad_template(error: &minijinja::Error) -> Error {
    Error::bad_file(format!("the chat template does not compile: {}", told(error)))
}

/// `line 12: syntax error: unexpected end of input`
fn told(error: &minijinja::Error) -> String {
    let mut text = String::new();
    if let Some(line) = error.line() {
        let _ = write!(text, "line {line}: ");
    }
    let _ = write!(text, "{}", error.kind());
    if let Some(detail) = error.detail() {
        let _ = write!(text, ": {detail}");
    }
    text
}
