//! Templates that llama.cpp does not know: the markers around their thinking are found by rendering probes and looking at
//! where these differ ("differential analysis").
//!
//! 1. An answer is rendered with and without thinking: the markers stand around what the thinking says.
//! 2. A question is rendered with thinking on and off: the generation prompt may open thinking, or open and close it.
//! 3. A tool call is rendered with thinking: some templates show thinking only there.
//! 4. For some templates, a text in their source corrects the result.
//! 5. [`Handler::between`](super::handlers::Handler::between) them: a continued message is written after the generation
//!    prompt, with the markers around its thinking even if it has none.
//!
//! Source: `analyze_template` and `analyze_reasoning` in `common/chat-diff-analyzer.cpp` of llama.cpp. Deviations: 1. Only what makes the prompt, as in
//! [`handlers`](super::handlers): how a template writes content and tool calls is not analysed, and no template
//! is refused because llama.cpp cannot analyse that. 2. As in `handlers`, 2.

mod difference;
mod markers;
mod probe;

use memchr::memmem;

use self::difference::{Piece, differing, pieces};
use self::probe::{ANSWER, CALL, THINKING, THOUGHTFUL, USER, rendered};
use super::params::Scene;
use crate::budget::Budget;
use crate::error::Error;
use crate::language::Template;

/// How many bytes at the end of one rendering are looked for in the other one.
const ANCHOR_BYTES: usize = 64;

/// How a template writes thinking. The same for all conversations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thinking {
    /// Whether it does.
    pub(crate) exists: bool,
    /// What stands before it: may be empty.
    pub(crate) start: Vec<u8>,
    /// What stands after it: may be empty.
    pub(crate) end: Vec<u8>,
}

impl Thinking {
    /// Renders the probes. What it costs is charged.
    ///
    /// # Errors
    /// [`Error::Limit`]: there is not enough left of the budget, which may be different another time.
    pub(crate) fn of(scene: &mut Scene<'_>) -> Result<Self, Error> {
        let mut thinking = Self::default();
        for probe in [in_answers, in_questions, in_calls] {
            // A template that cannot render a probe says nothing by it.
            if let Err(error @ Error::Limit { .. }) = probe(scene, &mut thinking) {
                return Err(error);
            }
        }
        thinking.exists |= !thinking.start.is_empty() || !thinking.end.is_empty();
        thinking.put_right(scene.template);
        Ok(thinking)
    }

    /// Reads the markers around the thought in a text, or only the one after it.
    fn read(&mut self, text: &[u8], budget: &mut Budget) -> Result<(), Error> {
        match markers::around(text, THINKING, budget)? {
            Some([before, after]) => {
                self.start = text[before].to_vec();
                self.end = text[after].to_vec();
            }
            None => self.end = after_thought(text).unwrap_or_default(),
        }
        Ok(())
    }

    fn put_right(&mut self, template: &Template) {
        let has = |text: &str| template.contains(text);
        let opens_with = |start: &str| Self { exists: true, start: start.into(), end: "</think>".into() };
        let splits_content = has("content.split('</think>')") && !has("reasoning_content") && !has("<SPECIAL_12>");
        let granite = "Write your thoughts between <think></think> and write your response between \
            <response></response>";
        // Qwen's and DeepSeek's first thinking models, and Granite 3.3.
        if !self.exists && splits_content || has(granite) {
            *self = opens_with("<think>");
        }
        // Nemotron Nano v2.
        if ["<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>"].iter().all(|text| has(text)) {
            *self = opens_with("<think>\n");
        }
        // Laguna.
        if has("laguna_glm_thinking") {
            self.start = self.start.trim_ascii().to_vec();
            self.end = self.end.trim_ascii().to_vec();
        }
    }
}

fn in_answers(scene: &mut Scene<'_>, thinking: &mut Thinking) -> Result<(), Error> {
    let without = rendered(scene, &[USER, ANSWER], false, None)?;
    let with = rendered(scene, &[USER, THOUGHTFUL], false, None)?;
    if memmem::find(differing(&without, &with).1, THINKING).is_none() {
        return Ok(());
    }
    thinking.read(&with, scene.budget)
}

/// The marker after the first place where the thought stands.
fn after_thought(text: &[u8]) -> Option<Vec<u8>> {
    let at = memmem::find(text, THINKING)?;
    let marker = markers::following(text, at + THINKING.len())?;
    Some(text[marker].trim_ascii_start().to_vec())
}

fn in_questions(scene: &mut Scene<'_>, thinking: &mut Thinking) -> Result<(), Error> {
    let off = rendered(scene, &[USER], false, Some(false))?;
    let on = rendered(scene, &[USER], false, Some(true))?;
    let (only_off, only_on) = differing(&off, &on);
    let off_trimmed = only_off.trim_ascii();
    let on_trimmed = only_on.trim_ascii();
    match (off_trimmed.is_empty(), on_trimmed.is_empty()) {
        (true, false) if on.ends_with(on_trimmed) && thinking.start.is_empty() => {
            thinking.start = only_on.to_vec();
        }
        (false, true) if off.ends_with(off_trimmed) && thinking.end.is_empty() => {
            if let [.., marker @ Piece { is_marker: true, .. }, last] = &visible_pieces(&off)[..]
                && last.text == off_trimmed
            {
                thinking.start = marker.text.to_vec();
            }
            thinking.end = only_off.to_vec();
        }
        (false, false) => {
            // The texts differ in more than their ends.
            let found = added_markers(&on, &off).or_else(|| added_markers(&off, &on));
            let (start, end) = found.unwrap_or_default();
            if thinking.start.is_empty() {
                thinking.start = start;
            }
            if thinking.end.is_empty() {
                thinking.end = end;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The two markers that follow in one text on what the other one ends with, if there is nothing else.
fn added_markers(base: &[u8], extended: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let anchor = &base[base.len().saturating_sub(ANCHOR_BYTES)..];
    let at = memmem::rfind(extended, anchor)? + anchor.len();
    match &visible_pieces(extended[at..].trim_ascii())[..] {
        [start @ Piece { is_marker: true, .. }, end @ Piece { is_marker: true, .. }] => {
            Some((start.text.to_vec(), end.text.to_vec()))
        }
        _ => None,
    }
}

fn in_calls(scene: &mut Scene<'_>, thinking: &mut Thinking) -> Result<(), Error> {
    if !scene.caps.supports_tool_calls {
        return Ok(());
    }
    let answer = rendered(scene, &[USER, THOUGHTFUL], true, None)?;
    let call = rendered(scene, &[USER, CALL], true, None)?;
    if memmem::find(&answer, THINKING).is_some() || memmem::find(&call, THINKING).is_none() {
        return Ok(());
    }
    thinking.exists = true;
    thinking.read(&call, scene.budget)?;
    thinking.end = thinking.end.trim_ascii_start().to_vec();
    Ok(())
}

/// The pieces that are not white space alone.
fn visible_pieces(text: &[u8]) -> Vec<Piece<'_>> {
    pieces(text).into_iter().filter(|piece| !piece.text.trim_ascii().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use crate::clock::Now;
    use crate::error::Error;
    use crate::rules::{ChatTemplate, Options, Request};

    fn prompt(template: &str, body: &str) -> Result<String, Error> {
        let template = ChatTemplate::new(template.as_bytes())?;
        let request = Request::parse(body.as_bytes())?;
        let text = template.apply(&request, &Options::default(), &Now::default())?.text;
        Ok(String::from_utf8(text.into_bytes()).unwrap())
    }

    const TURNS: &str = "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}\
        <t>{{ m.reasoning_content }}</t>{% endif %}{{ m.content }}{% endfor %}\
        {% if add_generation_prompt %}<assistant>{% endif %}";

    #[test]
    fn thinking_is_continued_with_the_markers_found() {
        let question = r#"{"role": "user", "content": "Q"}"#;
        for (answer, expected) in [
            (r#""content": "C", "reasoning_content": "T""#, "<user>Q<assistant><t>T</t>C"),
            (r#""content": "", "reasoning_content": "T""#, "<user>Q<assistant><t>T"),
            (r#""content": "C""#, "<user>Q<assistant><t></t>C"),
            (r#""content": """#, "<user>Q"),
        ] {
            let body = format!(r#"{{"messages": [{question}, {{"role": "assistant", {answer}}}]}}"#);
            assert_eq!(prompt(TURNS, &body).unwrap(), expected);
        }
    }

    #[test]
    fn a_generation_prompt_that_thinks_is_cut() {
        let template = TURNS.replace("<assistant>{% endif %}", "<assistant><t>\n{% endif %}");
        let body = r#"{"messages": [{"role": "assistant", "content": "C", "reasoning_content": "T"}]}"#;
        assert_eq!(prompt(&template, body).unwrap(), "<assistant><t>T</t>C");
    }

    #[test]
    fn markers_of_the_generation_prompt_are_found() {
        let template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}\
            {% if add_generation_prompt %}<a><t>\
            {% if not enable_thinking %}</t>{% endif %}{% endif %}";
        let body = r#"{"messages": [{"role": "assistant", "content": "C", "reasoning_content": "T"}]}"#;
        assert_eq!(prompt(template, body).unwrap(), "<a><t>T</t>C");
    }
}
