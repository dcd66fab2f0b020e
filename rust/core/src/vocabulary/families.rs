//! The table of pre-tokenizers: families, the patterns of each, and the names that have them with their flags.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::load` (names and flags) and the constructor of
//! `llm_tokenizer_bpe` (patterns, character for character). A new name goes into the row of its family;
//! a new family is a row.

use crate::error::VocabularyError;
use crate::error::nearest::nearest;
use crate::vocabulary::Repair;

/// One value of `tokenizer.ggml.pre` with the flags it sets.
#[derive(Debug, PartialEq, Eq)]
pub struct PreTokenizer {
    /// The name in the file.
    pub name: &'static str,
    /// The family whose patterns it uses.
    pub family: &'static Family,
    /// Default of [`Settings::clean_spaces`](crate::vocab::Settings::clean_spaces).
    pub clean_spaces: bool,
    /// Default of [`Settings::ignore_merges`](crate::vocab::Settings::ignore_merges).
    pub ignore_merges: bool,
    /// Default of [`Settings::add_bos`](crate::vocab::Settings::add_bos).
    pub add_bos: bool,
    /// Default of [`Settings::add_sep`](crate::vocab::Settings::add_sep).
    pub add_sep: bool,
    /// Default of [`Settings::escape_whitespaces`](crate::vocab::Settings::escape_whitespaces).
    pub escape_whitespaces: bool,
    /// Default of [`Settings::lowercase`](crate::vocab::Settings::lowercase).
    pub lowercase: bool,
    /// Whether the model's default BOS token applies.
    pub has_bos: bool,
}

impl PreTokenizer {
    /// The row for a file's model and name. The model decides first, and a missing name means `default`.
    ///
    /// # Errors
    /// [`VocabularyError::UnknownPreTokenizer`] for a name that is not in the table.
    pub(crate) fn select(
        model: &str,
        name: Option<&str>,
        repairs: &mut Vec<Repair>,
    ) -> Result<&'static Self, VocabularyError> {
        let name = match name.filter(|name| !name.is_empty()) {
            _ if model == "gemma4" => "gemma4",
            Some(name) => name,
            None => {
                repairs.push(Repair::DefaultPreTokenizer);
                "default"
            }
        };
        PRE_TOKENIZERS.iter().find(|row| row.name == name).ok_or_else(|| VocabularyError::UnknownPreTokenizer {
            name: name.to_owned(),
            nearest: nearest(name, PRE_TOKENIZERS.iter().map(|row| row.name)),
        })
    }

    /// Whether a vocabulary without merges is an error. Kimi K2 may have none.
    pub(crate) fn needs_merges(&self) -> bool {
        self.name != "kimi-k2"
    }

    /// Whether this is Gemma 4's family, which always adds BOS and looks up a run of newlines as a whole.
    pub fn is_gemma4(&self) -> bool {
        self.family.name == "gemma4"
    }
}

/// The patterns that several names share.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// llama.cpp's `LLAMA_VOCAB_PRE_TYPE_*`, in lower case with hyphens.
    pub name: &'static str,
    /// Applied in order, each to the pieces left by the one before it.
    pub patterns: &'static [&'static str],
    /// Whether pieces are spelled with GPT-2's 256 printable characters, one per byte.
    pub byte_encode: bool,
}

const NONE: u8 = 0;
const CLEAN_SPACES: u8 = 1;
const IGNORE_MERGES: u8 = 2;
const ADD_BOS: u8 = 4;
const ADD_SEP: u8 = 8;
const ESCAPE_WHITESPACES: u8 = 16;
/// Text is not lowercased unless the file says so.
const KEEP_CASE: u8 = 32;
/// BOS is added only if the file says so.
const NO_BOS: u8 = 64;

const fn pre(name: &'static str, family: &'static Family, flags: u8) -> PreTokenizer {
    PreTokenizer {
        name,
        family,
        clean_spaces: flags & CLEAN_SPACES != 0,
        ignore_merges: flags & IGNORE_MERGES != 0,
        add_bos: flags & ADD_BOS != 0,
        add_sep: flags & ADD_SEP != 0,
        escape_whitespaces: flags & ESCAPE_WHITESPACES != 0,
        lowercase: flags & KEEP_CASE == 0,
        has_bos: flags & NO_BOS == 0,
    }
}

/// What the symbols of a family start as.
const BYTES: bool = true;
const CHARACTERS: bool = false;

/// Makes both tables, given for each family what its symbols start as, its patterns, and the names that have it, by
/// their flags.
macro_rules! families {
    ($($family:literal: $symbols:ident $patterns:tt { $($flags:expr => $($name:literal)+);+ })+) => {
        /// All names of `tokenizer.ggml.pre`.
        pub const PRE_TOKENIZERS: &[PreTokenizer] = &[$($($(
            pre($name, &Family { name: $family, patterns: &$patterns, byte_encode: $symbols }, $flags)
        ),+),+),+];

        /// All families.
        pub const FAMILIES: &[Family] = &[$(
            Family { name: $family, patterns: &$patterns, byte_encode: $symbols }
        ),+];
    };
}

pub(crate) const LLAMA3: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const QWEN2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)";
pub(crate) const NUMBER: &str = r"\p{N}";
pub(crate) const NUMBERS_3: &str = r"\p{N}{1,3}";
pub(crate) const NUMBERS: &str = r"\p{N}+";
pub(crate) const THOUSANDS: &str = r"(?=(\d{3})+(?!\d))";
pub(crate) const NEWLINE: &str = "[\r\n]";
pub(crate) const LINES: &str = r"[^\n]+|[\n]+";
pub(crate) const WORDS: &str = r"\S+";
pub(crate) const KANJI_KANA: &str = r"[一-龥぀-ゟ゠-ヿ]+";
pub(crate) const DEEPSEEK3: &str = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";
pub(crate) const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";
pub(crate) const DEEPSEEK_CJK: &str = r"[一-龥ࠀ-一가-퟿]+";
pub(crate) const CASED: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const QWEN35: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+|[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const SEED_CODER: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const UFAKZEKA: &str = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const MINICPM5: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const THREE_DIGITS: &str = r"[0-9][0-9][0-9]";
pub(crate) const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const CASED_3: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const GRANITE: &str = r"[^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))*((?=[\p{L}\p{M}])([^A-Z]))+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))+((?=[\p{L}\p{M}])([^A-Z]))*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const LETTERS_AFTER_SPACE: &str = r"\s?\p{L}+";
pub(crate) const PUNCTUATION_AFTER_SPACE: &str = r"\s?\p{P}+";
pub(crate) const HAN: &str = r"\p{Han}+";
pub(crate) const PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|`]+";
pub(crate) const PUNCTUATION_BUT_BACKQUOTE: &str = r"[\p{P}\$\+<=>\^~\|]+";
pub(crate) const BAILINGMOE: &str = r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+";

families! {
    "default": BYTES [PUNCTUATION_BUT_BACKQUOTE, GPT2, NUMBERS, THREE_DIGITS] { CLEAN_SPACES => "default" }
    "minicpm5": BYTES [NUMBERS_3, MINICPM5] { CLEAN_SPACES | IGNORE_MERGES => "minicpm5" }
    "llama3": BYTES [LLAMA3] {
        CLEAN_SPACES | IGNORE_MERGES | ADD_BOS => "llama3" "llama-v3" "llama-bpe" "falcon3" "falcon-h1" "pixtral"
            "midm-2.0" "lfm2" "jina-v5-nano"
    }
    "deepseek-llm": BYTES [NEWLINE, r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", DEEPSEEK_CJK, NUMBERS] { NONE => "deepseek-llm" }
    "deepseek-coder": BYTES [NEWLINE, LETTERS_AFTER_SPACE, PUNCTUATION_AFTER_SPACE, DEEPSEEK_CJK, NUMBER] { NONE => "deepseek-coder" }
    "deepseek3-llm": BYTES [NUMBERS_3, KANJI_KANA, DEEPSEEK3] { NONE => "deepseek-v3" }
    "spark2-5": BYTES [NUMBERS_3, KANJI_KANA, "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+|[\r\n]|\\s+(?!\\S)|\\s+", NUMBER] { NONE => "spark2_5" }
    "youtu": BYTES [r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+", CASED] { IGNORE_MERGES => "youtu" }
    "falcon": BYTES [PUNCTUATION, GPT2, THREE_DIGITS] { CLEAN_SPACES => "falcon" }
    "mpt": BYTES [GPT2] { CLEAN_SPACES => "mpt" }
    "starcoder": BYTES [NUMBER, GPT2] { CLEAN_SPACES => "starcoder" }
    "gpt2": BYTES [GPT2] {
        CLEAN_SPACES => "gpt-2" "phi-2" "jina-es" "jina-de" "gigachat" "jina-v2-es" "jina-v2-de" "a.x-4.0" "mellum"
            "modern-bert" "exaone4";
        CLEAN_SPACES | ADD_SEP => "jina-v1-en" "jina-v2-code" "roberta-bpe"
    }
    "jais2": BYTES [r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"] { CLEAN_SPACES => "jais-2" }
    "gemma4": CHARACTERS [LINES] { CLEAN_SPACES | ESCAPE_WHITESPACES => "gemma4" "granite-embed-multi-311m" }
    "sarvam-moe": CHARACTERS [LINES] { ESCAPE_WHITESPACES => "sarvam-moe" }
    "whitespace": CHARACTERS [WORDS] { CLEAN_SPACES | KEEP_CASE => "whitespace" }
    "refact": BYTES [NUMBER, GPT2] { CLEAN_SPACES => "refact" }
    "command-r": BYTES [NUMBER, GPT2] { NONE => "command-r" }
    "qwen2": BYTES [QWEN2] {
        NONE => "qwen2" "deepseek-r1-qwen" "kormo" "f2llmv2";
        CLEAN_SPACES => "megrez"
    }
    "qwen35": BYTES [QWEN35] { NONE => "qwen35" }
    "stablelm2": BYTES [QWEN2] { CLEAN_SPACES => "stablelm2" }
    "olmo": BYTES [GPT2] { CLEAN_SPACES => "olmo" }
    "dbrx": BYTES [LLAMA3] { CLEAN_SPACES => "dbrx" }
    "smaug": BYTES [LLAMA3] { CLEAN_SPACES => "smaug-bpe" }
    "poro": BYTES [BLOOM] { NONE => "poro-chat" }
    "chatglm4": BYTES [LLAMA3] {
        CLEAN_SPACES | NO_BOS => "chatglm-bpe";
        CLEAN_SPACES | IGNORE_MERGES | NO_BOS => "glm4" "glm5"
    }
    "viking": BYTES [BLOOM, NUMBER] { NONE => "viking" }
    "jais": BYTES [GPT2] { CLEAN_SPACES => "jais" }
    "tekken": BYTES [TEKKEN] { IGNORE_MERGES | ADD_BOS => "tekken" }
    "smollm": BYTES [NUMBER, GPT2] { NONE => "smollm" }
    "codeshell": BYTES [NUMBER, GPT2] { CLEAN_SPACES => "codeshell" }
    "bloom": BYTES [BLOOM] { CLEAN_SPACES => "bloom" }
    "gpt3-finnish": BYTES [BLOOM] { CLEAN_SPACES => "gpt3-finnish" }
    "exaone": BYTES [NUMBER, GPT2] { CLEAN_SPACES => "exaone" }
    "exaone-moe": BYTES [r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"] { CLEAN_SPACES => "exaone-moe" }
    "chameleon": BYTES [r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", NUMBER, r"[\p{P}!-/:-@\[-`{-~]", GPT2] { ADD_BOS => "chameleon" }
    "minerva": BYTES [NUMBER, GPT2] { CLEAN_SPACES => "minerva-7b" }
    "gpt4o": BYTES [GPT4O] { NONE => "gpt-4o" "llama4" "kanana2" "talkie" }
    "granite-emb-multi": BYTES [GRANITE] { IGNORE_MERGES => "granite-embed-multi-97m" }
    "tiny-aya": BYTES [r"\d{1,3}(?=(?:\d{3})*\b)", CASED_3] { NONE => "tiny_aya" "cohere2moe" }
    "superbpe": BYTES [NUMBERS, THOUSANDS] { NONE => "superbpe" }
    "trillion": BYTES [GPT2] { NONE => "trillion" }
    "granite-docling": BYTES [GPT2] { NONE => "granite-docling" }
    "bailingmoe": BYTES [BAILINGMOE] { NONE => "bailingmoe" "bailingmoe2" "llada-moe" }
    "seed-coder": BYTES [SEED_CODER] { NONE => "seed-coder" }
    "hunyuan": BYTES [QWEN2] { NONE => "hunyuan" }
    "hunyuan-dense": BYTES [NUMBERS_3, KANJI_KANA, DEEPSEEK3] { NONE => "hunyuan-dense" }
    "hy-v4": BYTES [NUMBERS_3, KANJI_KANA, DEEPSEEK3] { NONE => "hy_v4" }
    "joyai-llm": BYTES [NUMBERS_3, KANJI_KANA, DEEPSEEK3] { NONE => "joyai-llm" }
    "kimi-k2": BYTES [HAN] { NONE => "kimi-k2" }
    "ufakzeka": BYTES [UFAKZEKA] { NONE => "ufakzeka" }
    "grok-2": BYTES [QWEN2] { NONE => "grok-2" }
    "afmoe": BYTES [r"\p{AFMoE_digits}", r"[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+", r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##] { NONE => "afmoe" }
    "laguna": BYTES [LINES, QWEN2] { NONE => "laguna" }
    "minimax-m2": BYTES [GPT4O] { NONE => "minimax-m2" }
    "solar-open": BYTES [QWEN2] { NONE => "solar-open" }
    "mellum2": BYTES [NUMBER, GPT2] { CLEAN_SPACES => "mellum2" }
}

#[cfg(test)]
mod tests {
    use super::{FAMILIES, PRE_TOKENIZERS};
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_families_exist() {
        let names: HashSet<_> = PRE_TOKENIZERS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), PRE_TOKENIZERS.len());
        let families: HashSet<_> = FAMILIES.iter().map(|family| family.name).collect();
        assert_eq!(families.len(), FAMILIES.len());
        assert_eq!(families, PRE_TOKENIZERS.iter().map(|row| row.family.name).collect());
    }
}
