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

/// A stretch of a text with one origin.
type Stretch = (Range<usize>, Origin);

/// A conversation that was rendered, and how to render a part of it.
pub(crate) struct Conversation<'a> {
    /// The text.
    pub text: &'a Text,
    /// Its runs.
    pub runs: Vec<Stretch>,
    /// The role of each message.
    pub roles: &'a [String],
    /// Which message a string of the caller belongs to.
    pub message: &'a dyn Fn(usize) -> Option<usize>,
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
        if self.has_generation {
            return Ok(joined(self.text, Origin::is_generated));
        }
        match mask {
            Mask::Content => Ok(joined(self.text, |origin| {
                let message = origin.string().and_then(self.message);
                message.and_then(|message| self.roles.get(message)).is_some_and(|role| is_assistant(role))
            })),
            Mask::Turn => self.turns(),
        }
    }

    /// The region of each message in a text. A role that stands alone is not template text of a loop: it has its message
    /// wherever the template writes it.
    fn regions(&self, text: &Text, runs: &[Stretch]) -> Vec<Option<Range<usize>>> {
        let own = |origin: &Origin| origin.string().and_then(self.message);
        let mut written: Vec<Option<Range<usize>>> = vec![None; self.roles.len()];
        let mut said = written.clone();
        for (run, origin) in runs {
            let hulls = if origin.is_caller() { &mut said } else { &mut written };
            let message = own(origin).or_else(|| origin.message());
            let message = message.filter(|&at| origin.is_caller() || !self.is_role(at, text, run));
            if let Some(hull) = message.and_then(|at| hulls.get_mut(at)) {
                hull.get_or_insert(run.clone()).end = run.end;
            }
        }
        for (at, region) in written.iter_mut().enumerate() {
            let Some(region) = region else {
                *region = said[at].take();
                continue;
            };
            // The message's strings right before and after what the template writes for it.
            let first = runs.partition_point(|(run, _)| run.end <= region.start);
            let last = runs.partition_point(|(run, _)| run.start < region.end);
            for (run, _) in runs[..first].iter().rev().take_while(|(_, origin)| own(origin) == Some(at)) {
                region.start = run.start;
            }
            for (run, _) in runs[last..].iter().take_while(|(_, origin)| own(origin) == Some(at)) {
                region.end = run.end;
            }
        }
        written
    }

    /// Whether a run is the role of message number `at` and nothing else.
    fn is_role(&self, at: usize, text: &Text, run: &Range<usize>) -> bool {
        self.roles.get(at).is_some_and(|role| text.as_bytes()[run.clone()] == *role.as_bytes())
    }

    fn turns(&mut self) -> Result<Vec<Range<usize>>, Error> {
        let is_loop = |run, at| !self.is_role(at, self.text, run);
        let is_looped = self.runs.iter().any(|(run, origin)| origin.message().is_some_and(|at| is_loop(run, at)));
        let regions = self.regions(self.text, &self.runs);
        let roles = self.roles;
        let mut found = Vec::new();
        let mut prompts: Vec<(Option<&str>, Vec<u8>)> = Vec::new();
        for at in (0..roles.len()).filter(|&at| is_assistant(&roles[at])) {
            let Some(region) = regions[at].clone() else { continue };
            if !is_looped {
                found.push(self.added(at, &region)?);
                continue;
            }
            let before = at.checked_sub(1).map(|at| roles[at].as_str());
            if !prompts.iter().any(|prompt| prompt.0 == before) {
                let asked = self.generation_prompts(at, &region);
                prompts.extend(asked.into_iter().map(|prompt| (before, prompt)));
            }
            // A template may write a header that it does not ask for after a tool's answer, so every prompt counts.
            let shared = prompts.iter().map(|prompt| self.shared(&region, &prompt.1)).max().unwrap_or(0);
            found.extend(self.turn(at, &region, shared)?);
        }
        found.retain(|turn| !turn.is_empty());
        Ok(found)
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Whose the byte at a place is.
    fn origin_at(&self, at: usize) -> Option<Origin> {
        self.runs.get(self.runs.partition_point(|(run, _)| run.end <= at)).map(|run| run.1)
    }

    /// What a message adds to the rendering of those before it.
    fn added(&mut self, at: usize, strings: &Range<usize>) -> Result<Range<usize>, Error> {
        let unknown = Error::Mask { message: at };
        let prompt = (self.render)(at, true).map_err(|_| unknown.clone())?;
        let closed = (self.render)(at + 1, false)?;
        let shared = num_shared(prompt.as_bytes(), self.bytes());
        let start = if shared == prompt.len() { shared } else { boundary(self.bytes(), shared) };
        let end = num_shared(closed.as_bytes(), self.bytes());
        if start > strings.start || end < strings.end {
            return Err(unknown);
        }
        Ok(start..self.without_blanks(start..end))
    }

    /// What asking for an answer writes where the region of message number `at` starts, and, if that is not how the region
    /// starts, what it adds to the end. Nothing if the template refuses to be asked.
    fn generation_prompts(&mut self, at: usize, region: &Range<usize>) -> Vec<Vec<u8>> {
        let mut prompts = Vec::new();
        if let Ok(with) = (self.render)(at, true) {
            let with = with.as_bytes();
            if with.len() >= region.start && with[..region.start] == self.bytes()[..region.start] {
                prompts.push(with[region.start..].to_vec());
            }
            let is_start = prompts.iter().any(|prompt| self.shared(region, prompt) == prompt.len());
            if let Some(Ok(without)) = (!is_start).then(|| (self.render)(at, false)) {
                let shared = num_shared(with, without.as_bytes());
                let start = if shared == without.len() { shared } else { boundary(with, shared) };
                prompts.push(with[start..].to_vec());
            }
        }
        if prompts.is_empty() {
            prompts.push(Vec::new());
        }
        prompts
    }

    /// How many bytes of the template at the start of a region are those of the generation prompt.
    fn shared(&self, region: &Range<usize>, prompt: &[u8]) -> usize {
        let first = self.runs.partition_point(|(run, _)| run.end <= region.start);
        let caller = self.runs[first..].iter().find(|(_, origin)| origin.is_caller());
        let end = caller.map_or(region.end, |(run, _)| run.start.clamp(region.start, region.end));
        let shared = num_shared(&self.bytes()[region.start..end], prompt);
        if shared == prompt.len() { shared } else { boundary(prompt, shared) }
    }

    /// The turn in the region of message number `at`, whose first bytes are shared with the generation prompt. It has two
    /// parts if messages of others are in between; otherwise, the second is empty.
    fn turn(&mut self, at: usize, region: &Range<usize>, shared: usize) -> Result<[Range<usize>; 2], Error> {
        let start = region.start + shared;
        let first = self.runs.partition_point(|(run, _)| run.end <= start);
        let last = self.runs.partition_point(|(run, _)| run.start < region.end);
        let message = |origin: &Origin| origin.string().and_then(self.message);
        let role = |origin: &Origin| message(origin).and_then(|message| self.roles.get(message));
        let is_foreign = |origin: &Origin| role(origin).is_some_and(|role| !is_assistant(role));
        let Some(foreign) = self.runs[first..last].iter().rposition(|(_, origin)| is_foreign(origin)) else {
            let end = self.without_blanks(start..region.end);
            let end = end + self.end_that_follows(start..end);
            return Ok([start..end, end..end]);
        };
        let rest = &self.runs[first + foreign + 1..last];
        let next = rest.iter().find(|(_, origin)| message(origin) == Some(at)).map(|(run, _)| run.start);

        // Up to where the message alone is written differently, and from its next string on.
        let alone = (self.render)(at + 1, false)?;
        let Some(own) = self.regions(&alone, &alone.runs().collect::<Vec<_>>())[at].clone() else {
            return Err(Error::Mask { message: at });
        };
        let own = (own.start + shared).min(alone.len());
        let same = start + num_shared(&self.bytes()[start..region.end], &alone.as_bytes()[own..]);
        let first = start..self.without_blanks(start..self.last_tag(same).max(start));
        let second = next.map(|next| next..self.without_blanks(next..region.end));
        Ok([first, second.unwrap_or_default()])
    }

    /// The length of an end-of-generation token that the template writes after a turn that has none.
    fn end_that_follows(&self, turn: Range<usize>) -> usize {
        let ends = self.ends;
        let is_template = self.origin_at(turn.end).is_some_and(|origin| !origin.is_caller());
        if !is_template || ends.iter().any(|text| self.bytes()[turn.clone()].ends_with(text)) {
            return 0;
        }
        let after = &self.bytes()[turn.end..];
        ends.iter().filter(|text| after.starts_with(text)).map(|text| text.len()).max().unwrap_or(0)
    }

    /// The last place up to `at` where a word or a tag ends that the template writes.
    fn last_tag(&self, at: usize) -> usize {
        let run = self.runs.get(self.runs.partition_point(|(run, _)| run.end <= at));
        match run {
            Some((run, origin)) if !origin.is_caller() => {
                run.start + boundary(&self.bytes()[run.start..], at - run.start)
            }
            _ => at,
        }
    }

    /// The end of a range without white space that the template wrote there.
    fn without_blanks(&self, range: Range<usize>) -> usize {
        let last = self.runs.partition_point(|(run, _)| run.start < range.end);
        let mut end = range.end;
        for (run, origin) in self.runs[..last].iter().rev() {
            let start = run.start.max(range.start);
            if origin.is_caller() || start >= end {
                break;
            }
            let kept = self.bytes()[start..end].iter().rposition(|byte| !is_space(*byte));
            end = kept.map_or(start, |last| start + last + 1);
            if kept.is_some() {
                break;
            }
        }
        end
    }
}

/// The ranges of a text whose origins are wanted.
fn joined(text: &Text, is_wanted: impl Fn(Origin) -> bool) -> Vec<Range<usize>> {
    text.stretches(is_wanted).into_iter().filter_map(|(range, is_wanted)| is_wanted.then_some(range)).collect()
}

/// The last place up to `at` where a word or a tag ends, so that `<think>` and `<tool_call>` share nothing.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let ends = |byte: &u8| is_space(*byte) || matches!(byte, b'>' | b']' | b'}' | b':');
    bytes[..at].iter().rposition(ends).map_or(0, |last| last + 1)
}

fn is_assistant(role: &str) -> bool {
    ASSISTANT.contains(&role)
}
