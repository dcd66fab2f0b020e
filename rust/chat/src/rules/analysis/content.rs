//! The markers around content, if the template always writes them.
//!
//! Source: `analyze_content` in `common/chat-diff-analyzer.cpp` of llama.cpp. Deviations: none.

use memchr::memmem;

use super::difference::differing;
use super::markers;
use super::probe::{ANSWER, Probe, thinker, user};
use super::thinking::{Thinking, trim};
use crate::error::Error;

/// The marker before content. `plain` and `call` are renderings of an answer and of a tool call.
pub(super) fn find(
    probe: &mut Probe<'_>,
    thinking: &Thinking,
    plain: &[u8],
    call: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let Some(thought) = probe.with_tools([user(), thinker()])? else { return Ok(None) };
    let beside_call = differing(plain, call).0;
    let mut beside_thought = differing(plain, &thought).0;
    let end = thinking.end.as_slice();
    let after_thinking = memmem::find(beside_thought, end).filter(|_| !end.is_empty()).map(|at| at + end.len());
    if trim(beside_call) == ANSWER.as_bytes() {
        let starts_with_space = markers::spaces(beside_thought, 0) > 0;
        let follows_thinking =
            |at: usize| beside_thought[markers::spaces(beside_thought, at)..].starts_with(ANSWER.as_bytes());
        let mut ends = memmem::find_iter(beside_thought, end).filter(|_| thinking.exists && !end.is_empty());
        if !starts_with_space || ends.any(|at| follows_thinking(at + end.len())) {
            return Ok(None);
        }
    }
    beside_thought = &beside_thought[after_thinking.unwrap_or(0)..];
    let text = if beside_thought.len() > beside_call.len() { beside_thought } else { beside_call };
    let found = markers::between(text, ANSWER.as_bytes(), probe.scene.budget)?;
    Ok(found.map(|found| text[found.before].to_vec()))
}
