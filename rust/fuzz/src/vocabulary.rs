//! Makes small vocabularies of every kind from bytes.

use std::collections::BTreeSet;
use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use ggtok_core::Tokenizer;
use ggtok_core::vocab::{Definition, PRE_TOKENIZERS, SpecialIds, StringIndex};
use ggtok_explain::Explainer;
use ggtok_train::{BYTE, CONTROL, NORMAL, NormalizationRules, Trained, UNKNOWN, UNUSED, USER_DEFINED};

use super::texts;

/// The contents of a file.
#[derive(Debug, Default)]
pub struct Declared {
    pub model: &'static str,
    pub pre: Option<&'static str>,
    pub tokens: Vec<Vec<u8>>,
    pub scores: Vec<f32>,
    pub types: Vec<i32>,
    pub merges: Vec<Vec<u8>>,
    pub charsmap: Vec<u8>,
    pub special: SpecialIds,
    pub add_space_prefix: Option<bool>,
    pub remove_extra_whitespaces: Option<bool>,
    pub lowercase: Option<bool>,
    pub strip_accents: Option<bool>,
    pub add_bos: Option<bool>,
}

impl Declared {
    fn push(&mut self, text: impl Into<Vec<u8>>, score: f32, kind: i32) {
        let text = text.into();
        if !self.tokens.contains(&text) {
            self.tokens.push(text);
            self.scores.push(score);
            self.types.push(kind);
        }
    }

    fn push_any(&mut self, u: &mut Unstructured<'_>, most: usize) -> Result<()> {
        for _ in 0..u.int_in_range(0..=most)? {
            let score = *u.choose(&[-1000.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.25, -2500.0, f32::NAN])?;
            let kind = *u.choose(&[NORMAL, NORMAL, NORMAL, NORMAL, USER_DEFINED, CONTROL, UNUSED])?;
            self.push(texts::token(u)?, score, kind);
        }
        self.push_long(u)
    }

    /// Tokens made against a run of one letter: one starts at every place of it, and is not completed.
    fn push_long(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if u.ratio(1, 3)? {
            let run = texts::letter(u)?.repeat(u.int_in_range(100..=300)?);
            let kind = *u.choose(&[NORMAL, USER_DEFINED, CONTROL])?;
            self.push(format!("{run}b"), -2.0, kind);
            self.push(format!("b{run}"), -1.5, NORMAL);
        }
        Ok(())
    }

    /// A trained vocabulary.
    pub fn trained(model: &'static str, pre: Option<&'static str>, trained: Trained) -> Self {
        let Trained { tokens, types, scores, merges } = trained;
        let special = SpecialIds { unk: (model != "gpt2").then_some(0), ..SpecialIds::default() };
        Self { model, pre, tokens, types, scores, merges, special, ..Self::default() }
    }

    /// The tokenizer and its oracle; `None` if the vocabulary is rejected.
    pub fn open(&self) -> Option<(Arc<Tokenizer>, Explainer)> {
        let (tokens, index) = StringIndex::concatenate(&self.tokens).ok()?;
        let (merges, rules) = StringIndex::concatenate(&self.merges).ok()?;
        let merges = (self.model == "gpt2" || self.model == "whitespace").then(|| rules.view(&merges));
        let definition = Definition {
            model: self.model,
            pre: self.pre,
            tokens: Some(index.view(&tokens)),
            scores: (!self.scores.is_empty()).then_some(&self.scores),
            token_types: Some(&self.types),
            merges,
            charsmap: (!self.charsmap.is_empty()).then_some(&self.charsmap),
            special: self.special,
            add_space_prefix: self.add_space_prefix,
            remove_extra_whitespaces: self.remove_extra_whitespaces,
            lowercase: self.lowercase,
            strip_accents: self.strip_accents,
            add_bos: self.add_bos,
            ..Definition::default()
        };
        let tokenizer = Arc::new(Tokenizer::new(&definition).ok()?);
        Some((Arc::clone(&tokenizer), Explainer::new(tokenizer, merges)))
    }
}

/// A vocabulary of any kind.
pub fn any(u: &mut Unstructured<'_>) -> Result<Declared> {
    u.choose(&[spm, bpe, wordpiece, unigram, rwkv, plamo2, test])?(u)
}

pub fn spm(u: &mut Unstructured<'_>) -> Result<Declared> {
    let mut declared = Declared { model: "llama", add_space_prefix: u.arbitrary()?, ..Declared::default() };
    for (text, kind) in [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)] {
        declared.push(text, 0.0, kind);
    }
    for _ in 0..u.int_in_range(0..=6)? {
        declared.push(format!("<0x{:02X}>", u.choose(b"\xC3\xA9\xE2ab\n\xFF")?), 0.0, BYTE);
    }
    for text in ["\u{2581}", "a", "b"] {
        declared.push(text, -2.0, NORMAL);
    }
    declared.push_any(u, 24)?;
    Ok(declared)
}

pub fn bpe(u: &mut Unstructured<'_>) -> Result<Declared> {
    let pre = u.choose(PRE_TOKENIZERS)?.name;
    let model = *u.choose(&["gpt2", "gpt2", "gpt2", "whitespace"])?;
    let mut known: Vec<Vec<u8>> = (0..=255).map(spelled).collect();
    known.extend(["\u{2581}", "é", "中", "\n", "<0xC3>", "<0xE2>"].map(|text| text.as_bytes().to_vec()));
    known.sort();
    known.dedup();
    // The symbols that merges start with: few, so that rules interact.
    let mut symbols: Vec<Vec<u8>> = b"ab \xC3\xA9\xE4\xB81\n".iter().map(|&byte| spelled(byte)).collect();
    symbols.extend(["\u{2581}", "é", "中"].map(|text| text.as_bytes().to_vec()));
    let mut merges = Vec::new();
    for _ in 0..u.int_in_range(0..=40)? {
        let (left, right) = (u.choose(&symbols)?.clone(), u.choose(&symbols)?.clone());
        let both = [&left[..], &right].concat();
        if both.len() <= 24 {
            merges.push([&left[..], b" ", &right].concat());
            if !symbols.contains(&both) {
                symbols.push(both);
            }
        }
    }
    let mut declared = Declared { model, pre: Some(pre), merges, add_bos: u.arbitrary()?, ..Declared::default() };
    let all: BTreeSet<Vec<u8>> = known.into_iter().chain(symbols).collect();
    let left_out = u.int_in_range(2..=40)?;
    for (place, text) in all.into_iter().enumerate() {
        if place % left_out != 1 {
            declared.push(text, 0.0, NORMAL);
        }
    }
    declared.push("<|im_end|>", 0.0, CONTROL);
    declared.push("<|endoftext|>", 0.0, CONTROL);
    declared.scores.clear();
    Ok(declared)
}

pub fn wordpiece(u: &mut Unstructured<'_>) -> Result<Declared> {
    let special = SpecialIds { unk: Some(0), sep: Some(1), bos: Some(2), ..SpecialIds::default() };
    let (lowercase, strip_accents) = (u.arbitrary()?, u.arbitrary()?);
    let mut declared = Declared { model: "bert", special, lowercase, strip_accents, ..Declared::default() };
    for (text, kind) in [("[UNK]", UNKNOWN), ("[SEP]", CONTROL), ("[CLS]", CONTROL)] {
        declared.push(text, 0.0, kind);
    }
    for _ in 0..u.int_in_range(0..=24)? {
        let begins = u.arbitrary()?;
        let word = texts::token(u)?;
        declared.push([if begins { "\u{2581}" } else { "" }.as_bytes(), &word].concat(), 0.0, NORMAL);
    }
    declared.push_long(u)?;
    Ok(declared)
}

pub fn unigram(u: &mut Unstructured<'_>) -> Result<Declared> {
    let special = SpecialIds { unk: Some(0), eos: Some(0), ..SpecialIds::default() };
    let (add_space_prefix, remove_extra_whitespaces) = (u.arbitrary()?, u.arbitrary()?);
    let mut declared =
        Declared { model: "t5", special, add_space_prefix, remove_extra_whitespaces, ..Declared::default() };
    declared.push("<unk>", 0.0, UNKNOWN);
    let mut rules = BTreeSet::new();
    for _ in 0..u.int_in_range(0..=5)? {
        let (from, to) = (texts::utf8(u, 2)?, texts::utf8(u, 3)?);
        let line = [from, to].map(|text| {
            let code_points = text.chars().filter(|&char| char != '\0').map(|char| format!("{:X}", u32::from(char)));
            code_points.collect::<Vec<_>>().join(" ")
        });
        rules.insert(line.join("\t"));
    }
    let rules: Vec<String> = rules.into_iter().collect();
    if let Ok(rules) = NormalizationRules::from_tsv(&rules.join("\n")) {
        declared.charsmap = rules.compile().expect("few rules");
    }
    declared.push_any(u, 24)?;
    Ok(declared)
}

pub fn rwkv(u: &mut Unstructured<'_>) -> Result<Declared> {
    let mut declared = Declared { model: "rwkv", ..Declared::default() };
    declared.push(r"\n", 0.0, NORMAL);
    for _ in 0..u.int_in_range(0..=6)? {
        declared.push(*u.choose(&[r"\xe4", r"\xc3", r"\x80", r"\t", r"\", r"\x", r"\xff", r"\\"])?, 0.0, NORMAL);
    }
    declared.push_any(u, 24)?;
    Ok(declared)
}

pub fn plamo2(u: &mut Unstructured<'_>) -> Result<Declared> {
    let mut declared = Declared { model: "plamo2", ..Declared::default() };
    declared.push("<unk>", -9.0, UNKNOWN);
    for byte in 0..=255_u8 {
        declared.push(format!("<0x{byte:02X}>"), 0.0, BYTE);
    }
    declared.push_any(u, 24)?;
    Ok(declared)
}

pub fn test(u: &mut Unstructured<'_>) -> Result<Declared> {
    let mut declared = Declared { model: "test", ..Declared::default() };
    declared.push("\n", 0.0, NORMAL);
    declared.push_any(u, 24)?;
    Ok(declared)
}

/// A byte as byte-level vocabularies spell it: printable Latin-1 stands for itself, and the rest follow from U+0100.
pub fn spelled(byte: u8) -> Vec<u8> {
    let is_itself = |byte: u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..);
    let code_point = if is_itself(byte) {
        u32::from(byte)
    } else {
        256 + (0..byte).filter(|&other| !is_itself(other)).count() as u32
    };
    char::from_u32(code_point).unwrap_or_default().to_string().into_bytes()
}
