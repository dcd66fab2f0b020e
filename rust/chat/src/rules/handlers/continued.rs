//! A last message that is continued: its thinking and its content, with markers around them.
//!
//! Source: `render_content` in `common/chat.cpp` of llama.cpp, what its handlers have in common, and `generate_parser` in
//! `common/chat-auto-parser-generator.cpp`. Deviations: 1. The markers count as written by the template, in the turn of
//! this message.

use memchr::memmem;

use super::{Form, Handler, Thinking, messages};
use crate::error::Error;
use crate::json::{Json, Object};
use crate::language::Template;
use crate::rules::params::{Continuation, Params};
use crate::text::{Origin, Text};

/// What begins a turn of Gemma's.
pub(super) const MODEL_TURN: &[u8] = b"<|turn>model\n";

impl Handler<'_> {
    /// What is written for a message that is continued, where the template is `asking` for an answer in this way.
    pub(super) fn continued(
        &self,
        template: &Template,
        params: &Params,
        message: &Object,
        asking: &Text,
        lacks_turn: bool,
    ) -> Result<Text, Error> {
        let given = message.text("reasoning_content");
        let mut text = Text::default();
        let turn = message.message.map_or(Origin::TEMPLATE, Origin::turn);
        let mut opening = self.opening.to_vec();
        let mut thinking = self.thinking;
        match self.form {
            Form::Prompted => text.append(asking),
            Form::Found => {
                text.append(asking);
                let begun = memmem::find(asking.as_bytes(), &opening).filter(|_| !opening.is_empty());
                text.truncate(begun.unwrap_or(asking.len()));
            }
            Form::Closed if given.is_none() => {
                (opening, thinking) = ("<｜Assistant｜></think>".into(), Thinking::Dropped);
            }
            Form::Horizon => {
                let [start, end] = messages::horizon_markers(params, template)?;
                opening.extend_from_slice(start.as_bytes());
                thinking = Thinking::Before(end.as_bytes());
            }
            _ if lacks_turn => text.push(MODEL_TURN, turn),
            _ => {}
        }
        text.push(&opening, turn);

        let has_content = match params.continuation {
            _ if thinking == Thinking::Ignored => true,
            // The thinking is continued if there is nothing else in the message.
            Continuation::Auto => given.is_none() || !message.text("content").is_some_and(Text::is_empty),
            asked => asked == Continuation::Content,
        };
        if let Thinking::Before(closing) = thinking {
            given.iter().for_each(|thinking| text.append(thinking));
            text.push(if has_content { closing } else { b"" }, turn);
        }
        if has_content {
            append_content(&mut text, message.get("content").unwrap_or(&Json::Null));
        }
        Ok(text)
    }
}

/// Appends a content: `render_content`. Parts that are not text are left out.
fn append_content(text: &mut Text, content: &Json) {
    content.as_text().iter().for_each(|content| text.append(content));
    let mut is_empty = true;
    let parts = content.as_array().unwrap_or_default().iter();
    for part in parts.filter(|part| part.is("type", "text")).filter_map(|part| part.text("text")) {
        if !is_empty {
            text.push(b"\n\n", text.last_origin());
        }
        is_empty &= part.is_empty();
        text.append(part);
    }
}
