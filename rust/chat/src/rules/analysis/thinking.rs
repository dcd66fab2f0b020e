//! The markers around thinking.
//!
//! 1. An answer is rendered with and without thinking: the markers stand around what the thinking says.
//! 2. A question is rendered with thinking on and off: the generation prompt may open thinking, or open and close it.
//! 3. A tool call is rendered with thinking: some templates show thinking only there.
//!
//! Source: `analyze_reasoning` in `common/chat-diff-analyzer.cpp` of llama.cpp. Deviations: none.

use memchr::memmem;

use super::difference::{Piece, differing, pieces};
use super::markers;
use super::probe::{Probe, THINKING, assistant, caller, user};
use crate::error::Error;
use crate::json::Json;

/// How many bytes at the end of one rendering are looked for in the other one.
const ANCHOR_BYTES: usize = 64;

/// How a template writes thinking.
#[derive(Debug, Default)]
pub(super) struct Thinking {
    /// Whether it does.
    pub(super) exists: bool,
    /// What stands before it: may be empty.
    pub(super) start: Vec<u8>,
    /// What stands after it: may be empty.
    pub(super) end: Vec<u8>,
}

pub(super) fn find(probe: &mut Probe<'_>, calls_tools: bool) -> Result<Thinking, Error> {
    let mut thinking = Thinking::default();
    in_answers(probe, &mut thinking)?;
    in_questions(probe, &mut thinking)?;
    if calls_tools {
        in_calls(probe, &mut thinking)?;
    }
    Ok(thinking)
}

fn in_answers(probe: &mut Probe<'_>, thinking: &mut Thinking) -> Result<(), Error> {
    let without = probe.messages([user(), assistant(false)])?;
    let with = probe.messages([user(), assistant(true)])?;
    let (Some(without), Some(with)) = (without, with) else { return Ok(()) };
    let thought = THINKING.as_bytes();
    if memmem::find(differing(&without, &with).1, thought).is_none() {
        return Ok(());
    }
    if let Some(found) = markers::between(&with, thought, probe.scene.budget)? {
        thinking.exists = true;
        thinking.start = with[found.before].to_vec();
        thinking.end = with[found.spaces..found.after.end].to_vec();
    } else if let Some(after) = after_thought(&with) {
        thinking.exists = true;
        thinking.end = after;
    }
    Ok(())
}

/// The marker after the first place where the thought stands.
fn after_thought(text: &[u8]) -> Option<Vec<u8>> {
    let at = memmem::find(text, THINKING.as_bytes())?;
    markers::following(text, at + THINKING.len()).map(|marker| text[marker].to_vec())
}

fn in_questions(probe: &mut Probe<'_>, thinking: &mut Thinking) -> Result<(), Error> {
    let (Some(off), Some(on)) = (probe.question(false)?, probe.question(true)?) else { return Ok(()) };
    let (only_off, only_on) = differing(&off, &on);
    let (off_trimmed, on_trimmed) = (trim(only_off), trim(only_on));
    match (off_trimmed.is_empty(), on_trimmed.is_empty()) {
        (true, false) if on.ends_with(on_trimmed) && thinking.start.is_empty() => {
            thinking.start = only_on.to_vec();
            thinking.exists = true;
        }
        (false, true) if off.ends_with(off_trimmed) && thinking.end.is_empty() => {
            if let [.., marker @ Piece { is_marker: true, .. }, last] = &visible_pieces(&off)[..]
                && last.text == off_trimmed
            {
                thinking.start = marker.text.to_vec();
            }
            thinking.end = only_off.to_vec();
            thinking.exists = true;
        }
        (false, false) => {
            // The texts differ in more than their ends.
            let found = added_markers(&on, &off).or_else(|| added_markers(&off, &on));
            if let Some((start, end)) = found {
                if thinking.start.is_empty() {
                    thinking.start = start;
                }
                if thinking.end.is_empty() {
                    thinking.end = end;
                }
                thinking.exists = true;
            }
        }
        _ => {}
    }
    thinking.exists |= thinking.start.is_empty() && !thinking.end.is_empty();
    Ok(())
}

/// The two markers that follow in one text on what the other one ends with, if there is nothing else.
fn added_markers(base: &[u8], extended: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let anchor = &base[base.len().saturating_sub(ANCHOR_BYTES)..];
    let at = memmem::rfind(extended, anchor)? + anchor.len();
    match &visible_pieces(trim(&extended[at..]))[..] {
        [start @ Piece { is_marker: true, .. }, end @ Piece { is_marker: true, .. }] => {
            Some((start.text.to_vec(), end.text.to_vec()))
        }
        _ => None,
    }
}

fn in_calls(probe: &mut Probe<'_>, thinking: &mut Thinking) -> Result<(), Error> {
    let answer = probe.with_tools([user(), assistant(true)])?;
    let call = probe.with_tools([user(), caller(Json::Null, true)])?;
    let (Some(answer), Some(call)) = (answer, call) else { return Ok(()) };
    let thought = THINKING.as_bytes();
    if memmem::find(&answer, thought).is_some() || memmem::find(&call, thought).is_none() {
        return Ok(());
    }
    thinking.exists = true;
    match markers::between(&call, thought, probe.scene.budget)? {
        Some(found) => {
            thinking.start = call[found.before].to_vec();
            thinking.end = call[found.after].to_vec();
        }
        None => thinking.end = after_thought(&call).unwrap_or_default(),
    }
    Ok(())
}

/// Without white space at both ends, as C sees it.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let start = markers::spaces(text, 0);
    let len = text[start..].iter().rposition(|&byte| !crate::text::is_space(byte)).map_or(0, |last| last + 1);
    &text[start..start + len]
}

/// The pieces that are not white space alone.
fn visible_pieces(text: &[u8]) -> Vec<Piece<'_>> {
    pieces(text).into_iter().filter(|piece| !trim(piece.text).is_empty()).collect()
}
