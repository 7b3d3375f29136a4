//! The one error type of the crate: a kind the C side can branch on and a sentence for people.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// A model file that may not be believed.
    BadFile = 1,
    /// A request that the tokenizer or the template refuses.
    BadRequest = 2,
    /// Our own bug, or a panic of a library.
    Internal = 3,
}

#[derive(Debug)]
pub struct Error {
    pub kind: Kind,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn bad_file(message: impl Into<String>) -> Self {
        Error { kind: Kind::BadFile, message: message.into() }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Error { kind: Kind::BadRequest, message: message.into() }
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Error { kind: Kind::Internal, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
