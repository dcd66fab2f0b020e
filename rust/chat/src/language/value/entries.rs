//! The entries of an object: an array in the order of insertion, with a hash index once there are many.
//!
//! Time: O(1) per operation.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use super::Value;

/// From so many entries on, there is an index. Fewer are compared one by one.
const INDEXED: usize = 12;

/// Keys and values in the order in which the keys were added. No two keys are equal. Whatever is looked up or set as a
/// key has passed `operators::check_key`.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pairs: Vec<(Value, Value)>,
    /// Where each key is in `pairs`.
    index: Option<HashMap<Value, usize>>,
}

impl Entries {
    pub(crate) fn with_capacity(len: usize) -> Self {
        Self { pairs: Vec::with_capacity(len), index: None }
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &Value) -> Option<&Value> {
        self.place(key).map(|at| &self.pairs[at].1)
    }

    /// Where a key is. NaN is never found.
    fn place(&self, key: &Value) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(key).copied(),
            None => self.pairs.iter().position(|pair| pair.0 == *key),
        }
    }

    /// Sets the value of a key. An existing key keeps its position.
    pub(crate) fn set(&mut self, key: Value, value: Value) {
        match self.place(&key) {
            Some(at) => self.pairs[at].1 = value,
            None => self.push(key, value),
        }
    }

    /// Adds an entry whose key is known to be new.
    #[expect(clippy::mutable_key_type, reason = "a key is hashable, so nothing that counts for its hash can change")]
    pub(crate) fn push(&mut self, key: Value, value: Value) {
        self.pairs.push((key, value));
        if self.pairs.len() >= INDEXED {
            let first = self.index.as_ref().map_or(0, HashMap::len);
            let index = self.index.get_or_insert_default();
            index.extend(self.pairs.iter().enumerate().skip(first).map(|(at, pair)| (pair.0.clone(), at)));
        }
    }
}

impl Deref for Entries {
    type Target = [(Value, Value)];

    fn deref(&self) -> &Self::Target {
        &self.pairs
    }
}

impl Hash for Value {
    /// Of a key. The hash has a random seed, so that no template can find many keys that have the same.
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::String(key) => key.text.as_bytes().hash(state),
            Self::Array(tuple) => tuple.items.borrow().hash(state),
            Self::KwArg(given) => (given.name.text.as_bytes(), given.value.address().or(self.address())).hash(state),
            // Zeros are equal whatever their sign.
            key => key.worth().map(|(int, float)| (int, (float + 0.0).to_bits())).hash(state),
        }
    }
}
