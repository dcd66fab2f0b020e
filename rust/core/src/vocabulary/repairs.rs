//! The repairs that llama.cpp's loader makes to a vocabulary: special tokens found by their text, control attributes,
//! the set that ends generation, and token attributes that depend on the model's name.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, the second half of `llama_vocab::impl::load`. If several tokens could fill
//! a slot, llama.cpp takes the first one in the iteration order of its hash map, and so does
//! [`first_in_iteration_order`].
//!
//! Deviations: (1) a text that llama.cpp looks up unchecked and does not find is a typed error.

use std::collections::BTreeSet;

use super::hash_order::first_in_iteration_order;
use super::{Attributes, Definition, Kind, SLOTS, SpecialIds, Vocabulary};
use crate::error::{VocabularyError, messages};
use crate::token::{NULL_TOKEN, TokenId};
use crate::work::heap::HeapBytes;
use crate::work::introsort::{Inconsistent, introsort_by};
use crate::work::memory::{collect, with_room};

messages! {
    /// A change to a vocabulary at load.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[allow(missing_docs)]
    #[non_exhaustive]
    pub enum Repair {
        DefaultPreTokenizer => "the file names no pre-tokenizer: default used";
        Empty { id: TokenId } => "token {id} has no text: named [EMPTY_{id}]";
        DefaultOutOfRange { name: &'static str, id: TokenId } =>
            "the default {name} id {id} is out of range: there is none";
        OutOfRange { name: &'static str, id: u32 } => "the {name} id {id} is out of range: ignored";
        AddBos => "add_bos set: Gemma 4 needs it";
        FoundByText { name: &'static str, id: TokenId, text: String } =>
            "{name} is token {id}, found by its text {text:?}";
        Control { id: TokenId, text: String } => "token {id} {text:?} looks like a control token: marked as one";
        UserDefined { id: TokenId, text: &'static str } =>
            "token {id} {text:?} is always shown: marked as user-defined";
        NotEnd { id: TokenId, text: String } => "token {id} {text:?} does not end generation in this vocabulary";
        StripsRight => "Phi-3: special tokens take the whitespace after them";
        StripsLeft { id: TokenId, text: &'static str } => "token {id} {text:?} takes the whitespace before it";
        MissingMask { text: &'static str } => "the mask token {text:?} is missing";
    }
}

impl HeapBytes for Repair {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::FoundByText { text, .. } | Self::Control { text, .. } | Self::NotEnd { text, .. } => text.capacity(),
            _ => 0,
        }
    }
}

/// Texts that end generation.
#[rustfmt::skip]
const END_OF_GENERATION: &[&str] = &[
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
    "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
];

/// Texts that are always shown, whatever their declared type.
const USER_DEFINED: &[&str] = &["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// The texts that identify special tokens, per slot: `eot` … `fim_sep`, `eog` and `user_defined`.
pub fn loader_texts() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let found = SLOTS.iter().filter(|slot| !slot.texts.is_empty()).map(|slot| (slot.name, slot.texts));
    found.chain([("eog", END_OF_GENERATION), ("user_defined", USER_DEFINED)])
}

impl Vocabulary {
    /// Turns a vocabulary as its file declares it into the one that llama.cpp works with.
    ///
    /// # Errors
    /// [`VocabularyError::MissingToken`] if a model's rule needs a token that does not exist.
    pub(crate) fn repair(&mut self, definition: &Definition<'_>) -> Result<(), VocabularyError> {
        if self.kind() == Kind::None {
            return Ok(());
        }
        self.read_special_ids(&definition.special);
        self.read_settings(definition);
        self.find_special_by_text();
        self.mark_unused();
        self.collect_end_of_generation();
        self.order_special_tokens();
        self.apply_model_rules(definition)
    }

    fn read_special_ids(&mut self, ids: &SpecialIds) {
        for slot in SLOTS {
            for given in slot.given {
                let id = (slot.id_mut)(&mut self.special);
                let name = given.name;
                if let Some(default) = id.filter(|&id| id as usize >= self.size) {
                    *id = None;
                    self.repairs.push(Repair::DefaultOutOfRange { name, id: default });
                }
                match (given.id)(ids) {
                    Some(given) if (given as usize) < self.size => *id = Some(given as TokenId),
                    Some(id) => self.repairs.push(Repair::OutOfRange { name, id }),
                    None => {}
                }
            }
        }
    }

    fn read_settings(&mut self, definition: &Definition<'_>) {
        let settings = &mut self.settings;
        let read = |setting: &mut bool, given: Option<bool>| *setting = given.unwrap_or(*setting);
        read(&mut settings.add_bos, definition.add_bos);
        read(&mut settings.add_eos, definition.add_eos);
        read(&mut settings.add_sep, definition.add_sep);
        if self.pre.is_some_and(|pre| pre.is_gemma4()) && !settings.add_bos {
            settings.add_bos = true;
            self.repairs.push(Repair::AddBos);
        }
        read(&mut settings.lowercase, definition.lowercase);
        settings.strip_accents = settings.lowercase;
        read(&mut settings.strip_accents, definition.strip_accents);
    }

    fn find_special_by_text(&mut self) {
        for slot in SLOTS {
            if (slot.id)(&self.special).is_some() {
                continue;
            }
            let found: Vec<TokenId> = slot.texts.iter().filter_map(|text| self.id(text.as_bytes())).collect();
            let first = match found[..] {
                [] => None,
                [id] => Some(id),
                _ => first_in_iteration_order(self.keys().iter(), &found),
            };
            let Some(id) = first else { continue };
            *(slot.id_mut)(&mut self.special) = Some(id);
            self.repairs.push(Repair::FoundByText { name: slot.name, id, text: self.shown(id) });
            self.mark_control(id);
        }
    }

    fn mark_control(&mut self, id: TokenId) {
        if !self.attributes(id).is_control() {
            self.set_attributes(id, self.attributes(id).with(Attributes::CONTROL));
            self.repairs.push(Repair::Control { id, text: self.shown(id) });
        }
    }

    fn mark_unused(&mut self) {
        for id in 0..self.texts.len() {
            if self.attributes[id].is_control() && memchr::memmem::find(self.keys().get(id), b"unused").is_some() {
                self.set_attributes(id as TokenId, self.attributes[id].with(Attributes::UNUSED));
            }
        }
    }

    fn collect_end_of_generation(&mut self) {
        let special = self.special;
        let mut eog: BTreeSet<TokenId> =
            [special.fim_pad, special.fim_rep, special.fim_sep].into_iter().flatten().collect();
        for text in END_OF_GENERATION {
            if let Some(id) = self.id(text.as_bytes()) {
                eog.insert(id);
                self.mark_control(id);
            }
        }
        for text in USER_DEFINED {
            if let Some(id) = self.id(text.as_bytes()) {
                self.set_attributes(id, Attributes::USER_DEFINED);
                self.repairs.push(Repair::UserDefined { id, text });
            }
        }
        eog.extend([special.eos, special.eot, special.eom].into_iter().flatten());

        let with_text = |eog: &BTreeSet<TokenId>, text: &str| -> Option<TokenId> {
            eog.iter().rev().copied().find(|&id| self.text(id) == text.as_bytes())
        };
        let has = |text: &str| with_text(&eog, text).is_some();
        let called = has("<|call|>") || has("<|calls|>");
        let end = with_text(&eog, "<|end|>").filter(|_| called && (has("<|return|>") || has("<|flush|>")));
        let normal_s = with_text(&eog, "</s>").filter(|_| has("<|tool_response>") || has("<|plamo:eos|>"));
        for (id, attributes) in [(end, Attributes::USER_DEFINED), (normal_s, Attributes::NORMAL)] {
            if let Some(id) = id {
                eog.remove(&id);
                self.set_attributes(id, attributes);
                self.repairs.push(Repair::NotEnd { id, text: self.shown(id) });
            }
        }
        self.eog = eog.into_iter().collect();
    }

    /// Lists the special tokens in the order in which a text is searched for them.
    fn order_special_tokens(&mut self) {
        let cut_out = |attributes: &Attributes| {
            attributes.is_control() || attributes.is_user_defined() || attributes.is_unknown()
        };
        let attributes = self.attributes.iter().enumerate();
        let mut order = collect(attributes.filter(|(_, attributes)| cut_out(attributes)).map(|(id, _)| id as TokenId));
        let is_longer = |left, right| Ok::<_, Inconsistent>(self.text(left).len() > self.text(right).len());
        // Lengths have an order.
        let _ = introsort_by(&mut order, is_longer);
        self.special_order = order;
    }

    fn apply_model_rules(&mut self, definition: &Definition<'_>) -> Result<(), VocabularyError> {
        let contains_any = |text: &str, needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
        let name = definition.name.to_ascii_lowercase();
        if contains_any(definition.pre.unwrap_or_default(), &["jina-v2-de", "jina-v2-es", "jina-v2-code"])
            || contains_any(definition.architecture, &["nomic-bert-moe", "jina-bert-v3"])
        {
            self.strip_left("<mask>");
        } else if contains_any(&name, &["phi-3", "phi3"]) {
            for at in 0..self.special_order.len() {
                let id = self.special_order[at];
                self.set_attributes(id, self.attributes(id).with(Attributes::RSTRIP));
            }
            let find = |text| self.id(str::as_bytes(text)).ok_or(VocabularyError::MissingToken { text });
            let end = find("</s>")?;
            let keep = [find("<unk>")?, find("<s>")?, find("<|endoftext|>")?];
            self.set_attributes(end, self.attributes(end).with(Attributes::RSTRIP));
            for id in keep {
                self.set_attributes(id, self.attributes(id).without(Attributes::RSTRIP));
            }
            self.repairs.push(Repair::StripsRight);
        } else if contains_any(&name, &["modern-bert"]) {
            self.strip_left("[MASK]");
        }
        Ok(())
    }

    fn strip_left(&mut self, text: &'static str) {
        match self.id(text.as_bytes()) {
            Some(id) => {
                self.set_attributes(id, self.attributes(id).with(Attributes::LSTRIP));
                self.repairs.push(Repair::StripsLeft { id, text });
            }
            None => self.repairs.push(Repair::MissingMask { text }),
        }
    }

    fn set_attributes(&mut self, id: TokenId, attributes: Attributes) {
        let before = std::mem::replace(&mut self.attributes[id as usize], attributes);
        with_room(&mut self.declared).entry(id).or_insert(before);
    }

    fn shown(&self, id: TokenId) -> String {
        String::from_utf8_lossy(self.text(id)).into_owned()
    }
}

/// The attributes of a token type in a file.
pub(super) fn declared(token_type: i32) -> Attributes {
    match token_type {
        1 => Attributes::NORMAL,
        2 => Attributes::UNKNOWN,
        3 => Attributes::CONTROL,
        4 => Attributes::USER_DEFINED,
        5 => Attributes::UNUSED,
        6 => Attributes::BYTE,
        _ => Attributes::default(),
    }
}

/// The newline token of a vocabulary as declared. `encoded` is the first token of `"\n"`.
///
/// # Errors
/// [`VocabularyError::MissingNewline`] for RWKV without one; llama.cpp aborts.
pub(crate) fn newline(vocabulary: &Vocabulary, encoded: Option<TokenId>) -> Result<Option<TokenId>, VocabularyError> {
    let pad = vocabulary.special.pad;
    let id = match vocabulary.kind() {
        Kind::None => None,
        Kind::Spm => vocabulary.byte_token(b'\n').or(pad),
        Kind::WordPiece => pad,
        Kind::Rwkv => Some(encoded.ok_or(VocabularyError::MissingNewline)?),
        Kind::Bpe | Kind::Unigram | Kind::Plamo2 | Kind::Test => encoded.or(pad),
    };
    Ok(id.filter(|&id| id != NULL_TOKEN))
}
