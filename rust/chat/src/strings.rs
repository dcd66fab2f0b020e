//! The strings of a caller, numbered: which message each of them belongs to.

use crate::text::{Origin, Text};

/// A table of the caller's strings. Text whose origin is [`Origin::caller`] of a number comes from the string that was
/// added with this number.
#[derive(Clone, Debug, Default)]
pub struct Strings {
    messages: Vec<Option<u32>>,
}

impl Strings {
    /// A table without strings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Numbers a string, and says which message it belongs to, if any, by its place in the caller's list.
    pub fn add(&mut self, message: Option<usize>, bytes: &[u8]) -> Text {
        let number = self.messages.len();
        self.messages.push(message.and_then(|message| u32::try_from(message).ok()));
        Text::new(bytes, Origin::caller(number))
    }

    /// The message that the string of this number belongs to.
    pub fn message(&self, number: usize) -> Option<usize> {
        self.messages.get(number).copied().flatten().map(|message| message as usize)
    }

    /// The message that bytes of this origin belong to: a string of its, or what the template writes in its turn.
    pub fn message_of(&self, origin: Origin) -> Option<usize> {
        origin.string().map_or_else(|| origin.message(), |number| self.message(number))
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}
