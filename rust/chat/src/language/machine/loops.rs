//! `{% for %}`: the items, the turns and the variable `loop`.

use std::rc::Rc;

use super::super::ast::{For, Node, Statement};
use super::super::failure::{Failure, Outcome, failed};
use super::super::value::{Entries, Str, Value, mark};
use super::Machine;
use crate::text::Origin;

impl<'p> Machine<'p> {
    pub(super) fn for_block(&mut self, each: &'p For) -> Outcome<()> {
        let scope = self.scopes.open();
        let result = self.turns(each);
        self.scopes.close(scope);
        if result? { Ok(()) } else { self.block(&each.otherwise) }
    }

    /// The turns of a loop. Returns whether one came to its end.
    pub(super) fn turns(&mut self, each: &'p For) -> Outcome<bool> {
        let iterated = self.evaluate(&each.items)?;
        iterated.note(mark::USED | mark::ARRAY_ACCESS);
        let items = self.loop_items(&iterated, each)?;
        let arrays = self.arrays.len();
        let outer = self.turn;
        let loop_name = self.program.ids.get(&b"loop"[..]);
        let mut has_ended = false;
        for (at, item) in items.iter().enumerate() {
            self.run.budget.steps(1)?;
            if let Some(name) = loop_name {
                let state = self.loop_state(&items, at);
                self.scopes.set(*name, state);
            }
            self.assign(&each.variable, item)?;
            self.turn = match item {
                Value::Object(object) => object.message.map_or(outer, Origin::turn),
                _ => outer,
            };
            match self.turn(&each.body).map_err(|failure| *failure) {
                Ok(()) => has_ended = true,
                Err(Failure::Continue) => {}
                Err(Failure::Break) => break,
                Err(failure) => return Err(Box::new(failure)),
            }
        }
        self.write_arrays(arrays)?;
        self.turn = outer;
        Ok(has_ended)
    }

    /// One turn of a loop. A statement that is left by `break` or `continue` writes nothing.
    pub(super) fn turn(&mut self, body: &'p [Statement]) -> Outcome<()> {
        for statement in body {
            let len = self.out.len();
            let num_arrays = self.arrays.len();
            let result = self.statement(statement);
            if result.is_err() {
                self.out.truncate(len);
                self.arrays.truncate(num_arrays);
                return result;
            }
        }
        Ok(())
    }

    /// The items of a loop: those of an array, or the keys of an object (with their values if there are several loop
    /// variables), as far as they meet the loop's condition.
    pub(super) fn loop_items(&mut self, iterated: &Value, each: &'p For) -> Outcome<Vec<Value>> {
        let is_pair = !matches!(each.variable.node, Node::Name(_));
        let items: Vec<Value> = match iterated {
            Value::Undefined(_) => Vec::new(),
            Value::Array(array) => {
                self.run.budget.bytes(16 * array.items.borrow().len())?;
                array.items.borrow().clone()
            }
            Value::Object(object) => {
                self.run.budget.bytes(128 * object.entries.borrow().len())?;
                let entries = object.entries.borrow();
                let item = |(key, value): &(Value, Value)| {
                    if is_pair { Value::sequence(vec![key.clone(), value.clone()], true) } else { key.clone() }
                };
                entries.iter().map(item).collect()
            }
            _ => return failed(format!("a loop needs an array or an object, not {}", iterated.type_name())),
        };
        if each.condition.is_none() && !is_pair {
            return Ok(items);
        }
        let mut kept = Vec::with_capacity(items.len());
        for item in items {
            let scope = self.scopes.open();
            let result = self.assign(&each.variable, &item).and_then(|()| match &each.condition {
                Some(condition) => self.evaluate(condition)?.as_bool(),
                None => Ok(true),
            });
            self.scopes.close(scope);
            if result? {
                kept.push(item);
            }
        }
        Ok(kept)
    }

    /// The variable `loop`.
    fn loop_state(&mut self, items: &[Value], at: usize) -> Value {
        const NAMES: [&str; 9] =
            ["index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem"];
        let keys = self.loop_keys.get_or_insert_with(|| NAMES.map(|name| Str::new(name.into())));
        let count = items.len();
        let neighbor = |index: Option<usize>, hint: &Rc<Str>| {
            let item = index.and_then(|index| items.get(index)).cloned();
            item.unwrap_or_else(|| Value::Undefined(Some(Rc::clone(hint))))
        };
        let values = [
            Value::size(at + 1),
            Value::size(at),
            Value::size(count - at),
            Value::size(count - at - 1),
            Value::Bool(at == 0),
            Value::Bool(at + 1 == count),
            Value::size(count),
            neighbor(at.checked_sub(1), &keys[7]),
            neighbor(Some(at + 1), &keys[8]),
        ];
        let mut entries = Entries::with_capacity(values.len());
        for (key, value) in keys.iter().zip(values) {
            entries.push(Value::String(Rc::clone(key)), value);
        }
        Value::object_with(entries, false, None)
    }
}
