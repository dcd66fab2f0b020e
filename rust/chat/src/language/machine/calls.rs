//! Calls: macros, `{% call %}`, functions, methods, filters and tests.

use std::rc::Rc;

use super::super::ast::{Expression, Filter, NameId, Node, Property};
use super::super::failure::{Outcome, failed};
use super::super::functions;
use super::super::value::{Args, Code, Function, Native, Value, charge_text, mark};
use super::{Machine, Scopes};

impl<'p> Machine<'p> {
    pub(super) fn call_block(&mut self, number: usize, callee: NameId, arguments: &'p [Expression]) -> Outcome<Value> {
        let Some(caller) = self.program.macros[number].name else { return failed("no macro uses caller()") };
        let callee = self.variable(callee);
        let Value::Function(function) = callee else {
            return failed(format!("cannot call {}", callee.type_name()));
        };
        self.run.charge_bytes(16 * self.scopes.slots.len())?;
        let slots = self.scopes.slots.clone();
        let arguments = self.evaluate_all(arguments)?;
        let scope = self.scopes.open();
        let body = self.function(caller, Code::Macro(number, Some(slots)), None);
        self.scopes.set(caller, body);
        let result = self.call(&function, arguments);
        self.scopes.close(scope);
        result
    }

    pub(super) fn function(&mut self, name: NameId, code: Code, this: Option<Value>) -> Value {
        Value::Function(Rc::new(Function { name: self.name(name), code, this }))
    }

    /// Calls a function of the language. Reading and copying the strings among its arguments is paid for here, and what
    /// it does besides by the function itself.
    pub(super) fn native(&mut self, native: Native, arguments: &Args) -> Outcome<Value> {
        self.run.begun = 0;
        for value in &arguments.values {
            if let Value::String(string) = value {
                self.run.charge_steps(string.text.len() / 16)?;
                charge_text(&mut self.run, &string.text)?;
            }
        }
        native(&mut self.run, arguments)
    }

    pub(super) fn call(&mut self, function: &Function, mut arguments: Vec<Value>) -> Outcome<Value> {
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
        let mut outer = None;
        if let Some(slots) = slots {
            self.run.charge_bytes(16 * slots.len())?;
            outer = Some(std::mem::replace(&mut self.scopes, Scopes::new(slots.clone())));
        }
        let scope = self.scopes.open();
        for (name, value) in bound {
            self.scopes.set(name, value);
        }
        let result = self.at(definition.at, |machine| machine.captured(&definition.body));
        self.scopes.close(scope);
        if let Some(outer) = outer {
            self.scopes = outer;
        }
        result
    }

    /// The values of parameters. As many parameters as there are arguments, keyword ones included, are looked up among
    /// them; the others have their defaults.
    fn bind(&mut self, parameters: &'p [Expression], arguments: &Args) -> Outcome<Vec<(NameId, Value)>> {
        let mut bound = Vec::with_capacity(parameters.len());
        for (at, parameter) in parameters.iter().enumerate() {
            let (key, default) = match &parameter.node {
                Node::KeywordArgument(pair) => (&pair[0], Some(&pair[1])),
                _ => (parameter, None),
            };
            let Node::Name(name) = key.node else { return failed("a parameter must be a name") };
            let value = match default {
                _ if at < arguments.len() => arguments.named(&self.program.names[name as usize].text, at),
                Some(default) => self.evaluate(default)?,
                None => return failed(format!("'{}' is called with too few arguments", arguments.name.text)),
            };
            bound.push((name, value));
        }
        Ok(bound)
    }

    /// A call. Methods are called without making a bound function first.
    pub(super) fn call_node(&mut self, callee: &'p Expression, arguments: &'p [Expression]) -> Outcome<Value> {
        if let Node::Member(object, Property::Name(name)) = &callee.node {
            let mut values = Vec::with_capacity(arguments.len() + 1);
            values.push(Value::UNDEFINED);
            for argument in arguments {
                values.push(self.evaluate(argument)?);
            }
            return self.at(callee.at, |machine| {
                let object = machine.evaluate(object)?;
                if let Some(native) = machine.method(&object, &machine.program.names[*name as usize].text)? {
                    values[0] = object;
                    let name = machine.name(*name);
                    return machine.native(native, &Args { name, values });
                }
                values.remove(0);
                let name = machine.name(*name);
                let member = machine.member_of(&object, Value::String(name))?;
                machine.call_value(&member, values)
            });
        }
        let values = self.evaluate_all(arguments)?;
        let callee = self.evaluate(callee)?;
        self.call_value(&callee, values)
    }

    pub(super) fn call_value(&mut self, callee: &Value, arguments: Vec<Value>) -> Outcome<Value> {
        match callee {
            Value::Function(function) => self.call(function, arguments),
            _ => failed(format!("cannot call {}", callee.type_name())),
        }
    }

    pub(super) fn filter(&mut self, filter: &'p Filter, mut input: Value) -> Outcome<Value> {
        let Some((name, arguments)) = filter else { return failed("this cannot be a filter") };
        let mut values = vec![Value::UNDEFINED];
        match arguments {
            Some(arguments) => values.append(&mut self.evaluate_all(arguments)?),
            None => {
                let takes_text = |text: &[u8]| {
                    let coerced: [&[u8]; 7] =
                        [b"capitalize", b"lower", b"replace", b"strip", b"title", b"upper", b"wordcount"];
                    coerced.contains(&text)
                };
                let is_text = matches!(input, Value::String(_) | Value::Undefined(_));
                if !is_text && takes_text(&self.program.names[*name as usize].text) {
                    self.run.begun = 0;
                    input = Value::string(input.as_text(&mut self.run)?.into_owned());
                }
            }
        }
        let text = &self.program.names[*name as usize].text;
        let Some(native) = self.method(&input, text)? else {
            let text = String::from_utf8_lossy(text);
            return failed(format!("{} has no filter '{text}'", input.type_name()));
        };
        values[0] = input;
        let name = self.name(*name);
        self.native(native, &Args { name, values })
    }

    pub(super) fn test(&mut self, operand: &'p Expression, is_negated: bool, test: &'p Filter) -> Outcome<Value> {
        let operand = self.evaluate(operand)?;
        let Some((name, arguments)) = test else { return failed("this cannot be a test") };
        let mut values = vec![operand.clone()];
        values.append(&mut self.evaluate_all(arguments.as_deref().unwrap_or_default())?);
        let text = self.program.names[*name as usize].text.as_slice();
        let Some(native) = functions::test(text) else {
            return failed(format!("unknown test '{}'", String::from_utf8_lossy(text)));
        };
        self.run.note(&operand, if text == b"string" { mark::USED | mark::IS_STRING } else { mark::USED });
        let name = self.name(*name);
        let result = self.native(native, &Args { name, values })?;
        if is_negated { Ok(Value::Bool(!result.as_bool()?)) } else { Ok(result) }
    }
}
