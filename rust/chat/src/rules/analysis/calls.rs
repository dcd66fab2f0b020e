//! How a template writes tool calls: as JSON, or some other way.
//!
//! Source: `analyze_tool_calls` and what it calls in `common/chat-diff-analyzer.cpp` of llama.cpp. Deviations: 1. Only
//! what decides whether schemas are looked at, or whether the template is refused.

use memchr::memmem;

use super::difference::differing;
use super::markers;
use super::probe::{ARGUMENT, FUNCTION};
use super::thinking::Thinking;
use crate::budget::Budget;
use crate::error::Error;
use crate::json::Json;
use crate::text::{Text, is_space};

/// How tool calls are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Format {
    /// Not at all.
    #[default]
    None,
    /// The whole call as JSON.
    Json,
    /// The arguments as JSON.
    JsonArguments,
    /// Each argument by itself.
    Tagged,
}

/// The format of tool calls, and the marker before them, from renderings of an answer and of a call; or why the
/// template is refused.
pub(super) fn find(
    thinking: &Thinking,
    plain: &[u8],
    call: &[u8],
    budget: &mut Budget,
) -> Result<Result<(Format, Vec<u8>), &'static str>, Error> {
    let call = differing(plain, call).1;
    if call.is_empty() {
        return Ok(Ok((Format::None, Vec::new())));
    }
    let is_json = is_in_json(call, FUNCTION);
    let format = if is_in_json(call, ARGUMENT) { Format::JsonArguments } else { Format::Tagged };
    let call = without(without(call.to_vec(), &thinking.start), &thinking.end);
    if !is_json {
        return Ok(Ok((format, marker(&call, budget)?)));
    }

    let ends = (memchr::memchr(b'{', &call), memchr::memrchr(b'}', &call));
    let (Some(start), Some(end)) = ends else {
        return Ok(Err("the template writes tool calls like JSON, but without braces"));
    };
    match call.get(start..=end).map(|json| Json::parse_text(&Text::template(json))) {
        Some(Ok(_)) => {}
        Some(Err(error @ Error::Limit { .. })) => return Err(error),
        _ => return Ok(Err("the template writes tool calls like JSON, but not as one value of JSON")),
    }
    let (mut before, after) = (&call[..start], &call[end + 1..]);
    let is_end_of_array = after.iter().find(|&&byte| !is_space(byte)) == Some(&b']');
    let in_array = before.iter().rposition(|&byte| !is_space(byte)).filter(|&at| before[at] == b'[');
    if let Some(at) = in_array.filter(|_| is_end_of_array) {
        before = &before[..at];
    }
    Ok(Ok((Format::Json, before[markers::spaces(before, 0)..].to_vec())))
}

/// The marker before a call that is not JSON, with the white space after it; empty if there is none. Another marker may
/// follow before the name of the function, or one that has the name in it.
fn marker(call: &[u8], budget: &mut Budget) -> Result<Vec<u8>, Error> {
    let function = function_marker(call, budget)?;
    for starts in [true, false] {
        for at in memchr::memchr2_iter(b'<', b'[', call) {
            budget.steps(1 + call.len() / 64)?;
            let Some(found) = markers::following(call, at).filter(|found| found.start == at) else { continue };
            let rest = &call[found.end..];
            let is_before = match starts {
                true => markers::following(rest, 0)
                    .is_some_and(|second| second.start == 0 && memmem::find(&rest[second.end..], &function).is_some()),
                false => rest.starts_with(&function),
            };
            if is_before {
                return Ok(call[found].to_vec());
            }
        }
    }
    Ok(Vec::new())
}

/// The marker that has the name of the function in it, or the name.
fn function_marker(call: &[u8], budget: &mut Budget) -> Result<Vec<u8>, Error> {
    for at in memchr::memchr2_iter(b'<', b'[', call) {
        budget.steps(1 + call.len() / 64)?;
        let (opener, closer) = if call[at] == b'<' { (b'<', b'>') } else { (b'[', b']') };
        let Some(name) = memmem::find(&call[at..], FUNCTION.as_bytes()).map(|len| at + len) else { break };
        let end = name + FUNCTION.len();
        if call[at..name].contains(&closer) {
            continue;
        }
        let next = markers::spaces(call, end);
        let has_marker_next = call.get(next) == Some(&opener);
        let closed = memchr::memchr(closer, &call[end..]).map(|len| end + len + 1);
        let found = match (opener, closed) {
            (b'<', Some(closed)) if !has_marker_next => markers::spaces(call, closed),
            (b'[', closed) if !has_marker_next || closed.is_none() => next,
            _ => continue,
        };
        return Ok(call[at..found].to_vec());
    }
    Ok(FUNCTION.as_bytes().to_vec())
}

/// Whether a name stands in quotes after a brace or a colon.
fn is_in_json(text: &[u8], name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    memmem::find_iter(text, quoted.as_bytes()).any(|at| {
        let before = text[..at].iter().rev().find(|&&byte| !is_space(byte));
        matches!(before, Some(b'{' | b':'))
    })
}

/// Without the first place where a marker stands.
fn without(mut text: Vec<u8>, marker: &[u8]) -> Vec<u8> {
    if let Some(at) = memmem::find(&text, marker).filter(|_| !marker.is_empty()) {
        text.drain(at..at + marker.len());
    }
    text
}
