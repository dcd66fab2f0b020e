//! Calls: macros, `{% call %}`, functions, methods, filters and tests.

use std::rc::Rc;

use super::super::ast::{Expression, Filter, NameId, Node};
use super::super::failure::{Outcome, failed};
use super::super::functions::known_test;
use super::super::value::{Args, Code, Native, Str, Value, check_depth, mark};
use super::Machine;

impl<'p> Machine<'p> {
    pub(super) fn call_block(&mut self, number: usize, callee: NameId, arguments: &'p [Expression]) -> Outcome<Value> {
        let caller = self.program.macros[number].name;
        let callee = self.variable(callee);
        self.run.budget.bytes(16 * self.scopes.slots.len())?;
        let slots = self.scopes.slots.clone();
        let arguments = self.evaluate_all(arguments)?;
        let scope = self.scopes.open();
        let body = Value::function(self.name(caller), Code::Macro(number, slots), None);
        self.scopes.set(caller, body);
        let result = self.call(&callee, arguments);
        self.scopes.close(scope);
        result
    }

    /// Calls a function of the language. Reading and copying the strings among its arguments is paid for here, and what
    /// it does besides by the function itself.
    pub(super) fn native(&mut self, native: Native, arguments: &Args) -> Outcome<Value> {
        let size = |value: &Value| if let Value::String(string) = value { string.text.num_bytes() } else { 0 };
        let bytes = arguments.values.iter().map(size).sum();
        self.run.budget.steps(bytes / 16)?;
        self.run.budget.string(bytes)?;
        native(&mut self.run, arguments)
    }

    pub(super) fn call(&mut self, callee: &Value, mut arguments: Vec<Value>) -> Outcome<Value> {
        let Value::Function(function) = callee else {
            return failed(format!("cannot call {}", callee.type_name()));
        };
        if let Some(this) = &function.this {
            arguments.insert(0, this.clone());
        }
        let arguments = Args { name: Rc::clone(&function.name), values: arguments };
        let (number, slots) = match &function.code {
            Code::Native(native) => return self.native(*native, &arguments),
            Code::Macro(number, slots) => (*number, slots),
        };
        let definition = &self.program.macros[number];
        let bound = self.bind(&definition.parameters, &arguments)?;
        self.run.budget.bytes(32 * slots.len())?;
        let scope = self.scopes.open();
        for (name, value) in (0..).zip(slots.iter().cloned()).chain(bound) {
            self.scopes.set(name, value);
        }
        let result = self.at(definition.at, |machine| machine.captured(&definition.body));
        self.scopes.close(scope);
        result
    }

    /// The values of parameters. As many parameters as there are arguments, keyword ones included, are looked up among
    /// them; the others have their defaults.
    fn bind(&mut self, parameters: &'p [Expression], arguments: &Args) -> Outcome<Vec<(NameId, Value)>> {
        let mut bound = Vec::with_capacity(parameters.len());
        for (at, parameter) in parameters.iter().enumerate() {
            let (name, default) = match &parameter.node {
                Node::Name(name) => (*name, None),
                Node::KeywordArgument(name, default) => (*name, Some(default)),
                _ => return failed("a parameter must be a name"),
            };
            let value = match default {
                _ if at < arguments.len() => arguments.named(&self.program.names[name as usize].text, at),
                Some(default) => self.evaluate(default)?,
                None => return failed(format!("'{}' is called with too few arguments", arguments.name.text)),
            };
            check_depth(value.depth())?;
            bound.push((name, value));
        }
        Ok(bound)
    }

    /// The name of a filter or a test, and its arguments, the operand first.
    fn applied(&mut self, operand: &'p Expression, (name, arguments): &'p Filter) -> Outcome<Args> {
        let arguments = arguments.as_deref().unwrap_or_default();
        let values = self.evaluate_all(std::iter::once(operand).chain(arguments))?;
        Ok(Args { name: self.name(*name), values })
    }

    pub(super) fn filter(&mut self, operand: &'p Expression, filter: &'p Filter) -> Outcome<Value> {
        let mut args = self.applied(operand, filter)?;
        let name = args.name.text.as_bytes();
        let input = &mut args.values[0];
        let is_text = matches!(input, Value::String(_) | Value::Undefined(_));
        let takes_text =
            matches!(name, b"capitalize" | b"lower" | b"replace" | b"strip" | b"title" | b"upper" | b"wordcount");
        if filter.1.is_none() && takes_text && !is_text {
            *input = Value::string(input.as_text(&mut self.run)?.into_owned());
        }
        self.filtered(&args)
    }

    fn filtered(&mut self, args: &Args) -> Outcome<Value> {
        let input = &args.values[0];
        let Some(native) = self.method(input, args.name.text.as_bytes())? else {
            return failed(format!("{} has no filter '{}'", input.type_name(), args.name.text));
        };
        self.native(native, args)
    }

    /// The filter `slice`. What is left out has the default for the direction: it takes all up to that end.
    pub(super) fn slice(&mut self, [object, start, stop, step]: &'p [Expression; 4]) -> Outcome<Value> {
        let object = self.evaluate(object)?;
        let mut given = |part: &'p Expression, default| match part.node {
            Node::Blank => Ok(Value::int(default)),
            _ => self.evaluate(part),
        };
        let step = given(step, 1)?;
        let [first, last] = if step.as_int()? < 0 { [i64::MAX, -1] } else { [0, i64::MAX] };
        let values = vec![object, given(start, first)?, given(stop, last)?, step];
        self.filtered(&Args { name: Str::new("slice".into()), values })
    }

    pub(super) fn test(&mut self, operand: &'p Expression, test: &'p Filter) -> Outcome<Value> {
        let args = self.applied(operand, test)?;
        let native = known_test(&args.name.text)?;
        args.values[0].note(if args.name.text == "string" { mark::USED | mark::IS_STRING } else { mark::USED });
        self.native(native, &args)
    }
}
