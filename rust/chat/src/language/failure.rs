//! What ends an evaluation early: errors, `break` and `continue`.

use ggtok_core::internals::Inconsistent;

/// What ends an evaluation early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The template did what it cannot do. Gets its position where the statement is known.
    Failed(String),
    /// The template called `raise_exception`.
    Raised(String),
    /// An error with its position.
    At(crate::Error),
    /// `break`, which ends the loop.
    Break,
    /// `continue`, which ends the turn of the loop.
    Continue,
}

impl From<crate::Error> for Box<Failure> {
    fn from(error: crate::Error) -> Self {
        Self::new(Failure::At(error))
    }
}

impl From<Inconsistent> for Box<Failure> {
    fn from(_: Inconsistent) -> Self {
        Self::new(Failure::Failed("these values have no consistent order".to_owned()))
    }
}

/// What evaluating gives.
pub(crate) type Outcome<T> = Result<T, Box<Failure>>;

/// An error without its position.
pub(crate) fn failed<T>(problem: impl Into<String>) -> Outcome<T> {
    Err(Box::new(Failure::Failed(problem.into())))
}
