//! Why a conversation was not rendered.

use std::fmt;

/// Where in a template something is: lines and columns count from 1, columns in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The byte in it.
    pub column: usize,
}

impl Position {
    /// Where byte `at` of a template is.
    pub fn of(source: &[u8], at: usize) -> Self {
        let before = &source[..at.min(source.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
        Self { line: 1 + memchr::memchr_iter(b'\n', before).count(), column: 1 + before.len() - line_start }
    }
}

/// Why a conversation was not rendered, and whose fault it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The template cannot be read.
    Syntax {
        /// What is wrong.
        problem: String,
        /// Where.
        position: Position,
    },
    /// The template failed while it ran.
    Template {
        /// What is wrong.
        problem: String,
        /// Where.
        position: Position,
    },
    /// The template itself refused the conversation, with `raise_exception`.
    Raised {
        /// What the template says.
        problem: String,
        /// Where.
        position: Position,
    },
    /// llama-server would refuse the request.
    Request {
        /// The field at fault, such as `messages[0].content[1]`, or nothing if it is the request as a whole.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The text cannot be encoded.
    Encode(ggtok_core::EncodeError),
    /// The vocabulary itself reads a token in a string of the caller.
    Control {
        /// The token's text.
        token: String,
        /// Its id.
        id: ggtok_core::TokenId,
        /// The byte of the rendered text where it is.
        at: usize,
    },
    /// It cannot be known what of a message the model would write.
    Mask {
        /// The message.
        message: usize,
    },
    /// It would take more work or memory than a call may.
    Limit {
        /// Of what there would be too much.
        problem: String,
    },
}

impl Error {
    /// What is wrong with the template, to be said after its name, and where; `None` if something else is wrong.
    pub fn of_template(&self) -> Option<(String, Option<Position>)> {
        Some(match self {
            Self::Syntax { problem, position } => (format!("it has a syntax error: {problem}"), Some(*position)),
            Self::Template { problem, position } => (problem.clone(), Some(*position)),
            Self::Raised { problem, position } => (format!("it refuses these messages: {problem}"), Some(*position)),
            Self::Mask { .. } | Self::Limit { .. } => (self.to_string(), None),
            Self::Request { .. } | Self::Encode(_) | Self::Control { .. } => return None,
        })
    }

    /// An error about a field of the request.
    pub fn request(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Request { field: field.into(), problem: problem.into() }
    }

    /// The same error, where what was read is itself a field of something.
    pub(crate) fn inside(mut self, outer: &str) -> Self {
        if let Self::Request { field, .. } = &mut self {
            let dot = if field.is_empty() || field.starts_with('[') { "" } else { "." };
            *field = format!("{outer}{dot}{field}");
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { problem, position }
            | Self::Template { problem, position }
            | Self::Raised { problem, position } => {
                write!(f, "line {}, column {}: {problem}", position.line, position.column)
            }
            Self::Request { field, problem } if field.is_empty() => f.write_str(problem),
            Self::Request { field, problem } => write!(f, "{field}: {problem}"),
            Self::Limit { problem } => f.write_str(problem),
            Self::Encode(error) => error.fmt(f),
            Self::Control { token, id, at } => write!(
                f,
                "this vocabulary reads the token {token:?} (id {id}) in every text, so no message may contain it: it does \
                 at byte {at}"
            ),
            Self::Mask { message } => {
                write!(f, "it is unknown which part of messages[{message}] the model would write")
            }
        }
    }
}

impl std::error::Error for Error {}
