//! Expressions: constants, variables, operators and members.

use std::rc::Rc;

use super::super::ast::{Expression, NameId, Node};
use super::super::failure::{Outcome, failed};
use super::super::operators::Operator;
use super::super::value::{Code, Entries, KwArg, Native, Str, Value, mark};
use super::super::{functions, methods, operators};
use super::Machine;
use crate::text::{Origin, Text};

impl<'p> Machine<'p> {
    pub(super) fn name(&mut self, id: NameId) -> Rc<Str> {
        made(&mut self.names[id as usize], &self.program.names[id as usize].text)
    }

    pub(super) fn variable(&mut self, id: NameId) -> Value {
        let value = self.scopes.slots[id as usize].clone();
        if !value.is_undefined() {
            value.note(mark::USED);
            return value;
        }
        match functions::global(&self.program.names[id as usize].text) {
            Some(native) => Value::function(self.name(id), Code::Native(native), None),
            None => Value::Undefined(Some(self.name(id))),
        }
    }

    pub(super) fn evaluate_all(&mut self, nodes: impl IntoIterator<Item = &'p Expression>) -> Outcome<Vec<Value>> {
        nodes.into_iter().map(|expression| self.evaluate(expression)).collect()
    }

    pub(super) fn evaluate(&mut self, expression: &'p Expression) -> Outcome<Value> {
        let value = match &expression.node {
            Node::String(number) => Value::String(made(&mut self.strings[*number], &self.program.strings[*number])),
            Node::Name(id) => self.variable(*id),
            Node::Int(value) => Value::int(*value),
            _ => return self.at(expression.at, |machine| machine.evaluate_node(&expression.node)),
        };
        self.run.budget.steps(1)?;
        Ok(value)
    }

    pub(super) fn evaluate_node(&mut self, node: &'p Node) -> Outcome<Value> {
        match node {
            Node::String(_) | Node::Name(_) | Node::Int(_) | Node::Blank => Ok(Value::UNDEFINED),
            Node::Float(value) => Ok(Value::Float(*value, Origin::TEMPLATE)),
            Node::Array(items) | Node::Tuple(items) => {
                self.run.budget.bytes(64 + 16 * items.len())?;
                Ok(Value::sequence(self.evaluate_all(items)?, matches!(node, Node::Tuple(_))))
            }
            Node::Object(pairs) => self.object(pairs),
            Node::Member(object, name) => {
                let object = self.evaluate(object)?;
                self.member(&object, *name)
            }
            Node::Item(parts) => {
                let [object, key] = &**parts;
                let object = self.evaluate(object)?;
                let key = self.evaluate(key)?;
                self.item(&object, key)
            }
            Node::Slice(parts) => self.slice(parts),
            Node::Call(callee, arguments) => {
                let arguments = self.evaluate_all(arguments)?;
                let callee = self.evaluate(callee)?;
                self.call(&callee, arguments)
            }
            Node::Filter(operand, filter) => self.filter(operand, filter),
            Node::Test(operand, test) => self.test(operand, test),
            Node::Not(operand) => Ok(Value::Bool(!self.evaluate(operand)?.as_bool()?)),
            Node::Sign(is_negative, operand) => match (self.evaluate(operand)?, is_negative) {
                (Value::Int(value, origin), true) => Ok(Value::Int(value.wrapping_neg(), origin)),
                (Value::Float(value, origin), true) => Ok(Value::Float(-value, origin)),
                (value @ (Value::Int(..) | Value::Float(..)), false) => Ok(value),
                (value, _) => failed(format!("a sign needs a number after it, not {}", value.type_name())),
            },
            Node::Binary(first, rest) => self.binary(first, rest),
            Node::Ternary(parts) => {
                let [condition, value, other] = &**parts;
                let holds = self.evaluate(condition)?.as_bool()?;
                self.evaluate(if holds { value } else { other })
            }
            Node::KeywordArgument(name, value) => {
                let value = self.evaluate(value)?;
                Ok(Value::KwArg(Rc::new(KwArg { name: self.name(*name), value })))
            }
            Node::Captured(body) => self.captured(body),
            Node::Macro(number) => {
                let name = self.name(self.program.macros[*number].name);
                Ok(Value::function(name, Code::Macro(*number, Vec::new()), None))
            }
            Node::CallBlock(number, callee, arguments) => self.call_block(*number, *callee, arguments),
            Node::Invalid(problem) => failed(*problem),
        }
    }

    /// `a + b ~ c`, from left to right: one level of depth, however long it is.
    fn binary(&mut self, first: &'p Expression, rest: &'p [(Operator, u32, Expression)]) -> Outcome<Value> {
        let mut value = self.evaluate(first)?;
        for &(operator, at, ref operand) in rest {
            let result = match operator {
                "and" | "or" => match value.as_bool() {
                    Ok(holds) if holds == (operator == "and") => self.evaluate(operand),
                    Ok(_) => continue,
                    Err(failure) => Err(failure),
                },
                _ => {
                    let operand = self.evaluate(operand)?;
                    operators::binary(&mut self.run, operator, value, operand)
                }
            };
            value = result.map_err(|failure| self.placed(at, failure))?;
        }
        Ok(value)
    }

    pub(super) fn object(&mut self, pairs: &'p [(Expression, Expression)]) -> Outcome<Value> {
        self.run.budget.bytes(128 + 48 * pairs.len())?;
        let mut entries = Entries::with_capacity(pairs.len());
        for (key, value) in pairs {
            let key = self.evaluate(key)?;
            let value = self.evaluate(value)?;
            operators::check_key(&mut self.run, &key)?;
            entries.set(key, value);
        }
        Ok(Value::object(entries))
    }

    /// The method or filter of a value that a name means.
    pub(super) fn method(&self, value: &Value, name: &[u8]) -> Outcome<Option<Native>> {
        let marks = match name {
            b"selectattr" => mark::USED | mark::SELECTATTR,
            b"array_access" => mark::USED | mark::ARRAY_ACCESS,
            _ => mark::USED,
        };
        value.note(marks);
        methods::method(value, name)
    }

    /// A member of an object. A method comes before a key of the same name.
    pub(super) fn member(&mut self, object: &Value, name: NameId) -> Outcome<Value> {
        let name = self.name(name);
        match self.method(object, name.text.as_bytes())? {
            Some(native) => Ok(Value::function(name, Code::Native(native), Some(object.clone()))),
            None => self.item(object, Value::String(name)),
        }
    }

    /// What `object[property]` is.
    pub(super) fn item(&mut self, object: &Value, property: Value) -> Outcome<Value> {
        let missing = || Value::Undefined(Some(Str::new("object_property".into())));
        if property.is_undefined() {
            return Ok(missing());
        }
        if !matches!(property, Value::String(_)) && !operators::is_hashable(&mut self.run, &property, 0)? {
            return failed(format!("{} cannot be a key", property.type_name()));
        }
        let value = match (object, &property) {
            (Value::Undefined(_), _) => return Ok(missing()),
            (Value::Object(fields), _) => {
                operators::check_key(&mut self.run, &property)?;
                let found = fields.entries.borrow().get(&property).cloned();
                match found {
                    Some(value) if !value.is_undefined() => value,
                    _ => {
                        let key = property.as_text(&mut self.run)?;
                        self.method_of(object, &key)?
                    }
                }
            }
            (Value::Array(array), Value::Int(..) | Value::Bool(_)) => {
                array.item(property.as_int()?).unwrap_or_else(missing)
            }
            (Value::String(string), Value::Int(..) | Value::Bool(_)) => match usize::try_from(property.as_int()?) {
                Ok(index) if index < string.text.len() => Value::string(string.text.slice(index..index + 1)),
                _ => missing(),
            },
            (_, Value::String(key)) => self.method_of(object, &key.text)?,
            (Value::Array(_) | Value::String(_), _) => missing(),
            _ => return failed(format!("{} cannot be a key of {}", property.type_name(), object.type_name())),
        };
        let is_index = matches!(property, Value::Int(..) | Value::Bool(_)) && !matches!(object, Value::Object(_));
        object.note(if is_index { mark::USED | mark::ARRAY_ACCESS } else { mark::USED });
        property.note(mark::USED);
        value.note(mark::USED);
        Ok(value)
    }

    /// A method that is looked up by a string.
    pub(super) fn method_of(&mut self, object: &Value, name: &Text) -> Outcome<Value> {
        let native = self.method(object, name.as_bytes())?;
        let name = Str::new(name.clone());
        Ok(match native {
            Some(native) => Value::function(name, Code::Native(native), Some(object.clone())),
            None => Value::Undefined(Some(name)),
        })
    }
}

/// The string of a text of the template, made when it is needed first.
fn made(string: &mut Option<Rc<Str>>, text: &[u8]) -> Rc<Str> {
    Rc::clone(string.get_or_insert_with(|| Str::new(Text::template(text))))
}
