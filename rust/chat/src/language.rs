//! llama.cpp's template language, `common/jinja`: a lexer, a parser, and a machine that walks the tree.
//!
//! Read in this order: [`lexer`], `ast`, `parser`, `value`, `machine`, and then what values can do: `operators`,
//! `functions`, `methods` (with a file for each type that has some), `show`.

mod ast;
mod failure;
mod from_json;
mod functions;
mod lexer;
mod machine;
mod methods;
mod numbers;
mod operators;
mod parser;
mod show;
mod template;
#[cfg(test)]
mod tests;
mod value;

pub use template::Template;
pub(crate) use value::{Changed, Value, mark};
