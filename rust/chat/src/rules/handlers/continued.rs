//! A last message that is continued: its thinking and its content, with markers around them.
//!
//! Source: `render_content` in `common/chat.cpp` of llama.cpp, and what its handlers have in common. Deviations: 1. The
//! markers count as written by the template, in the turn of this message.

use crate::json::{Json, Object};
use crate::rules::params::Continuation;
use crate::text::{Origin, Text};

/// What is written for a message that is continued.
pub(crate) struct Continued<'a> {
    pub(crate) text: Text,
    message: &'a Object,
    /// Whether the content is written, and not only the thinking.
    pub(super) has_content: bool,
}

impl<'a> Continued<'a> {
    pub(crate) fn new(message: &'a Object, continuation: Continuation) -> Self {
        Self { text: Text::default(), message, has_content: continuation == Continuation::Content }
    }

    /// Writes a marker.
    pub(crate) fn write(&mut self, marker: &[u8]) {
        self.text.push(marker, self.message.message.map_or(Origin::TEMPLATE, Origin::turn));
    }

    /// Writes the thinking, and what closes it if the content is continued.
    pub(crate) fn write_thinking(&mut self, closing: &[u8]) {
        if let Some(thinking) = self.message.text("reasoning_content") {
            self.text.append(thinking);
        }
        if self.has_content {
            self.write(closing);
        }
    }

    /// Writes the content if it is continued: `render_content`. Parts that are not text are left out.
    pub(crate) fn write_content(&mut self) {
        if !self.has_content {
            return;
        }
        let content = self.message.get("content").unwrap_or(&Json::Null);
        content.as_text().iter().for_each(|text| self.text.append(text));
        let mut is_empty = true;
        let parts = content.as_array().unwrap_or_default().iter();
        let texts = parts.filter(|part| part.is("type", "text"));
        for text in texts.filter_map(|part| part.text("text")) {
            if !is_empty {
                let origin = self.text.last_origin();
                self.text.push(b"\n\n", origin);
            }
            is_empty &= text.is_empty();
            self.text.append(text);
        }
    }
}
