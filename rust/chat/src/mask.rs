//! Which bytes of a conversation the model itself would write: what it is trained on.
//!
//! A *turn* begins after what it shares with the generation prompt, and ends with what the template writes to end it:
//! content, thinking, tool calls with their syntax, and the end of the turn. Templates do not say where a turn is, so it
//! is worked out:
//!
//! 1. Text that the template writes while its loop is at a message, with the message's own strings, is the message's
//!    *region*. If no text is written in a loop over messages, a region is what a message adds to the rendering of those
//!    before it.
//! 2. The *generation prompt* is what asking for an answer adds to the rendering of the messages before. It may differ
//!    after a tool's answer, so it is found once for each role that an assistant's message follows.
//! 3. A turn is its region without the start that it shares with the generation prompt, and without white space that the
//!    template writes at the end.
//! 4. Where a region contains strings of messages of others, such as tools' answers, the turn ends where the rendering
//!    without these messages does.
//! 5. If a region does not end its turn, and what follows it is an end-of-generation token, that token is learned too.
//!
//! `{% generation %}` in the template wins over all of this.
//!
//! Time: O(bytes), and up to three renderings for each role that an assistant's message follows.

use std::collections::HashMap;
use std::ops::Range;

use crate::error::Error;
use crate::text::{Origin, Text, is_space, num_shared};

/// What a mask covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mask {
    /// Everything that the model would write.
    #[default]
    Turn,
    /// The strings of the assistant's messages.
    Content,
}

/// The roles of messages that the model writes.
pub const ASSISTANT: [&str; 3] = ["assistant", "model", "ai"];

/// A conversation that was rendered, and how to render a part of it.
pub(crate) struct Conversation<'a> {
    /// The text.
    pub text: &'a Text,
    /// The role of each message.
    pub roles: &'a [String],
    /// The text of the first so many messages, with the generation prompt or without.
    pub render: &'a mut dyn FnMut(usize, bool) -> Result<Text, Error>,
    /// The texts of the vocabulary's end-of-generation tokens.
    pub ends: &'a [&'a [u8]],
    /// Whether the template has a `{% generation %}`.
    pub has_generation: bool,
}

impl Conversation<'_> {
    /// The bytes that a mask covers, as ranges in order.
    ///
    /// # Errors
    /// [`Error::Mask`] if they cannot be known; whatever rendering a part of the conversation raises.
    pub fn masked(&mut self, mask: Mask) -> Result<Vec<Range<usize>>, Error> {
        match mask {
            _ if self.has_generation => Ok(joined(self.text, Origin::is_generated)),
            Mask::Content => Ok(joined(self.text, |origin| self.is_assistants(origin) == Some(true))),
            Mask::Turn => self.turns(),
        }
    }

    /// Whether bytes of this origin come from a string of an assistant's message, if they come from one of a message.
    fn is_assistants(&self, origin: Origin) -> Option<bool> {
        self.roles.get(origin.message_of_caller()?).map(|role| ASSISTANT.contains(&role.as_str()))
    }

    /// What the template writes for each message of a text in its loop. A role that stands alone is not template text of
    /// a loop: it has its message wherever the template writes it.
    fn written(&self, text: &Text) -> Vec<Option<Range<usize>>> {
        let is_role = |at: usize, run: &Range<usize>| {
            self.roles.get(at).is_some_and(|role| text.as_bytes()[run.clone()] == *role.as_bytes())
        };
        text.hulls(self.roles.len(), |run, origin| {
            origin.message().filter(|&at| !origin.is_caller() && !is_role(at, run))
        })
    }

    /// The region of each message in a text.
    fn regions(&self, text: &Text) -> Vec<Option<Range<usize>>> {
        let mut regions = self.written(text);
        let mut said = text.hulls(self.roles.len(), |_, origin| origin.message_of_caller());
        for (at, region) in regions.iter_mut().enumerate() {
            let Some(region) = region else {
                *region = said[at].take();
                continue;
            };
            // The message's strings right before and after what the template writes for it.
            let own = |place| text.run_at(place).filter(|run| run.1.message_of_caller() == Some(at));
            while let Some((run, _)) = region.start.checked_sub(1).and_then(own) {
                region.start = run.start;
            }
            while let Some((run, _)) = own(region.end) {
                region.end = run.end;
            }
        }
        regions
    }

    fn turns(&mut self) -> Result<Vec<Range<usize>>, Error> {
        let is_looped = self.written(self.text).iter().any(Option::is_some);
        let regions = self.regions(self.text);
        let roles = self.roles;
        let mut found = Vec::new();
        // For each role before a turn.
        let mut prompts: HashMap<Option<&str>, Vec<Vec<u8>>> = HashMap::new();
        for at in (0..roles.len()).filter(|&at| ASSISTANT.contains(&roles[at].as_str())) {
            let Some(region) = regions[at].clone() else { continue };
            if !is_looped {
                found.push(self.added(at, &region)?);
                continue;
            }
            let before = at.checked_sub(1).map(|at| roles[at].as_str());
            prompts.entry(before).or_insert_with(|| self.generation_prompts(at, &region));
            // A template may write a header that it does not ask for after a tool's answer, so every prompt counts.
            let shared = prompts.values().flatten().map(|prompt| self.shared(&region, prompt)).max().unwrap_or(0);
            found.extend(self.turn(at, &region, shared)?);
        }
        found.retain(|turn| !turn.is_empty());
        Ok(found)
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// What a message adds to the rendering of those before it.
    fn added(&mut self, at: usize, strings: &Range<usize>) -> Result<Range<usize>, Error> {
        let unknown = Error::Mask { message: at };
        let prompt = (self.render)(at, true).map_err(|_| unknown.clone())?;
        let closed = (self.render)(at + 1, false)?;
        let start = end_of_shared(self.bytes(), prompt.as_bytes());
        let end = num_shared(closed.as_bytes(), self.bytes());
        if start > strings.start || end < strings.end {
            return Err(unknown);
        }
        Ok(start..self.without_blanks(start..end))
    }

    /// What asking for an answer writes where the region of message number `at` starts, and, if that is not how the region
    /// starts, what it adds to the end; and nothing, which is all if the template refuses to be asked.
    fn generation_prompts(&mut self, at: usize, region: &Range<usize>) -> Vec<Vec<u8>> {
        let mut prompts = vec![Vec::new()];
        if let Ok(with) = (self.render)(at, true) {
            let with = with.as_bytes();
            let prompt = with.strip_prefix(&self.bytes()[..region.start]);
            prompts.extend(prompt.map(<[u8]>::to_vec));
            let is_start = prompt.is_some_and(|prompt| self.shared(region, prompt) == prompt.len());
            if !is_start && let Ok(without) = (self.render)(at, false) {
                prompts.push(with[end_of_shared(with, without.as_bytes())..].to_vec());
            }
        }
        prompts
    }

    /// How many bytes of the template at the start of a region are those of the generation prompt.
    fn shared(&self, region: &Range<usize>, prompt: &[u8]) -> usize {
        let caller = self.text.runs_in(region.clone()).find(|(_, origin)| origin.is_caller());
        let end = caller.map_or(region.end, |(run, _)| run.start);
        end_of_shared(&self.bytes()[region.start..end], prompt)
    }

    /// The turn in the region of message number `at`, whose first bytes are shared with the generation prompt. It has two
    /// parts if messages of others are in between; otherwise, the second is empty.
    fn turn(&mut self, at: usize, region: &Range<usize>, shared: usize) -> Result<[Range<usize>; 2], Error> {
        let start = region.start + shared;
        let runs = self.text.runs_in(start..region.end);
        let Some((foreign, _)) = runs.filter(|(_, origin)| self.is_assistants(*origin) == Some(false)).last() else {
            let end = self.without_blanks(start..region.end);
            let end = end + self.end_that_follows(start..end);
            return Ok([start..end, end..end]);
        };
        let mut rest = self.text.runs_in(foreign.end..region.end);
        let next = rest.find(|(_, origin)| origin.message_of_caller() == Some(at)).map(|(run, _)| run.start);

        // Up to where the message alone is written differently, and from its next string on.
        let alone = (self.render)(at + 1, false)?;
        let own = self.regions(&alone)[at].clone().ok_or(Error::Mask { message: at })?;
        let own = (own.start + shared).min(alone.len());
        let same = start + num_shared(&self.bytes()[start..region.end], &alone.as_bytes()[own..]);
        let first = start..self.without_blanks(start..self.last_tag(same).max(start));
        let second = next.map(|next| next..self.without_blanks(next..region.end));
        Ok([first, second.unwrap_or_default()])
    }

    /// The length of an end-of-generation token that the template writes after a turn that has none.
    fn end_that_follows(&self, turn: Range<usize>) -> usize {
        let ends = self.ends;
        let is_caller = self.text.origin_at(turn.end).is_caller();
        if is_caller || ends.iter().any(|text| self.bytes()[turn.clone()].ends_with(text)) {
            return 0;
        }
        let after = &self.bytes()[turn.end..];
        ends.iter().filter(|text| after.starts_with(text)).map(|text| text.len()).max().unwrap_or(0)
    }

    /// The last place up to `at` where a word or a tag ends that the template writes.
    fn last_tag(&self, at: usize) -> usize {
        let run = self.text.run_at(at).filter(|(_, origin)| !origin.is_caller());
        run.map_or(at, |(run, _)| run.start + boundary(&self.bytes()[run.start..], at - run.start))
    }

    /// The end of a range without white space that the template wrote there.
    fn without_blanks(&self, range: Range<usize>) -> usize {
        let is_blank = |at: &usize| is_space(self.bytes()[*at]) && !self.text.origin_at(*at).is_caller();
        range.end - range.rev().take_while(is_blank).count()
    }
}

/// The ranges of a text whose origins are wanted.
fn joined(text: &Text, is_wanted: impl Fn(Origin) -> bool) -> Vec<Range<usize>> {
    text.stretches(is_wanted).into_iter().filter_map(|(range, is_wanted)| is_wanted.then_some(range)).collect()
}

/// How many bytes at the start of a text are those of another, up to its end or the last boundary.
fn end_of_shared(text: &[u8], other: &[u8]) -> usize {
    let shared = num_shared(text, other);
    if shared == other.len() { shared } else { boundary(text, shared) }
}

/// The last place up to `at` where a word or a tag ends, so that `<think>` and `<tool_call>` share nothing.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let ends = |byte: &u8| is_space(*byte) || matches!(byte, b'>' | b']' | b'}' | b':');
    bytes[..at].iter().rposition(ends).map_or(0, |last| last + 1)
}
