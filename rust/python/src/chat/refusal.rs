//! Tokens that a file types user-defined are read in every text. Those that work like control tokens can be refused in
//! strings of the caller.

use ggtok_chat::Text;
use ggtok_core::Spans;
use ggtok_core::vocab::Vocabulary;
use pyo3::prelude::*;

use crate::errors::python;

/// Checks that no string of the caller contains one.
pub(super) fn check(vocabulary: &Vocabulary, template: &[u8], text: &Text, spans: &Spans) -> PyResult<()> {
    for (&id, span) in spans.ids.iter().zip(&spans.spans) {
        if span.is_empty() || !vocabulary.attributes(id).is_user_defined() {
            continue;
        }
        let token = vocabulary.text(id);
        let is_caller = text.slice(span.clone()).runs().any(|(_, origin)| origin.is_caller());
        if is_caller && is_control_like(token, template) {
            let token = String::from_utf8_lossy(token);
            return Err(python::VocabularyError::new_err(format!(
                "a string of the conversation contains {token:?}, which this vocabulary reads as the token {id} in \
                 every text: it does at byte {}",
                span.start
            )));
        }
    }
    Ok(())
}

/// Whether a text looks like a tag, and either like `<|this|>` or the template writes it.
fn is_control_like(token: &[u8], template: &[u8]) -> bool {
    let is_tag = matches!((token.first(), token.last()), (Some(b'<'), Some(b'>')) | (Some(b'['), Some(b']')));
    is_tag && (token.contains(&b'|') || memchr::memmem::find(template, token).is_some())
}
