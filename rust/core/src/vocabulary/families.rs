//! The table of pre-tokenizers: the flags and the family of each name, and the patterns of each family.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::load` (names and flags) and the constructor of
//! `llm_tokenizer_bpe` (patterns, character for character). A new name is one row here; a new family is one more.

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

const fn pre(name: &'static str, family: &'static str, flags: u8) -> PreTokenizer {
    PreTokenizer {
        name,
        family: find(family),
        clean_spaces: flags & CLEAN_SPACES != 0,
        ignore_merges: flags & IGNORE_MERGES != 0,
        add_bos: flags & ADD_BOS != 0,
        add_sep: flags & ADD_SEP != 0,
        escape_whitespaces: flags & ESCAPE_WHITESPACES != 0,
        lowercase: flags & KEEP_CASE == 0,
        has_bos: flags & NO_BOS == 0,
    }
}

/// The row of a family. A name without one does not compile.
const fn find(name: &str) -> &'static Family {
    let mut at = 0;
    while !are_equal(FAMILIES[at].name.as_bytes(), name.as_bytes()) {
        at += 1;
    }
    &FAMILIES[at]
}

const fn are_equal(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([], []) => true,
        ([first, one @ ..], [second, other @ ..]) => *first == *second && are_equal(one, other),
        _ => false,
    }
}

/// All names of `tokenizer.ggml.pre`.
#[rustfmt::skip]
pub const PRE_TOKENIZERS: &[PreTokenizer] = &[
    pre("default", "default", CLEAN_SPACES),
    pre("minicpm5", "minicpm5", CLEAN_SPACES | IGNORE_MERGES),
    pre("llama3", "llama3", CLEAN_SPACES | IGNORE_MERGES | ADD_BOS),
    pre("llama-v3", "llama3", CLEAN_SPACES | IGNORE_MERGES | ADD_BOS),
    pre("llama-bpe", "llama3", CLEAN_SPACES | IGNORE_MERGES | ADD_BOS),
    pre("falcon3", "llama3", CLEAN_SPACES | IGNORE_MERGES | ADD_BOS),
    pre("falcon-h1", "llama3", CLEAN_SPACES | IGNORE_MERGES | ADD_BOS),
    pre("pixtral", "llama3", CLEAN_SPACES | IGNORE_MERGES | ADD_BOS),
    pre("midm-2.0", "llama3", CLEAN_SPACES | IGNORE_MERGES | ADD_BOS),
    pre("lfm2", "llama3", CLEAN_SPACES | IGNORE_MERGES | ADD_BOS),
    pre("jina-v5-nano", "llama3", CLEAN_SPACES | IGNORE_MERGES | ADD_BOS),
    pre("deepseek-llm", "deepseek-llm", NONE),
    pre("deepseek-coder", "deepseek-coder", NONE),
    pre("deepseek-v3", "deepseek3-llm", NONE),
    pre("spark2_5", "spark2-5", NONE),
    pre("youtu", "youtu", IGNORE_MERGES),
    pre("falcon", "falcon", CLEAN_SPACES),
    pre("mpt", "mpt", CLEAN_SPACES),
    pre("starcoder", "starcoder", CLEAN_SPACES),
    pre("gpt-2", "gpt2", CLEAN_SPACES),
    pre("phi-2", "gpt2", CLEAN_SPACES),
    pre("jina-es", "gpt2", CLEAN_SPACES),
    pre("jina-de", "gpt2", CLEAN_SPACES),
    pre("gigachat", "gpt2", CLEAN_SPACES),
    pre("jina-v2-es", "gpt2", CLEAN_SPACES),
    pre("jina-v2-de", "gpt2", CLEAN_SPACES),
    pre("a.x-4.0", "gpt2", CLEAN_SPACES),
    pre("mellum", "gpt2", CLEAN_SPACES),
    pre("modern-bert", "gpt2", CLEAN_SPACES),
    pre("jais-2", "jais2", CLEAN_SPACES),
    pre("gemma4", "gemma4", CLEAN_SPACES | ESCAPE_WHITESPACES),
    pre("granite-embed-multi-311m", "gemma4", CLEAN_SPACES | ESCAPE_WHITESPACES),
    pre("sarvam-moe", "sarvam-moe", ESCAPE_WHITESPACES),
    pre("jina-v1-en", "gpt2", CLEAN_SPACES | ADD_SEP),
    pre("jina-v2-code", "gpt2", CLEAN_SPACES | ADD_SEP),
    pre("roberta-bpe", "gpt2", CLEAN_SPACES | ADD_SEP),
    pre("whitespace", "whitespace", CLEAN_SPACES | KEEP_CASE),
    pre("refact", "refact", CLEAN_SPACES),
    pre("command-r", "command-r", NONE),
    pre("qwen2", "qwen2", NONE),
    pre("deepseek-r1-qwen", "qwen2", NONE),
    pre("kormo", "qwen2", NONE),
    pre("f2llmv2", "qwen2", NONE),
    pre("qwen35", "qwen35", NONE),
    pre("stablelm2", "stablelm2", CLEAN_SPACES),
    pre("olmo", "olmo", CLEAN_SPACES),
    pre("dbrx", "dbrx", CLEAN_SPACES),
    pre("smaug-bpe", "smaug", CLEAN_SPACES),
    pre("poro-chat", "poro", NONE),
    pre("chatglm-bpe", "chatglm4", CLEAN_SPACES | NO_BOS),
    pre("glm4", "chatglm4", CLEAN_SPACES | IGNORE_MERGES | NO_BOS),
    pre("glm5", "chatglm4", CLEAN_SPACES | IGNORE_MERGES | NO_BOS),
    pre("viking", "viking", NONE),
    pre("jais", "jais", CLEAN_SPACES),
    pre("tekken", "tekken", IGNORE_MERGES | ADD_BOS),
    pre("smollm", "smollm", NONE),
    pre("codeshell", "codeshell", CLEAN_SPACES),
    pre("bloom", "bloom", CLEAN_SPACES),
    pre("gpt3-finnish", "gpt3-finnish", CLEAN_SPACES),
    pre("exaone", "exaone", CLEAN_SPACES),
    pre("exaone4", "gpt2", CLEAN_SPACES),
    pre("exaone-moe", "exaone-moe", CLEAN_SPACES),
    pre("chameleon", "chameleon", ADD_BOS),
    pre("minerva-7b", "minerva", CLEAN_SPACES),
    pre("megrez", "qwen2", CLEAN_SPACES),
    pre("gpt-4o", "gpt4o", NONE),
    pre("llama4", "gpt4o", NONE),
    pre("kanana2", "gpt4o", NONE),
    pre("talkie", "gpt4o", NONE),
    pre("granite-embed-multi-97m", "granite-emb-multi", IGNORE_MERGES),
    pre("tiny_aya", "tiny-aya", NONE),
    pre("cohere2moe", "tiny-aya", NONE),
    pre("superbpe", "superbpe", NONE),
    pre("trillion", "trillion", NONE),
    pre("granite-docling", "granite-docling", NONE),
    pre("bailingmoe", "bailingmoe", NONE),
    pre("bailingmoe2", "bailingmoe", NONE),
    pre("llada-moe", "bailingmoe", NONE),
    pre("seed-coder", "seed-coder", NONE),
    pre("hunyuan", "hunyuan", NONE),
    pre("hunyuan-dense", "hunyuan-dense", NONE),
    pre("hy_v4", "hy-v4", NONE),
    pre("joyai-llm", "joyai-llm", NONE),
    pre("kimi-k2", "kimi-k2", NONE),
    pre("ufakzeka", "ufakzeka", NONE),
    pre("grok-2", "grok-2", NONE),
    pre("afmoe", "afmoe", NONE),
    pre("laguna", "laguna", NONE),
    pre("minimax-m2", "minimax-m2", NONE),
    pre("solar-open", "solar-open", NONE),
    pre("mellum2", "mellum2", CLEAN_SPACES),
];

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

/// All families.
#[rustfmt::skip]
pub const FAMILIES: &[Family] = &[
    Family { name: "llama3", patterns: &[LLAMA3], byte_encode: true },
    Family { name: "jais2", patterns: &[r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"], byte_encode: true },
    Family { name: "dbrx", patterns: &[LLAMA3], byte_encode: true },
    Family { name: "smaug", patterns: &[LLAMA3], byte_encode: true },
    Family { name: "deepseek-llm", patterns: &[NEWLINE, r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", DEEPSEEK_CJK, NUMBERS], byte_encode: true },
    Family { name: "deepseek3-llm", patterns: &[NUMBERS_3, KANJI_KANA, DEEPSEEK3], byte_encode: true },
    Family { name: "hunyuan-dense", patterns: &[NUMBERS_3, KANJI_KANA, DEEPSEEK3], byte_encode: true },
    Family { name: "joyai-llm", patterns: &[NUMBERS_3, KANJI_KANA, DEEPSEEK3], byte_encode: true },
    Family { name: "hy-v4", patterns: &[NUMBERS_3, KANJI_KANA, DEEPSEEK3], byte_encode: true },
    Family { name: "spark2-5", patterns: &[NUMBERS_3, KANJI_KANA, "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+|[\r\n]|\\s+(?!\\S)|\\s+", NUMBER], byte_encode: true },
    Family { name: "youtu", patterns: &[r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+", CASED], byte_encode: true },
    Family { name: "deepseek-coder", patterns: &[NEWLINE, LETTERS_AFTER_SPACE, PUNCTUATION_AFTER_SPACE, DEEPSEEK_CJK, NUMBER], byte_encode: true },
    Family { name: "falcon", patterns: &[PUNCTUATION, GPT2, THREE_DIGITS], byte_encode: true },
    Family { name: "starcoder", patterns: &[NUMBER, GPT2], byte_encode: true },
    Family { name: "refact", patterns: &[NUMBER, GPT2], byte_encode: true },
    Family { name: "command-r", patterns: &[NUMBER, GPT2], byte_encode: true },
    Family { name: "smollm", patterns: &[NUMBER, GPT2], byte_encode: true },
    Family { name: "codeshell", patterns: &[NUMBER, GPT2], byte_encode: true },
    Family { name: "exaone", patterns: &[NUMBER, GPT2], byte_encode: true },
    Family { name: "minerva", patterns: &[NUMBER, GPT2], byte_encode: true },
    Family { name: "mellum2", patterns: &[NUMBER, GPT2], byte_encode: true },
    Family { name: "gpt2", patterns: &[GPT2], byte_encode: true },
    Family { name: "mpt", patterns: &[GPT2], byte_encode: true },
    Family { name: "olmo", patterns: &[GPT2], byte_encode: true },
    Family { name: "jais", patterns: &[GPT2], byte_encode: true },
    Family { name: "trillion", patterns: &[GPT2], byte_encode: true },
    Family { name: "granite-docling", patterns: &[GPT2], byte_encode: true },
    Family { name: "stablelm2", patterns: &[QWEN2], byte_encode: true },
    Family { name: "qwen2", patterns: &[QWEN2], byte_encode: true },
    Family { name: "hunyuan", patterns: &[QWEN2], byte_encode: true },
    Family { name: "solar-open", patterns: &[QWEN2], byte_encode: true },
    Family { name: "qwen35", patterns: &[QWEN35], byte_encode: true },
    Family { name: "poro", patterns: &[BLOOM], byte_encode: true },
    Family { name: "bloom", patterns: &[BLOOM], byte_encode: true },
    Family { name: "gpt3-finnish", patterns: &[BLOOM], byte_encode: true },
    Family { name: "chatglm4", patterns: &[LLAMA3], byte_encode: true },
    Family { name: "viking", patterns: &[BLOOM, NUMBER], byte_encode: true },
    Family { name: "tekken", patterns: &[TEKKEN], byte_encode: true },
    Family { name: "chameleon", patterns: &[r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", NUMBER, r"[\p{P}!-/:-@\[-`{-~]", GPT2], byte_encode: true },
    Family { name: "gpt4o", patterns: &[GPT4O], byte_encode: true },
    Family { name: "minimax-m2", patterns: &[GPT4O], byte_encode: true },
    Family { name: "granite-emb-multi", patterns: &[GRANITE], byte_encode: true },
    Family { name: "tiny-aya", patterns: &[r"\d{1,3}(?=(?:\d{3})*\b)", CASED_3], byte_encode: true },
    Family { name: "kimi-k2", patterns: &[HAN], byte_encode: true },
    Family { name: "superbpe", patterns: &[NUMBERS, THOUSANDS], byte_encode: true },
    Family { name: "bailingmoe", patterns: &[BAILINGMOE], byte_encode: true },
    Family { name: "seed-coder", patterns: &[SEED_CODER], byte_encode: true },
    Family { name: "ufakzeka", patterns: &[UFAKZEKA], byte_encode: true },
    Family { name: "grok-2", patterns: &[QWEN2], byte_encode: true },
    Family { name: "afmoe", patterns: &[r"\p{AFMoE_digits}", r"[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+", r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##], byte_encode: true },
    Family { name: "laguna", patterns: &[LINES, QWEN2], byte_encode: true },
    Family { name: "exaone-moe", patterns: &[r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"], byte_encode: true },
    Family { name: "gemma4", patterns: &[LINES], byte_encode: false },
    Family { name: "sarvam-moe", patterns: &[LINES], byte_encode: false },
    Family { name: "minicpm5", patterns: &[NUMBERS_3, MINICPM5], byte_encode: true },
    Family { name: "whitespace", patterns: &[WORDS], byte_encode: false },
    Family { name: "default", patterns: &[PUNCTUATION_BUT_BACKQUOTE, GPT2, NUMBERS, THREE_DIGITS], byte_encode: true },
];

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
