//! The core for browsers, as `js/ggtok.js` calls it: conversions, and nothing else.
//!
//! Names, options and classes that users see are made in `js/ggtok.js`. What crosses the border is numbers, bytes, and
//! JSON for everything with a structure. Errors cross it as JSON too (`failure.rs`).
//!
//! WebAssembly has no unwinding, so a panic, or memory that runs out, leaves this instance unusable. A panic throws its
//! message, and the JavaScript side then takes a new instance.

#[cfg(feature = "full")]
mod chat;
mod failure;
#[cfg(feature = "full")]
mod full;
mod head;
mod info;

use std::sync::Arc;

use ggtok_core::gguf::Metadata;
use ggtok_core::{Count, DecodeOptions, EncodeError, EncodeOptions, Sink, Spans, Text, TokenId};
use wasm_bindgen::prelude::*;

use failure::{Failure, failed};

/// Has a panic throw its message.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|panic| wasm_bindgen::throw_str(&panic.to_string())));
}

/// The metadata of a file, as far as it has been read.
#[wasm_bindgen]
#[derive(Default)]
pub struct RawHead(head::Head);

#[wasm_bindgen]
impl RawHead {
    /// Nothing yet.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default, reason = "JavaScript calls it")]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of a file of `total` bytes. Returns how many bytes of the file are needed at least if these
    /// are not enough.
    pub fn push(&mut self, bytes: Vec<u8>, total: f64) -> Result<Option<f64>, JsValue> {
        // A file beyond what this machine can address counts as endless.
        Ok(self.0.push(bytes, total as usize).map_err(failed)?.map(|needed| needed as f64))
    }
}

/// A tokenizer and the metadata that it was made of.
#[wasm_bindgen]
pub struct RawTokenizer {
    core: Arc<ggtok_core::Tokenizer>,
    metadata: Metadata<Vec<u8>>,
    #[cfg(feature = "full")]
    made: full::Made,
}

#[wasm_bindgen]
impl RawTokenizer {
    /// Opens the tokenizer of a file whose metadata is complete.
    pub fn open(head: RawHead) -> Result<Self, JsValue> {
        let metadata = head.0.into_metadata().map_err(failed)?;
        let core = Arc::new(metadata.tokenizer().map_err(failed)?);
        Ok(Self {
            core,
            metadata,
            #[cfg(feature = "full")]
            made: full::Made::default(),
        })
    }

    /// What the vocabulary is, as JSON.
    pub fn info(&self) -> String {
        info::info(self.core.vocabulary(), &self.metadata)
    }

    /// A token as JSON.
    pub fn token(&self, id: TokenId) -> Result<String, JsValue> {
        self.core.check_id(id).map_err(failed)?;
        info::token(self.core.vocabulary(), id).map_err(failed)
    }

    /// The ids of a text.
    pub fn encode(&self, text: &[u8], add_special: bool, parse_special: bool) -> Result<Vec<TokenId>, JsValue> {
        let mut ids = Vec::new();
        self.encode_into(text, add_special, parse_special, &mut ids).map_err(failed)?;
        Ok(ids)
    }

    /// How many ids a text has.
    pub fn count(&self, text: &[u8], add_special: bool, parse_special: bool) -> Result<usize, JsValue> {
        let mut count = Count::default();
        self.encode_into(text, add_special, parse_special, &mut count).map_err(failed)?;
        Ok(count.0)
    }

    /// The ids of a text, then the start and end of each token in a unit: `utf16`, `char` or `byte`. Only a string, in
    /// which lone surrogates are characters, may have characters that are not UTF-8.
    pub fn spans(
        &self,
        text: &[u8],
        is_string: bool,
        unit: &str,
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<u32>, JsValue> {
        if let Err(error) = std::str::from_utf8(text)
            && unit != "byte"
            && !is_string
        {
            return Err(failed(Failure::no_characters(error.valid_up_to())));
        }
        let mut spans = Spans::with_room_for(text.len());
        self.encode_into(text, add_special, parse_special, &mut spans).map_err(failed)?;
        match unit {
            "utf16" => spans.to_utf16(text),
            "char" => spans.to_characters(text),
            _ => {}
        }
        let ids = spans.ids.iter().map(|&id| id as u32);
        Ok(ids.chain(spans.spans.iter().flat_map(|span| [span.start as u32, span.end as u32])).collect())
    }

    /// The bytes of some ids.
    pub fn decode(
        &self,
        ids: &[TokenId],
        remove_special: bool,
        unparse_special: bool,
        clean_spaces: bool,
    ) -> Result<Vec<u8>, JsValue> {
        let options = DecodeOptions::default()
            .remove_special(remove_special)
            .unparse_special(unparse_special)
            .clean_spaces(clean_spaces);
        self.core.decode_with(ids, options).map_err(failed)
    }

    /// The bytes that a token stands for.
    pub fn piece(&self, id: TokenId, special: bool) -> Result<Vec<u8>, JsValue> {
        Ok(self.core.piece(id, special).map_err(failed)?.to_vec())
    }

    fn encode_into(
        &self,
        text: &[u8],
        add_special: bool,
        parse_special: bool,
        sink: &mut impl Sink,
    ) -> Result<(), EncodeError> {
        let text = std::str::from_utf8(text).map_or(Text::Bytes(text), Text::Str);
        let options = options(add_special, parse_special);
        self.core.with_encoder(|encoder| encoder.encode_into(text, options, sink))
    }
}

fn options(add_special: bool, parse_special: bool) -> EncodeOptions {
    EncodeOptions::new().add_special(add_special).parse_special(parse_special)
}
