//! A compiled template: what is known of it without running it, and running it.

use super::ast::Program;
use super::lexer::Kind;
use super::machine::Machine;
use super::value::{Changed, Run, Value};
use super::{lexer, parser};
use crate::budget::Budget;
use crate::clock::Now;
use crate::error::{Error, Position};
use crate::json::{Json, Object};
use crate::text::{Origin, Text};

/// The longest template, in bytes: thirty times the longest that is known.
const LONGEST: usize = 1 << 20;

/// A compiled template. It can be shared between threads.
///
/// # Examples
/// ```
/// use ggtok_chat::Template;
///
/// let template = Template::new(b"{% for m in messages %}{{ m.role }}{% endfor %}")?;
/// assert!(template.reads("messages") && !template.reads("tools"));
/// # Ok::<(), ggtok_chat::Error>(())
/// ```
#[derive(Debug)]
pub struct Template {
    source: Vec<u8>,
    program: Program,
}

impl Template {
    /// Compiles a template. Time and space: O(bytes).
    ///
    /// # Errors
    /// [`Error::Syntax`] if it cannot be read; [`Error::Limit`] if it is longer than a mebibyte.
    pub fn new(source: &[u8]) -> Result<Self, Error> {
        if source.len() > LONGEST {
            return Err(Error::Limit { problem: format!("the template has more than {LONGEST} bytes") });
        }
        let source = lexer::normalized(source);
        let program = parser::program(&source, &lexer::tokens(&source)?)?;
        Ok(Self { source, program })
    }

    /// The template, with `\n` for every line end and without the last one. Positions in errors are those of this text.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// Whether a text stands somewhere in its source.
    pub(crate) fn contains(&self, text: impl AsRef<[u8]>) -> bool {
        memchr::memmem::find(&self.source, text.as_ref()).is_some()
    }

    /// Whether a text is one of its string constants.
    pub fn has_constant(&self, text: &[u8]) -> bool {
        self.program.strings.iter().any(|string| string == text)
    }

    /// Its text outside of blocks and its string constants, in the order of the source, and whether each is a constant.
    ///
    /// # Examples
    /// ```
    /// let template = ggtok_chat::Template::new(b"<|a|>{# <|b|> #}{{ '<|c|>' ~ x }}")?;
    /// let literals: Vec<_> = template.literals().collect();
    /// assert_eq!(literals, [(b"<|a|>".to_vec(), false), (b"<|c|>".to_vec(), true)]);
    /// # Ok::<(), ggtok_chat::Error>(())
    /// ```
    pub fn literals(&self) -> impl Iterator<Item = (Vec<u8>, bool)> {
        let tokens = lexer::tokens(&self.source).unwrap_or_default().into_iter();
        let literals = tokens.filter(|token| matches!(token.kind, Kind::Text | Kind::String));
        literals.map(|token| (token.value, token.kind == Kind::String))
    }

    /// Whether it reads a variable of this name.
    pub fn reads(&self, variable: &str) -> bool {
        self.program.ids.get(variable.as_bytes()).is_some_and(|id| self.program.names[*id as usize].is_read)
    }

    /// The names of the variables that it reads and does not set itself.
    pub fn variables(&self) -> impl Iterator<Item = &[u8]> {
        self.program.names.iter().filter(|name| name.is_read && !name.is_set).map(|name| name.text.as_slice())
    }

    /// Whether it has a `{% generation %}`.
    pub(crate) fn has_generation(&self) -> bool {
        self.program.has_generation
    }

    /// Filters and tests that llama.cpp does not have. The template fails if it gets there.
    pub fn unknown(&self) -> Vec<(Position, &str)> {
        let unknown = self.program.unknown.iter();
        unknown.map(|(at, problem)| (Position::of(&self.source, *at as usize), problem.as_str())).collect()
    }

    /// Renders it with these variables, without any of llama-server's rules.
    ///
    /// # Errors
    /// [`Error::Template`] or [`Error::Raised`] if it fails; [`Error::Limit`] if it takes too much.
    pub fn render(&self, variables: &Object, now: &Now, budget: &mut Budget) -> Result<Text, Error> {
        let mut value = |json: &Json| Value::from_json(json.clone(), Origin::TEMPLATE, budget);
        let values =
            variables.entries.iter().map(|(name, json)| Ok((name, value(json)?))).collect::<Result<_, Error>>()?;
        self.run(values, now, &mut Changed::default(), budget)
    }

    /// Runs it. Of variables with the same name the last one counts. Values that hold themselves stay as they are as long
    /// as `changed` does.
    pub(crate) fn run(
        &self,
        variables: Vec<(impl AsRef<[u8]>, Value)>,
        now: &Now,
        changed: &mut Changed,
        budget: &mut Budget,
    ) -> Result<Text, Error> {
        let run = Run { now, budget, changed };
        Machine::new(&self.program, &self.source, run).rendered(variables)
    }
}
