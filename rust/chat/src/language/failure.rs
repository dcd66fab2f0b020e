//! What ends an evaluation early: errors, `break` and `continue`.

/// What ends an evaluation early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The template did what it cannot do. Gets its position where the statement is known.
    Failed(String),
    /// The template called `raise_exception`.
    Raised(String),
    /// An error with its position.
    At(crate::Error),
    /// `{% break %}`.
    Break,
    /// `{% continue %}`.
    Continue,
}

/// What evaluating gives.
pub(crate) type Outcome<T> = Result<T, Box<Failure>>;

/// An error without its position.
pub(crate) fn failed<T>(problem: impl Into<String>) -> Outcome<T> {
    Err(Box::new(Failure::Failed(problem.into())))
}
