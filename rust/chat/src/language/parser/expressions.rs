//! Expressions, by how closely their operators bind.

use super::super::ast::{Expression, Filter, NameId, Node};
use super::super::lexer::Kind;
use super::super::operators::{LEVELS, Operator, joins};
use super::super::{functions, methods, numbers};
use super::{MOST_OPERATORS, Parser};
use crate::error::Error;

/// Where `or` and `not` are in [`LEVELS`].
const OR: usize = 0;
const NOT: usize = 2;

/// Short names of filters, and what each stands for.
const FULL_NAMES: [(&str, &str); 4] = [("count", "length"), ("d", "default"), ("e", "escape"), ("trim", "strip")];

impl Parser<'_> {
    /// One expression, or a tuple of several with commas between them.
    pub(super) fn sequence(&mut self, item: fn(&mut Self) -> Result<Expression, Error>) -> Result<Expression, Error> {
        let at = self.place();
        let first = item(self)?;
        if !self.is(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.takes(",") {
            items.push(item(self)?);
        }
        Ok(Expression { at, node: Node::Tuple(items) })
    }

    pub(super) fn expression(&mut self) -> Result<Expression, Error> {
        self.nested(|parser| {
            let value = parser.operators(OR)?;
            let at = parser.place();
            if !parser.takes("if") {
                return Ok(value);
            }
            let condition = parser.operators(OR)?;
            let other = if parser.takes("else") { parser.expression()? } else { Expression { at, node: Node::Blank } };
            Ok(Expression { at, node: Node::Ternary(Box::new([condition, value, other])) })
        })
    }

    /// Operators of a level and of tighter ones. Membership binds like comparison.
    fn operators(&mut self, level: usize) -> Result<Expression, Error> {
        if level == NOT {
            let at = self.place();
            if !self.takes("not") {
                return self.operators(NOT + 1);
            }
            let operand = self.nested(|parser| parser.operators(NOT))?;
            return Ok(Expression { at, node: Node::Not(Box::new(operand)) });
        }
        if level == LEVELS.len() {
            return self.test();
        }
        let first = self.operators(level + 1)?;
        let mut at = first.at;
        let mut rest = Vec::new();
        while let Some(operator) = self.operator(level) {
            at = self.place();
            self.at += if operator == "not in" { 2 } else { 1 };
            self.count_operator()?;
            let operand = self.operators(level + 1)?;
            rest.push((operator, if joins(operator) { operand.at } else { at }, operand));
        }
        if rest.is_empty() { Ok(first) } else { Ok(Expression { at, node: Node::Binary(Box::new(first), rest) }) }
    }

    /// The operator of a level that comes next.
    fn operator(&self, level: usize) -> Option<Operator> {
        let token = self.token(0)?;
        let symbol: &[u8] = match token.kind {
            Kind::Name if token.value == b"not" && self.is_ahead(1, "in") => b"not in",
            Kind::Name | Kind::Symbol => &token.value,
            _ => return None,
        };
        LEVELS[level].iter().copied().find(|operator| operator.as_bytes() == symbol)
    }

    fn count_operator(&mut self) -> Result<(), Error> {
        self.operators += 1;
        if self.operators > MOST_OPERATORS {
            return self.fail(format!("an expression has more than {MOST_OPERATORS} operators"));
        }
        Ok(())
    }

    fn test(&mut self) -> Result<Expression, Error> {
        let mut operand = self.filters()?;
        loop {
            let at = self.place();
            if !self.takes("is") {
                return Ok(operand);
            }
            self.count_operator()?;
            let is_negated = self.takes("not");
            let mut test = self.called()?;
            if !matches!(test.node, Node::Call(..)) && self.begins_argument() {
                let at = self.place();
                let argument = self.unary()?;
                test = Expression { at, node: Node::Call(Box::new(test), vec![argument]) };
            }
            let node = match named(test) {
                Some(test) => {
                    self.note_unknown(at, "test", test.0, |name| functions::test(name).is_some());
                    Node::Test(Box::new(operand), test)
                }
                None => Node::Invalid("this cannot be a test"),
            };
            operand = Expression { at, node };
            if is_negated {
                operand = Expression { at, node: Node::Not(Box::new(operand)) };
            }
        }
    }

    /// Whether what comes next is the argument of a test without parentheses, as in `x is divisibleby 3`.
    fn begins_argument(&self) -> bool {
        match self.token(0).map(|token| token.kind) {
            Some(Kind::Number | Kind::String) => true,
            Some(Kind::Symbol) => self.is("{") || self.is("["),
            Some(Kind::Name) => !["and", "or", "else"].iter().any(|name| self.is(name)),
            _ => false,
        }
    }

    fn note_unknown(&mut self, at: u32, what: &str, id: NameId, is_known: fn(&[u8]) -> bool) {
        let name = &self.program.names[id as usize].text;
        if !is_known(name) {
            let name = String::from_utf8_lossy(name);
            self.program.unknown.push((at, format!("llama.cpp has no {what} '{name}'")));
        }
    }

    fn filters(&mut self) -> Result<Expression, Error> {
        let mut operand = self.unary()?;
        loop {
            let at = self.place();
            if !self.takes("|") {
                return Ok(operand);
            }
            self.count_operator()?;
            let filter = self.called()?;
            operand = Expression { at, node: self.filter(operand, filter) };
        }
    }

    /// What was parsed as an expression, as a filter under its full name.
    pub(super) fn filter(&mut self, operand: Expression, filter: Expression) -> Node {
        let at = filter.at;
        let Some((id, arguments)) = named(filter) else { return Node::Invalid("this cannot be a filter") };
        let name = &self.program.names[id as usize].text;
        let full = FULL_NAMES.iter().find(|(short, _)| short.as_bytes() == name);
        let id = full.map_or(id, |(_, full)| self.name(full.as_bytes()));
        self.note_unknown(at, "filter", id, methods::is_known);
        Node::Filter(Box::new(operand), (id, arguments))
    }

    fn unary(&mut self) -> Result<Expression, Error> {
        let at = self.place();
        if !self.is_kind(Kind::Unary) {
            let primary = self.primary()?;
            if let Node::Name(id) = primary.node {
                self.read(id);
            }
            return self.members(primary);
        }
        let is_negative = self.next()?.value == b"-";
        let operand = Box::new(self.nested(Self::unary)?);
        Ok(Expression { at, node: Node::Sign(is_negative, operand) })
    }

    /// Members and calls after a value.
    fn members(&mut self, mut object: Expression) -> Result<Expression, Error> {
        loop {
            let mut at = self.place();
            let node = if self.takes(".") {
                let item = |object, node| Node::Item(Box::new([object, Expression { at, node }]));
                match self.primary()?.node {
                    Node::Name(id) => Node::Member(Box::new(object), id),
                    index @ Node::Int(0..) => item(object, index),
                    Node::Int(_) => item(object, Node::Invalid("a member cannot be a negative number")),
                    _ => item(object, Node::Invalid("a member must be a name")),
                }
            } else if self.takes("[") {
                self.subscript(object)?
            } else if self.is("(") {
                // A method fails where its name is.
                if let Node::Member(..) = object.node {
                    at = object.at;
                }
                Node::Call(Box::new(object), self.arguments()?)
            } else {
                return Ok(object);
            };
            self.count_operator()?;
            object = Expression { at, node };
        }
    }

    /// The name of a filter or a test, or a call of it and what follows that.
    pub(super) fn called(&mut self) -> Result<Expression, Error> {
        let callee = self.primary()?;
        if !self.is("(") {
            return Ok(callee);
        }
        let at = callee.at;
        let arguments = self.arguments()?;
        self.members(Expression { at, node: Node::Call(Box::new(callee), arguments) })
    }

    /// What is between brackets, up to the end: an expression, a slice, or nothing.
    fn subscript(&mut self, object: Expression) -> Result<Node, Error> {
        let at = self.place();
        let blank = || Expression { at, node: Node::Blank };
        let mut parts = Vec::new();
        let mut is_slice = false;
        while !self.takes("]") {
            parts.push(if self.is(":") { blank() } else { self.expression()? });
            is_slice |= self.takes(":");
        }
        let mut parts = parts.into_iter();
        let mut part = || parts.next().unwrap_or_else(blank);
        if is_slice {
            return Ok(Node::Slice(Box::new([object, part(), part(), part()])));
        }
        Ok(Node::Item(Box::new([object, part()])))
    }

    /// Arguments in parentheses.
    pub(super) fn arguments(&mut self) -> Result<Vec<Expression>, Error> {
        self.expect("(")?;
        self.items(")", |parser| {
            let at = parser.place();
            if parser.takes("*") {
                parser.expression()?;
                return Ok(Expression { at, node: Node::Invalid("llama.cpp cannot unpack arguments") });
            }
            let is_keyword = parser.is_kind(Kind::Name) && parser.is_ahead(1, "=") && !parser.is("not");
            let argument = if is_keyword { parser.primary()? } else { parser.expression()? };
            let at = parser.place();
            if !parser.takes("=") {
                return Ok(argument);
            }
            let value = Box::new(parser.expression()?);
            let node = match argument.node {
                Node::Name(id) => Node::KeywordArgument(id, value),
                _ => Node::Invalid("the key of a keyword argument must be a name"),
            };
            Ok(Expression { at, node })
        })
    }

    pub(super) fn primary(&mut self) -> Result<Expression, Error> {
        let at = self.place();
        let token = self.next()?;
        let node = match (token.kind, token.value.as_slice()) {
            (Kind::Number, digits) => number(digits).map_or_else(|| self.fail("a number is too large"), Ok)?,
            (Kind::String, _) => {
                let mut value = token.value.clone();
                while self.is_kind(Kind::String) {
                    value.extend_from_slice(&self.next()?.value);
                }
                self.program.strings.push(value);
                Node::String(self.program.strings.len() - 1)
            }
            (Kind::Name, name) => Node::Name(self.name(name)),
            (Kind::Symbol, b"(") => {
                let inner = self.sequence(Self::expression)?;
                self.expect(")")?;
                return Ok(inner);
            }
            (Kind::Symbol, b"[") => Node::Array(self.items("]", Self::expression)?),
            (Kind::Symbol, b"{") => Node::Object(self.items("}", |parser| {
                let key = parser.expression()?;
                parser.expect(":")?;
                Ok((key, parser.expression()?))
            })?),
            (_, value) => {
                return self.fail(format!("unexpected token before this: '{}'", String::from_utf8_lossy(value)));
            }
        };
        Ok(Expression { at, node })
    }

    /// Items up to a symbol. Commas may be left out.
    fn items<T>(&mut self, end: &str, item: fn(&mut Self) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        while !self.takes(end) {
            items.push(item(self)?);
            self.takes(",");
        }
        Ok(items)
    }
}

/// A name, or the call of one.
fn named(expression: Expression) -> Option<Filter> {
    match expression.node {
        Node::Name(id) => Some((id, None)),
        Node::Call(callee, arguments) if matches!(callee.node, Node::Name(_)) => {
            named(*callee).map(|(id, _)| (id, Some(arguments)))
        }
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<Node> {
    if digits.contains(&b'.') {
        return numbers::parse_float(digits).map(Node::Float);
    }
    std::str::from_utf8(digits).ok()?.parse().ok().map(Node::Int)
}
