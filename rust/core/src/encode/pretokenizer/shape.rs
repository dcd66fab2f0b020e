//! The shape of a pattern: the parameters with which `blocks` matches a family's patterns.
//!
//! The patterns of GPT-2 and of cl100k (GPT-4, Llama 3, Qwen) have dozens of descendants that differ in a few choices:
//! how digits are grouped, which characters make words, what happens to contractions. A [`Shape`] is one combination of
//! such choices, and [`Shape::of`] maps lists of patterns to shapes. Patterns without a shape are left to their
//! automata.
//!
//! Source: the patterns themselves (see `families`); the tests of `blocks` compare each shape with them.

use crate::text::unicode;
use crate::vocabulary::families::{
    BAILINGMOE, CASED, CASED_3, DEEPSEEK3, GPT2, GPT4O, GRANITE, HAN, KANJI_KANA, LLAMA3, MINICPM5, NUMBER, NUMBERS,
    NUMBERS_3, PUNCTUATION, PUNCTUATION_BUT_BACKQUOTE, QWEN2, QWEN35, SEED_CODER, TEKKEN, THREE_DIGITS, UFAKZEKA,
};

/// The pattern that llama.cpp's code for `\p{Han}+` matches: all of Kimi K2's pattern.
const KIMI_K2: &str = r"\p{Han}+|[^\r\n\p{L}\p{N}]?\p{L-Han}+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A pattern that blocks can match, or several that are matched as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Whether the pattern descends from cl100k's: a word takes any one character before it, and a run of whitespace
    /// ends with its last newline. Otherwise it descends from GPT-2's: a space goes with what follows it.
    pub cl100k: bool,
    pub digits: Digits,
    /// Whether a separate pattern cuts out digits before this one sees the text between them.
    pub digits_first: bool,
    pub words: WordChars,
    /// Whether a word ends before a letter from `A` to `Z` that follows any other letter.
    pub cased: bool,
    pub contractions: Contractions,
    pub tail: Tail,
}

/// How digits are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digits {
    /// Each digit by itself.
    Single,
    /// Threes from the left.
    Threes,
    /// Whole runs, with a space before them.
    Runs,
    /// Falcon's: whole runs with a space before them, then split into three ASCII digits at a time.
    RunsThenThrees,
}

/// Which characters make words, and which are isolated: cut out in separate runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordChars {
    /// Letters. Whatever is not a letter, a number or whitespace counts as "other".
    Letters,
    /// Letters and marks.
    LettersAndMarks,
    /// Letters. A mark continues a word after a letter, or a run of others after an other, so it is undecided.
    MarksByContext,
    /// DeepSeek V3's: letters and marks; kanji and kana are isolated. Of the other characters, only punctuation and
    /// symbols are decided. A word takes only an ASCII character before it, and then only ASCII letters.
    DeepSeek,
    /// Kimi K2's: letters; Han letters are isolated. Any other Han character is undecided.
    KimiK2,
    /// Falcon's: letters. Punctuation and ASCII symbols are isolated.
    Falcon,
    /// The default: as Falcon's, except that a backquote is not isolated.
    Default,
}

/// What a pattern does with `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` and `'d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contractions {
    /// Nothing.
    None,
    /// They are pieces, in lower case only.
    Lower,
    /// They are pieces, in any case.
    Pieces,
    /// They end the word before them, in any case.
    Suffixes,
}

/// What joins a run of characters that are not letters, digits or whitespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing.
    None,
    /// The newlines after it.
    Newlines,
    /// The newlines and slashes after it.
    Slashes,
}

impl Shape {
    pub(crate) const GPT2: Self = Self {
        cl100k: false,
        digits: Digits::Runs,
        digits_first: false,
        words: WordChars::Letters,
        cased: false,
        contractions: Contractions::Lower,
        tail: Tail::None,
    };
    pub(crate) const CL100K: Self = Self {
        cl100k: true,
        digits: Digits::Threes,
        contractions: Contractions::Pieces,
        tail: Tail::Newlines,
        ..Self::GPT2
    };
    pub(crate) const QWEN2: Self = Self { digits: Digits::Single, ..Self::CL100K };
    const O200K: Self = Self { cased: true, contractions: Contractions::Suffixes, tail: Tail::Slashes, ..Self::CL100K };
    /// Patterns that distinguish case by Unicode categories. llama.cpp does not: it puts every letter in all of them.
    const CASED: Self = Self { words: WordChars::MarksByContext, cased: false, ..Self::O200K };
    const FALCON: Self = Self {
        words: WordChars::Falcon,
        digits: Digits::RunsThenThrees,
        contractions: Contractions::None,
        ..Self::GPT2
    };

    /// The shape of these patterns together, if they have one.
    pub(super) fn of(patterns: &[&str]) -> Option<Self> {
        Some(match *patterns {
            [LLAMA3] => Self::CL100K,
            // BAILINGMOE asks for one newline and the others for any number. It makes no difference: `\s*` before it
            // takes the rest.
            [QWEN2 | BAILINGMOE] => Self::QWEN2,
            [QWEN35] => Self { words: WordChars::LettersAndMarks, ..Self::QWEN2 },
            [SEED_CODER] => Self { tail: Tail::None, ..Self::QWEN2 },
            [UFAKZEKA] => Self { contractions: Contractions::None, ..Self::QWEN2 },
            [GPT4O] => Self::O200K,
            [TEKKEN] => Self { digits: Digits::Single, contractions: Contractions::None, ..Self::O200K },
            [CASED] => Self { digits: Digits::Single, ..Self::CASED },
            [CASED_3] => Self::CASED,
            [GRANITE] => Self { cased: true, ..Self::CASED },
            [KIMI_K2] => Self { words: WordChars::KimiK2, contractions: Contractions::Suffixes, ..Self::CL100K },
            [GPT2] => Self::GPT2,
            [NUMBER, GPT2] => Self { digits: Digits::Single, digits_first: true, ..Self::GPT2 },
            [PUNCTUATION, GPT2, THREE_DIGITS] => Self::FALCON,
            // Numbers lose the space before them.
            [PUNCTUATION_BUT_BACKQUOTE, GPT2, NUMBERS, THREE_DIGITS] => {
                Self { words: WordChars::Default, digits: Digits::Threes, ..Self::FALCON }
            }
            [NUMBERS_3, MINICPM5] => Self { digits_first: true, ..Self::CL100K },
            [NUMBERS_3, KANJI_KANA, DEEPSEEK3] => Self {
                words: WordChars::DeepSeek,
                digits_first: true,
                contractions: Contractions::None,
                ..Self::CL100K
            },
            _ => return None,
        })
    }
}

/// The patterns that llama.cpp matches for those of a family.
pub(super) fn matched_patterns<'a>(patterns: &'a [&'a str]) -> &'a [&'a str] {
    if patterns == [HAN] { &[KIMI_K2] } else { patterns }
}

impl WordChars {
    /// Whether isolated characters are cut out before the pattern sees the text between them.
    #[inline(always)]
    pub(super) fn isolates_first(self) -> bool {
        matches!(self, Self::DeepSeek | Self::Falcon | Self::Default)
    }

    /// Whether an undecided character may continue a run of isolated characters; otherwise it may continue one of
    /// letters.
    #[inline(always)]
    pub(super) fn may_continue(self, is_isolated: bool) -> bool {
        if is_isolated { self == Self::KimiK2 } else { self == Self::MarksByContext }
    }

    /// Whether a character is isolated, or undecided because the pattern may cut it out of such a run again.
    #[inline(always)]
    pub(super) fn isolates(self, code_point: u32) -> bool {
        let is_ascii_symbol = || u8::try_from(code_point).is_ok_and(|byte| byte.is_ascii_punctuation());
        match self {
            Self::Letters | Self::LettersAndMarks | Self::MarksByContext => false,
            // The main blocks of kanji, hiragana and katakana, as in the pattern.
            Self::DeepSeek => matches!(code_point, 0x4E00..=0x9FA5 | 0x3040..=0x30FF),
            Self::KimiK2 => unicode::is_han(code_point),
            Self::Falcon => unicode::flags(code_point).is_punctuation() || is_ascii_symbol(),
            Self::Default => code_point != u32::from(b'`') && Self::Falcon.isolates(code_point),
        }
    }
}
