//! Makes a tree of tokens: recursive descent, with a loop for operators that bind equally.
//!
//! Source: `common/jinja/parser.cpp` of llama.cpp. As there, much is left to the machine: a template with
//! `{% set 1 = 2 %}` fails only if that statement is reached.
//!
//! Deviations: 1. Nesting is bounded by [`MOST_DEEP`]; llama.cpp's stack overflows. 2. `{% generation %}` is kept.
//!
//! Time and space: O(tokens).

mod expressions;

use super::ast::{Expression, For, Macro, Name, NameId, Node, Program, Statement};
use super::lexer::{Kind, Token};
use crate::error::{Error, Position};
use crate::text::Text;

/// How deep expressions and statements may be nested.
const MOST_DEEP: usize = 100;
/// How many operators, members, calls, tests and filters an expression may have: `a + b + c` is a tree as deep as it is
/// long.
const MOST_OPERATORS: usize = 1000;

/// Compiles a normalized template.
pub(crate) fn program(source: &[u8], tokens: &[Token]) -> Result<Program, Error> {
    let mut parser = Parser { source, tokens, at: 0, depth: 0, operators: 0, program: Program::default() };
    let mut body = Vec::new();
    while parser.at < tokens.len() {
        body.push(parser.statement()?);
    }
    Ok(Program { body, ..parser.program })
}

struct Parser<'s> {
    source: &'s [u8],
    tokens: &'s [Token],
    at: usize,
    depth: usize,
    /// How many operators the current expression has so far.
    operators: usize,
    program: Program,
}

impl<'s> Parser<'s> {
    fn token(&self, ahead: usize) -> Option<&'s Token> {
        self.tokens.get(self.at + ahead)
    }

    fn is_kind(&self, kind: Kind) -> bool {
        self.token(0).is_some_and(|token| token.kind == kind)
    }

    /// Whether this symbol or name comes next.
    fn is(&self, text: &str) -> bool {
        self.is_ahead(0, text)
    }

    fn is_ahead(&self, ahead: usize, text: &str) -> bool {
        let is_text =
            |token: &&Token| matches!(token.kind, Kind::Symbol | Kind::Name) && token.value == text.as_bytes();
        self.token(ahead).as_ref().is_some_and(is_text)
    }

    /// Where the next token is.
    fn place(&self) -> u32 {
        self.token(0).map_or(self.source.len() as u32, |token| token.at)
    }

    fn fail<T>(&self, problem: impl Into<String>) -> Result<T, Error> {
        let position = Position::of(self.source, self.place() as usize);
        Err(Error::Syntax { problem: problem.into(), position })
    }

    fn next(&mut self) -> Result<&'s Token, Error> {
        let token = self.token(0).map_or_else(|| self.fail("the template ends too early"), Ok)?;
        self.at += 1;
        Ok(token)
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Error> {
        if self.takes(symbol) {
            return Ok(());
        }
        match self.token(0) {
            Some(token) => self.fail(format!("expected {symbol}, not '{}'", String::from_utf8_lossy(&token.value))),
            None => self.fail(format!("the template ends where {symbol} is expected")),
        }
    }

    /// Takes the next token if it is this symbol or name.
    fn takes(&mut self, text: &str) -> bool {
        let is = self.is(text);
        self.at += usize::from(is);
        is
    }

    /// Goes one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == MOST_DEEP {
            return self.fail(format!("the template is nested more than {MOST_DEEP} levels deep"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn name(&mut self, text: &[u8]) -> NameId {
        let Program { names, ids, .. } = &mut self.program;
        *ids.entry(text.to_vec()).or_insert_with(|| {
            names.push(Name { text: text.to_vec(), is_read: false, is_set: false });
            names.len() as NameId - 1
        })
    }

    /// Notes that a variable is read.
    fn read(&mut self, id: NameId) {
        self.program.names[id as usize].is_read = true;
    }

    /// Notes that a variable is set, or those of a tuple, or a parameter.
    fn set(&mut self, target: &Expression) {
        match &target.node {
            Node::Name(id) | Node::KeywordArgument(id, _) => self.program.names[*id as usize].is_set = true,
            Node::Tuple(targets) => targets.iter().for_each(|target| self.set(target)),
            _ => {}
        }
    }

    // Statements

    /// A statement, text, or an expression to write.
    fn statement(&mut self) -> Result<Statement, Error> {
        self.operators = 0;
        self.nested(|parser| match parser.token(0) {
            Some(token) if token.kind == Kind::Text => {
                parser.at += 1;
                Ok(Statement::Text(Text::template(token.value.as_slice())))
            }
            Some(_) if parser.takes("{%") => parser.block(),
            Some(_) if parser.takes("{{") => {
                let expression = parser.expression()?;
                parser.expect("}}")?;
                Ok(Statement::Write(expression))
            }
            Some(_) => parser.fail("unexpected token"),
            None => parser.fail("the template ends inside a block"),
        })
    }

    /// Statements up to `{% name`, for one of these names, and that name.
    fn body<'n>(&mut self, ends: &[&'n str]) -> Result<(Vec<Statement>, &'n str), Error> {
        let mut body = Vec::new();
        loop {
            let end = ends.iter().find(|end| self.is("{%") && self.is_ahead(1, end));
            if let Some(end) = end {
                self.at += 2;
                return Ok((body, end));
            }
            body.push(self.statement()?);
        }
    }

    /// Statements up to `{% end %}`.
    fn body_up_to(&mut self, end: &str) -> Result<Vec<Statement>, Error> {
        let (body, _) = self.body(&[end])?;
        self.expect("%}")?;
        Ok(body)
    }

    fn block(&mut self) -> Result<Statement, Error> {
        let at = self.place();
        if !self.is_kind(Kind::Name) {
            return self.fail("unknown statement");
        }
        let name = &self.next()?.value;
        match name.as_slice() {
            b"if" => self.if_block(),
            b"for" => self.for_block(at),
            b"set" => self.set_block(at),
            b"macro" => self.macro_block(at),
            b"call" => self.call_block(at),
            b"filter" => {
                let filter = self.called()?;
                self.expect("%}")?;
                let body = Expression { at, node: Node::Captured(self.body_up_to("endfilter")?) };
                Ok(Statement::Write(Expression { at, node: self.filter(body, filter) }))
            }
            b"break" => self.expect("%}").map(|()| Statement::Break),
            b"continue" => self.expect("%}").map(|()| Statement::Continue),
            b"generation" | b"endgeneration" => {
                // llama.cpp skips a token without looking at it.
                self.at += 1;
                self.program.has_generation = true;
                Ok(Statement::Generation(name == b"generation"))
            }
            _ => {
                self.at -= 1;
                self.fail(format!("unknown statement '{}'", String::from_utf8_lossy(name)))
            }
        }
    }

    fn if_block(&mut self) -> Result<Statement, Error> {
        let mut branches = Vec::new();
        loop {
            self.operators = 0;
            let condition = self.expression()?;
            self.expect("%}")?;
            let (body, end) = self.body(&["elif", "else", "endif"])?;
            branches.push((condition, body));
            if end != "elif" {
                return Ok(Statement::If(branches, self.otherwise(end, "endif")?));
            }
        }
    }

    /// What is between `{% else`, if that is what a body ends with, and the end of the block.
    fn otherwise(&mut self, body_end: &str, end: &str) -> Result<Vec<Statement>, Error> {
        self.expect("%}")?;
        if body_end == "else" { self.body_up_to(end) } else { Ok(Vec::new()) }
    }

    fn for_block(&mut self, at: u32) -> Result<Statement, Error> {
        let variable = self.sequence(Self::primary)?;
        self.set(&variable);
        if !self.takes("in") {
            return self.fail("expected 'in'");
        }
        let items = self.expression()?;
        let (items, condition) = match items.node {
            Node::Ternary(parts) if matches!(parts[2].node, Node::Blank) => {
                let [condition, items, _] = *parts;
                (items, Some(condition))
            }
            _ => (items, None),
        };
        self.expect("%}")?;
        let (body, end) = self.body(&["endfor", "else"])?;
        let otherwise = self.otherwise(end, "endfor")?;
        Ok(Statement::For(Box::new(For { at, variable, items, condition, body, otherwise })))
    }

    fn set_block(&mut self, at: u32) -> Result<Statement, Error> {
        let target = self.sequence(Self::expression)?;
        self.set(&target);
        let value = if self.takes("=") {
            self.sequence(Self::expression)?
        } else {
            self.expect("%}")?;
            Expression { at, node: Node::Captured(self.body(&["endset"])?.0) }
        };
        self.expect("%}")?;
        Ok(Statement::Set(at, Box::new([target, value])))
    }

    fn macro_block(&mut self, at: u32) -> Result<Statement, Error> {
        let target = self.primary()?;
        self.set(&target);
        let parameters = self.parameters()?;
        self.expect("%}")?;
        let body = self.body_up_to("endmacro")?;
        let node = match target.node {
            Node::Name(name) => {
                self.program.macros.push(Macro { at, name, parameters, body });
                Node::Macro(self.program.macros.len() - 1)
            }
            _ => Node::Invalid("the name of a macro must be a name"),
        };
        Ok(Statement::Set(at, Box::new([target, Expression { at, node }])))
    }

    fn call_block(&mut self, at: u32) -> Result<Statement, Error> {
        let parameters = if self.is("(") { self.parameters()? } else { Vec::new() };
        let Node::Name(callee) = self.primary()?.node else {
            return self.fail("expected the name of a macro");
        };
        self.read(callee);
        let name = self.name(b"caller");
        self.program.names[name as usize].is_set = true;
        let arguments = self.arguments()?;
        self.expect("%}")?;
        let body = self.body_up_to("endcall")?;
        self.program.macros.push(Macro { at, name, parameters, body });
        let node = Node::CallBlock(self.program.macros.len() - 1, callee, arguments);
        Ok(Statement::Write(Expression { at, node }))
    }

    fn parameters(&mut self) -> Result<Vec<Expression>, Error> {
        let parameters = self.arguments()?;
        parameters.iter().for_each(|parameter| self.set(parameter));
        Ok(parameters)
    }
}
