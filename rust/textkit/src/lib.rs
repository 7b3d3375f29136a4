//! Text for Bodega: Hugging Face tokenizers and chat templates behind include/textkit.h.

mod added;
pub mod error;
mod ffi;
mod gguf;
mod grammar;
mod guard;
mod limits;
mod pieces;
mod pre_types;
mod stream;
mod template;
mod tokenizer;
