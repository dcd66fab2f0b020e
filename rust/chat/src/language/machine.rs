//! Walks the tree of a template and writes text.
//!
//! 1. A variable is a slot: names are numbered, and a name's slot holds its value in the innermost scope. A scope saves
//!    the slots that it changes and restores them at its end. llama.cpp copies all variables for every scope; since
//!    scopes nest in time (a macro sees the variables of whoever calls it), the two are the same, except for the body of
//!    a `{% call %}`, which may be called later: it takes a copy of the slots along.
//! 2. Statements write to one text. What a block writes is a string that other statements may take: `set`, `filter`,
//!    macros. A `break` discards what the statement of the loop's body that it leaves has written.
//! 3. An array that is written is read when the block around it ends, since it may be changed until then.
//!
//! Source: `common/jinja/runtime.cpp` of llama.cpp. Deviations: 1. Steps, bytes and depth are bounded. 2. Text written in
//! the turn of a loop over messages knows the message. 3. `{% generation %}` marks what is written inside. 4. A string
//! constant is one string however often it is evaluated, which only `is sameas` can tell.
//!
//! Time: O(nodes evaluated + bytes written).

mod calls;
mod loops;
mod scopes;
mod values;

use std::rc::Rc;

use scopes::Scopes;

use super::ast::{Expression, Node, Program, Statement};
use super::failure::{Failure, Outcome, failed};
use super::value::{Run, Str, Value, check_depth};
use crate::error::{Error, Position};
use crate::text::{Origin, Text};

/// How many expressions and statements may be evaluated inside each other: a stack holds a frame for each.
const MOST_DEEP: usize = 400;

/// The state of a rendering.
pub(crate) struct Machine<'p> {
    program: &'p Program,
    source: &'p [u8],
    run: Run<'p>,
    scopes: Scopes,
    /// The constants and names that were needed so far, as values.
    strings: Vec<Option<Rc<Str>>>,
    names: Vec<Option<Rc<Str>>>,
    out: Text,
    /// Arrays that were written, and where in `out` they belong.
    arrays: Vec<(usize, Value)>,
    /// What text of the template is written as.
    turn: Origin,
    /// How many `{% generation %}` are open.
    generation: usize,
    depth: usize,
    /// The keys of `loop`, once a loop has run.
    loop_keys: Option<[Rc<Str>; 9]>,
}

impl<'p> Machine<'p> {
    pub(crate) fn new(program: &'p Program, source: &'p [u8], run: Run<'p>) -> Self {
        let constants = program.names.iter().map(|name| match name.text.as_slice() {
            b"true" | b"True" => Value::Bool(true),
            b"false" | b"False" => Value::Bool(false),
            b"none" | b"None" => Value::None,
            _ => Value::UNDEFINED,
        });
        Self {
            program,
            source,
            run,
            scopes: Scopes::new(constants.collect()),
            strings: vec![None; program.strings.len()],
            names: vec![None; program.names.len()],
            out: Text::default(),
            arrays: Vec::new(),
            turn: Origin::TEMPLATE,
            generation: 0,
            depth: 0,
            loop_keys: None,
        }
    }

    /// Runs the program with these variables.
    pub(crate) fn rendered(mut self, variables: Vec<(impl AsRef<[u8]>, Value)>) -> Result<Text, Error> {
        for (name, value) in variables {
            if let Some(id) = self.program.ids.get(name.as_ref()) {
                self.scopes.slots[*id as usize] = value;
            }
        }
        match self.block(&self.program.body) {
            Ok(()) => Ok(self.out),
            Err(failure) => Err(self.error(0, *failure)),
        }
    }

    fn error(&self, at: u32, failure: Failure) -> Error {
        let position = Position::of(self.source, at as usize);
        let problem = match failure {
            Failure::At(error) => return error,
            Failure::Raised(problem) => return Error::Raised { problem, position },
            Failure::Failed(problem) => problem,
            Failure::Break => "'break' outside of a loop".to_owned(),
            Failure::Continue => "'continue' outside of a loop".to_owned(),
        };
        Error::Template { problem, position }
    }

    /// Evaluates something that is at a place, one level deeper.
    fn at<T>(&mut self, at: u32, inner: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.run.budget.steps(1)?;
        self.depth += 1;
        let result = match self.depth {
            0..=MOST_DEEP => inner(self),
            _ => failed(format!("more than {MOST_DEEP} expressions and statements inside each other")),
        };
        self.depth -= 1;
        result.map_err(|failure| self.placed(at, failure))
    }

    #[cold]
    fn placed(&self, at: u32, failure: Box<Failure>) -> Box<Failure> {
        match *failure {
            Failure::Failed(_) | Failure::Raised(_) => Box::new(Failure::At(self.error(at, *failure))),
            _ => failure,
        }
    }

    // Writing

    /// Statements whose text is one string.
    fn block(&mut self, body: &'p [Statement]) -> Outcome<()> {
        let arrays = self.arrays.len();
        for statement in body {
            self.statement(statement)?;
        }
        self.write_arrays(arrays)
    }

    /// Puts the arrays where they belong, those from number `first` on.
    fn write_arrays(&mut self, first: usize) -> Outcome<()> {
        let arrays = self.arrays.split_off(first);
        let Some(&(start, _)) = arrays.first() else { return Ok(()) };
        self.run.budget.bytes(self.out.len() - start)?;
        let tail = self.out.slice(start..self.out.len());
        self.out.truncate(start);
        let mut from = 0;
        for (at, array) in arrays {
            self.out.append(&tail.slice(from..at - start));
            from = at - start;
            self.write_items(&array, 0)?;
        }
        self.out.append(&tail.slice(from..tail.len()));
        Ok(())
    }

    fn write_items(&mut self, value: &Value, depth: usize) -> Outcome<()> {
        check_depth(depth)?;
        let Value::Array(array) = value else {
            return self.write(value);
        };
        self.run.budget.steps(array.items.borrow().len())?;
        array.items.borrow().iter().try_for_each(|item| self.write_items(item, depth + 1))
    }

    fn write_text(&mut self, text: &Text) -> Outcome<()> {
        self.run.budget.bytes(text.num_bytes())?;
        // Text that the template writes in the turn of no message is text of the current turn.
        self.out.append_as(text, |origin| {
            let origin = if origin.is_caller() || origin.message().is_some() { origin } else { self.turn };
            if self.generation > 0 { origin.generated() } else { origin }
        });
        Ok(())
    }

    fn write(&mut self, value: &Value) -> Outcome<()> {
        match value {
            Value::String(_) | Value::Int(..) | Value::Float(..) | Value::Bool(_) => {
                let text = value.as_text(&mut self.run)?;
                self.write_text(&text)
            }
            Value::Array(_) => {
                self.run.budget.bytes(32)?;
                self.arrays.push((self.out.len(), value.clone()));
                Ok(())
            }
            Value::Undefined(_) | Value::None | Value::Object(_) | Value::Function(_) | Value::KwArg(_) => Ok(()),
        }
    }

    /// What a body writes, instead of writing it.
    fn captured(&mut self, body: &'p [Statement]) -> Outcome<Value> {
        let out = std::mem::take(&mut self.out);
        let arrays = std::mem::take(&mut self.arrays);
        let result = self.block(body);
        let text = std::mem::replace(&mut self.out, out);
        self.arrays = arrays;
        result.map(|()| Value::string(text))
    }

    // Statements

    fn statement(&mut self, statement: &'p Statement) -> Outcome<()> {
        self.run.budget.steps(1)?;
        match statement {
            Statement::Text(text) => self.write_text(text),
            Statement::Write(expression) => {
                let value = self.evaluate(expression)?;
                self.write(&value)
            }
            Statement::If(branches, otherwise) => self.if_block(branches, otherwise),
            Statement::For(each) => self.at(each.at, |machine| machine.for_block(each)),
            Statement::Set(at, parts) => self.at(*at, |machine| machine.set(parts)),
            Statement::Break => Err(Box::new(Failure::Break)),
            Statement::Continue => Err(Box::new(Failure::Continue)),
            Statement::Generation(begins) => {
                self.generation = if *begins { self.generation + 1 } else { self.generation.saturating_sub(1) };
                Ok(())
            }
        }
    }

    fn if_block(&mut self, branches: &'p [(Expression, Vec<Statement>)], otherwise: &'p [Statement]) -> Outcome<()> {
        for (condition, body) in branches {
            if self.at(condition.at, |machine| machine.evaluate(condition)?.as_bool())? {
                return self.at(condition.at, |machine| machine.block(body));
            }
        }
        self.at(branches[0].0.at, |machine| machine.block(otherwise))
    }

    fn set(&mut self, [target, value]: &'p [Expression; 2]) -> Outcome<()> {
        let value = self.evaluate(value)?;
        match &target.node {
            Node::Member(object, name) => {
                let changed = self.evaluate(object)?;
                let Value::Object(object) = &changed else {
                    return failed("cannot assign to a member of what is not an object");
                };
                self.run.budget.bytes(64)?;
                self.run.change(&changed, &value)?;
                let key = Value::String(self.name(*name));
                object.entries.borrow_mut().set(key, value);
                Ok(())
            }
            _ => self.assign(target, &value),
        }
    }

    /// Sets a variable, or several to the items of an array.
    fn assign(&mut self, target: &Expression, value: &Value) -> Outcome<()> {
        match (&target.node, value) {
            (Node::Name(name), _) => {
                check_depth(value.depth())?;
                self.scopes.set(*name, value.clone());
                Ok(())
            }
            (Node::Tuple(targets), Value::Array(array)) => {
                let items = array.items.borrow();
                if targets.len() != items.len() {
                    let amount = if items.len() < targets.len() { "few" } else { "many" };
                    return failed(format!("too {amount} items to unpack"));
                }
                targets.iter().zip(items.iter()).try_for_each(|(target, item)| match target.node {
                    Node::Name(_) => self.assign(target, item),
                    _ => failed("cannot unpack to what is not a name"),
                })
            }
            (Node::Tuple(_), _) => failed(format!("cannot unpack {}", value.type_name())),
            _ => failed("cannot assign to this"),
        }
    }
}
