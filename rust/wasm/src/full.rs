//! Conversations and traces, which make up a third of the engine. The smaller engine is built without them.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use ggtok_chat::{Mask, Now};
use ggtok_core::gguf::Value;
use ggtok_core::vocab::Kind;
use ggtok_explain::Explainer;
use wasm_bindgen::prelude::*;

use crate::chat::{Asked, Chat, LastTemplate};
use crate::failure::failed;
use crate::{RawTokenizer, options};

/// What is made for a tokenizer on first use.
#[derive(Default)]
pub struct Made {
    explainer: OnceCell<Rc<Explainer>>,
    last_template: LastTemplate,
}

#[wasm_bindgen]
impl RawTokenizer {
    /// Every step from a text to its tokens.
    pub fn explain(&self, text: &[u8], add_special: bool, parse_special: bool) -> Result<RawTrace, JsValue> {
        let explainer = self.made.explainer.get_or_init(|| {
            let merges = match self.metadata.get("tokenizer.ggml.merges") {
                Some(Value::Array(array)) if self.core.vocabulary().kind() == Kind::Bpe => array.strings(),
                _ => None,
            };
            Rc::new(Explainer::new(Arc::clone(&self.core), merges))
        });
        let trace = explainer.explain(text, options(add_special, parse_special)).map_err(failed)?;
        Ok(RawTrace { explainer: Rc::clone(explainer), trace })
    }

    /// Renders a conversation: the body of a request, and fields and variables, all in JSON.
    #[allow(clippy::too_many_arguments, reason = "`ggtok.js` passes options one by one")]
    pub fn chat(
        &self,
        body: &[u8],
        more: &[u8],
        template: Option<String>,
        template_text: Option<String>,
        media_marker: Option<String>,
        seconds: f64,
        offset: i32,
        zone: String,
    ) -> Result<Chat, JsValue> {
        let now = Now { seconds: seconds as i64, offset, zone };
        let asked = Asked { template, template_text, media_marker, now };
        Chat::new(&self.core, &self.metadata, &self.made.last_template, body, more, asked).map_err(failed)
    }

    /// The ids of a conversation, their spans in a unit, and what belongs to which message, as JSON. `mask` is `turn`,
    /// `content` or nothing.
    pub fn encode_chat(&self, chat: &Chat, add_special: bool, mask: &str, unit: &str) -> Result<String, JsValue> {
        let mask = match mask {
            "turn" => Some(Mask::Turn),
            "content" => Some(Mask::Content),
            _ => None,
        };
        self.core.with_encoder(|encoder| chat.encode(encoder, add_special, mask, unit)).map_err(failed)
    }
}

/// A trace, with what it takes to say why.
#[wasm_bindgen]
pub struct RawTrace {
    explainer: Rc<Explainer>,
    trace: ggtok_explain::trace::Trace,
}

#[wasm_bindgen]
impl RawTrace {
    /// All of it as JSON.
    pub fn json(&self) -> Result<String, JsValue> {
        serde_json::to_string(&self.trace).map_err(failed)
    }

    /// All that a page shows of it, as JSON.
    pub fn page(&self) -> Result<String, JsValue> {
        serde_json::to_string(&self.trace.page()).map_err(failed)
    }

    /// Why a range of bytes is not one token, or is, as JSON.
    pub fn why(&self, start: usize, end: usize) -> Result<String, JsValue> {
        let why = self.explainer.why(&self.trace, start..end).map_err(failed)?;
        serde_json::to_string(&why).map_err(failed)
    }
}
