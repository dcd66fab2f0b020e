//! Values of the template language: what variables hold and expressions give.
//!
//! Source: `common/jinja/value.h` of llama.cpp. Deviations: 1. Values nest at most [`MOST_DEEP`] levels where they are
//! set or walked; llama.cpp's stack overflows. 2. Numbers that come from a caller know that, so that their digits do.
//!
//! Arrays and objects are shared and can be changed by whoever holds them, as in Python. A value is for one thread and
//! one rendering.

mod args;
mod entries;
mod run;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub(crate) use args::Args;
pub(crate) use entries::Entries;
pub(crate) use run::{Changed, Run};

use super::failure::{Outcome, failed};
use crate::budget::hold;
use crate::text::{Origin, Text};

/// The deepest nesting of values that are set, added to others, or walked: printed, compared, made JSON. So the recursion
/// that frees them is not deeper than a stack.
pub(crate) const MOST_DEEP: usize = 200;

/// That a value nests more than [`MOST_DEEP`] levels.
pub(crate) fn check_depth(depth: usize) -> Outcome<()> {
    if depth < MOST_DEEP { Ok(()) } else { failed(format!("values are nested more than {MOST_DEEP} levels deep")) }
}

/// What was done to a value, noted for whoever asks what a template can do.
pub(crate) mod mark {
    /// It was read.
    pub(crate) const USED: u8 = 1;
    /// `is string` was asked of it.
    pub(crate) const IS_STRING: u8 = 2;
    /// `selectattr` was called on it.
    pub(crate) const SELECTATTR: u8 = 4;
    /// An item was read, or a loop ran over it.
    pub(crate) const ARRAY_ACCESS: u8 = 8;
    /// The template changed it.
    pub(crate) const CHANGED: u8 = 16;
}

/// A string that is shared.
#[derive(Debug)]
pub(crate) struct Str {
    pub(crate) text: Text,
    pub(crate) marks: Cell<u8>,
}

impl Str {
    pub(crate) fn new(text: Text) -> Rc<Self> {
        hold(0, Self::cost(&text));
        Rc::new(Self { text, marks: Cell::new(0) })
    }

    /// The string with more after it: the same one if nothing else holds it.
    pub(crate) fn appended(mut this: Rc<Self>, more: &Text) -> Rc<Self> {
        let Some(Self { text, .. }) = Rc::get_mut(&mut this) else {
            return Self::appended(Self::new(this.text.clone()), more);
        };
        let before = Self::cost(text);
        text.append(more);
        hold(before, Self::cost(text));
        this
    }

    /// What a string of this text takes.
    fn cost(text: &Text) -> usize {
        size_of::<Self>() + text.num_bytes()
    }
}

impl Drop for Str {
    fn drop(&mut self) {
        hold(Self::cost(&self.text), 0);
    }
}

/// A list or a tuple.
#[derive(Debug, Default)]
pub(crate) struct Array {
    pub(crate) items: RefCell<Vec<Value>>,
    /// A tuple cannot be changed.
    pub(crate) is_tuple: bool,
    depth: usize,
    pub(crate) marks: Cell<u8>,
}

impl Array {
    /// The place of an item, if there is one. An index counts from the end if it is negative.
    pub(crate) fn place(&self, index: i64) -> Option<usize> {
        let len = self.items.borrow().len();
        usize::try_from(if index < 0 { index + len as i64 } else { index }).ok().filter(|&place| place < len)
    }

    /// The item at a place.
    pub(crate) fn item(&self, index: i64) -> Option<Value> {
        self.place(index).map(|place| self.items.borrow()[place].clone())
    }
}

/// A mapping.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) entries: RefCell<Entries>,
    /// Whether it has methods and filters: `loop` has none.
    pub(crate) has_builtins: bool,
    /// The message of the caller's that this is.
    pub(crate) message: Option<usize>,
    depth: usize,
    pub(crate) marks: Cell<u8>,
}

/// A function written in Rust. A bound one gets the value that it is bound to as its first argument.
pub(crate) type Native = fn(&mut Run<'_>, &Args) -> Outcome<Value>;

/// What is called.
#[derive(Debug)]
pub(crate) enum Code {
    /// A function of the language.
    Native(Native),
    /// The macro of this number, or the body of a `{% call %}` with the variables where it stands.
    Macro(usize, Vec<Value>),
}

/// A function, a macro, a bound method or the body of a `{% call %}`.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Rc<Str>,
    pub(crate) code: Code,
    /// What it is bound to.
    pub(crate) this: Option<Value>,
    depth: usize,
}

/// A keyword argument: a value to whoever does not ask for it by name.
#[derive(Debug)]
pub(crate) struct KwArg {
    pub(crate) name: Rc<Str>,
    pub(crate) value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Nothing, and what was looked for, if that is known.
    Undefined(Option<Rc<Str>>),
    None,
    Bool(bool),
    Int(i64, Origin),
    Float(f64, Origin),
    String(Rc<Str>),
    Array(Rc<Array>),
    Object(Rc<Object>),
    Function(Rc<Function>),
    KwArg(Rc<KwArg>),
}

impl Value {
    pub(crate) const UNDEFINED: Self = Self::Undefined(None);

    pub(crate) fn int(value: i64) -> Self {
        Self::Int(value, Origin::TEMPLATE)
    }

    /// A number of things.
    pub(crate) fn size(value: usize) -> Self {
        Self::int(value as i64)
    }

    pub(crate) fn string(text: impl Into<Text>) -> Self {
        Self::String(Str::new(text.into()))
    }

    pub(crate) fn array(items: Vec<Self>) -> Self {
        Self::sequence(items, false)
    }

    /// A list or a tuple.
    pub(crate) fn sequence(items: Vec<Self>, is_tuple: bool) -> Self {
        let depth = Self::depth_around(&items);
        Self::Array(Rc::new(Array { items: RefCell::new(items), is_tuple, depth, marks: Cell::new(0) }))
    }

    pub(crate) fn object(entries: Entries) -> Self {
        Self::object_with(entries, true, None)
    }

    pub(crate) fn object_with(entries: Entries, has_builtins: bool, message: Option<usize>) -> Self {
        let depth = Self::depth_around(entries.iter().flat_map(|(key, value)| [key, value]));
        let (entries, marks) = (RefCell::new(entries), Cell::new(0));
        Self::Object(Rc::new(Object { entries, has_builtins, message, depth, marks }))
    }

    pub(crate) fn function(name: Rc<Str>, code: Code, this: Option<Self>) -> Self {
        let slots = if let Code::Macro(_, slots) = &code { &slots[..] } else { &[] };
        let depth = Self::depth_around(this.iter().chain(slots));
        Self::Function(Rc::new(Function { name, code, this, depth }))
    }

    /// What it is called in errors.
    pub(crate) fn type_name(&self) -> String {
        let name = match self {
            Self::Undefined(Some(hint)) if !hint.text.is_empty() => {
                return format!("Undefined (hint: '{}')", hint.text);
            }
            Self::Undefined(_) => "Undefined",
            Self::None => "None",
            Self::Bool(_) => "Boolean",
            Self::Int(..) => "Integer",
            Self::Float(..) => "Float",
            Self::String(_) => "String",
            Self::Array(array) if array.is_tuple => "Tuple",
            Self::Array(_) => "Array",
            Self::Object(_) => "Object",
            Self::Function(_) => "Function",
            Self::KwArg(_) => "KwArg",
        };
        name.to_owned()
    }

    fn is_not<T>(&self, what: &str) -> Outcome<T> {
        failed(format!("{} is not {what}", self.type_name()))
    }

    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined(_))
    }

    /// As a whole number: numbers and booleans only. Floats lose their fraction.
    pub(crate) fn as_int(&self) -> Outcome<i64> {
        self.worth().map_or_else(|| self.is_not("an int value"), |worth| Ok(worth.0))
    }

    /// As a floating-point number: numbers only.
    pub(crate) fn as_float(&self) -> Outcome<f64> {
        match self {
            Self::Int(value, _) => Ok(int_to_float(*value)),
            Self::Float(value, _) => Ok(*value),
            _ => self.is_not("a float value"),
        }
    }

    /// Whether it counts as true. Functions and keyword arguments do not count as anything.
    pub(crate) fn as_bool(&self) -> Outcome<bool> {
        Ok(match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value, _) => *value != 0,
            Self::Float(value, _) => *value != 0.0,
            Self::String(string) => !string.text.is_empty(),
            Self::Array(array) => !array.items.borrow().is_empty(),
            Self::Object(object) => !object.entries.borrow().is_empty(),
            Self::Function(_) | Self::KwArg(_) => return self.is_not("a bool value"),
        })
    }

    /// The origin of a number; of other values, the template's.
    pub(crate) fn number_origin(&self) -> Origin {
        match self {
            Self::Int(_, origin) | Self::Float(_, origin) => *origin,
            _ => Origin::TEMPLATE,
        }
    }

    fn noted(&self) -> Option<&Cell<u8>> {
        match self {
            Self::String(string) => Some(&string.marks),
            Self::Array(array) => Some(&array.marks),
            Self::Object(object) => Some(&object.marks),
            _ => None,
        }
    }

    /// Notes what is done to it.
    pub(crate) fn note(&self, marks: u8) {
        if let Some(noted) = self.noted() {
            noted.set(noted.get() | marks);
        }
    }

    /// What was noted.
    pub(crate) fn marks(&self) -> u8 {
        self.noted().map_or(0, Cell::get)
    }

    /// Where the value is in memory; nothing for one that is copied.
    pub(crate) fn address(&self) -> Option<*const ()> {
        Some(match self {
            Self::String(value) => Rc::as_ptr(value).cast(),
            Self::Array(value) => Rc::as_ptr(value).cast(),
            Self::Object(value) => Rc::as_ptr(value).cast(),
            Self::Function(value) => Rc::as_ptr(value).cast(),
            Self::KwArg(value) => Rc::as_ptr(value).cast(),
            _ => return None,
        })
    }

    /// What a number or a boolean is compared by: as a whole number and as a floating-point one.
    pub(crate) fn worth(&self) -> Option<(i64, f64)> {
        match self {
            Self::Int(value, _) => Some((*value, int_to_float(*value))),
            Self::Bool(value) => Some((i64::from(*value), f64::from(*value))),
            Self::Float(value, _) => Some((if value.is_finite() { float_to_int(*value) } else { 0 }, *value)),
            _ => None,
        }
    }
}

impl PartialEq for Value {
    /// Whether two values are equal, of which arrays and objects are hashable: nothing in them is too deep.
    ///
    /// Numbers and booleans are compared by what they are worth.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::String(a), Self::String(b)) => a.text == b.text,
            (Self::Undefined(_), Self::Undefined(_)) | (Self::None, Self::None) => true,
            (Self::Function(_), Self::Function(_)) => true,
            (Self::KwArg(a), Self::KwArg(b)) => {
                Rc::ptr_eq(a, b) || a.name.text == b.name.text && same(&a.value, &b.value)
            }
            (Self::Array(a), Self::Array(b)) => a.is_tuple == b.is_tuple && a.items == b.items,
            (Self::Object(a), Self::Object(b)) => **a.entries.borrow() == **b.entries.borrow(),
            _ => matches!((self.worth(), other.worth()), (Some(a), Some(b)) if a == b),
        }
    }
}

impl Eq for Value {}

/// Whether two values are one and the same: the pointers of C++ are equal.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    a.address().is_some_and(|address| b.address() == Some(address))
}

/// As a C++ cast does on x86: what does not fit becomes the lowest number.
pub(crate) fn float_to_int(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// The floating-point number that equals a whole one: infinite if none does.
pub(crate) fn int_to_float(value: i64) -> f64 {
    let float = value as f64;
    match value {
        _ if float_to_int(float) == value => float,
        ..0 => f64::NEG_INFINITY,
        _ => f64::INFINITY,
    }
}

impl Value {
    /// How many levels of values it had in it when it was made.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Array(array) => array.depth,
            Self::Object(object) => object.depth,
            Self::Function(function) => function.depth,
            Self::KwArg(argument) => 1 + argument.value.depth(),
            _ => 0,
        }
    }

    /// The depth of what holds values.
    fn depth_around<'v>(values: impl IntoIterator<Item = &'v Self>) -> usize {
        1 + values.into_iter().map(Self::depth).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Str;
    use crate::budget::HELD;
    use crate::text::{Origin, Text};

    proptest! {
        #[test]
        fn strings_are_counted_while_they_live(
            steps in prop::collection::vec(("[a-z]{0,9}", any::<(bool, bool)>()), 0..20),
        ) {
            let before = HELD.get();
            let mut strings = vec![Str::new(Text::default())];
            for (more, (is_callers, is_shared)) in steps {
                let last = strings.remove(strings.len() - 1);
                strings.extend(is_shared.then(|| last.clone()));
                let origin = if is_callers { Origin::CALLER } else { Origin::TEMPLATE };
                strings.push(Str::appended(last, &Text::new(more, origin)));
                let cost = |string: &std::rc::Rc<Str>| Str::cost(&string.text);
                prop_assert_eq!(HELD.get() - before, strings.iter().map(cost).sum::<usize>());
            }
            drop(strings);
            prop_assert_eq!(HELD.get(), before);
        }
    }
}
