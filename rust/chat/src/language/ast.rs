//! The tree of a template. Names and string constants are numbered, so that the machine keeps both in arrays.

use std::collections::HashMap;

use super::operators::Operator;
use crate::text::Text;

/// The number of a name in [`Program::names`].
pub(crate) type NameId = u32;

/// A compiled template.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) body: Vec<Statement>,
    /// Names of variables, members, filters, tests and keyword arguments.
    pub(crate) names: Vec<Name>,
    /// The numbers of the names.
    pub(crate) ids: HashMap<Vec<u8>, NameId>,
    /// String constants.
    pub(crate) strings: Vec<Vec<u8>>,
    /// Macros, and the bodies of `{% call %}`.
    pub(crate) macros: Vec<Macro>,
    /// The filters and tests that no value has: where each is, and what is said of it.
    pub(crate) unknown: Vec<(u32, String)>,
    /// Whether there is a `{% generation %}`.
    pub(crate) has_generation: bool,
}

/// A name, and how it is used.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) text: Vec<u8>,
    /// Whether it is read as a variable.
    pub(crate) is_read: bool,
    /// Whether it is set as one: by `set`, a loop, a macro or a parameter.
    pub(crate) is_set: bool,
}

/// An expression and the byte where it starts.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) at: u32,
    pub(crate) node: Node,
}

/// What an expression is.
#[derive(Debug)]
pub(crate) enum Node {
    /// The string constant of this number.
    String(usize),
    Int(i64),
    Float(f64),
    Name(NameId),
    Array(Vec<Expression>),
    Tuple(Vec<Expression>),
    Object(Vec<(Expression, Expression)>),
    /// `object.name`
    Member(Box<Expression>, NameId),
    /// `object[key]`, `object.0`
    Item(Box<[Expression; 2]>),
    /// `object[start:stop:step]`
    Slice(Box<[Expression; 4]>),
    Call(Box<Expression>, Vec<Expression>),
    Filter(Box<Expression>, Filter),
    Test(Box<Expression>, Filter),
    Not(Box<Expression>),
    /// `-`, or `+` if it is false.
    Sign(bool, Box<Expression>),
    /// `a + b - c`: the first operand, and operators that bind equally with where they are and their second operand.
    Binary(Box<Expression>, Vec<(Operator, u32, Expression)>),
    /// `value if condition else other`: condition, value and other. `items if condition` is a filter in a loop.
    Ternary(Box<[Expression; 3]>),
    /// `name=value`
    KeywordArgument(NameId, Box<Expression>),
    /// What statements write.
    Captured(Vec<Statement>),
    /// The macro of this number.
    Macro(usize),
    /// `{% call(parameters) callee(arguments) %}`: the number of its body, the callee and the arguments.
    CallBlock(usize, NameId, Vec<Expression>),
    /// What fails if it is reached, and why.
    Invalid(&'static str),
    /// What is left out in `a[]`, `a[1:]` and `a if b`.
    Blank,
}

/// A filter or a test: its name, and arguments if there are parentheses.
pub(crate) type Filter = (NameId, Option<Vec<Expression>>);

/// A statement, or an expression that is written.
#[derive(Debug)]
pub(crate) enum Statement {
    /// Text outside of blocks.
    Text(Text),
    Write(Expression),
    /// Conditions and what each is for, and what is for none.
    If(Vec<(Expression, Vec<Statement>)>, Vec<Statement>),
    For(Box<For>),
    /// `{% set %}`, and `{% macro %}`, whose value is a [`Node::Macro`]: where it is, what is set (a name, a tuple of
    /// them, or a member of an object: anything else fails), and the value.
    Set(u32, Box<[Expression; 2]>),
    Break,
    Continue,
    /// `{% generation %}`, and `{% endgeneration %}` if it is false.
    Generation(bool),
}

#[derive(Debug)]
pub(crate) struct For {
    pub(crate) at: u32,
    /// A name, or a tuple of them. Anything else fails if there are items.
    pub(crate) variable: Expression,
    pub(crate) items: Expression,
    /// The condition of `for x in items if condition`.
    pub(crate) condition: Option<Expression>,
    pub(crate) body: Vec<Statement>,
    pub(crate) otherwise: Vec<Statement>,
}

/// A macro, or the body of a `{% call %}`.
#[derive(Debug)]
pub(crate) struct Macro {
    pub(crate) at: u32,
    /// That of a body is `caller`.
    pub(crate) name: NameId,
    /// Names, and keyword arguments with defaults. Anything else fails.
    pub(crate) parameters: Vec<Expression>,
    pub(crate) body: Vec<Statement>,
}
