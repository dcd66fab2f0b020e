//! Ids back to text: the bytes that each token stands for, and what happens where they meet.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::token_to_piece` and `detokenize`, `token_to_byte` and
//! `llama_decode_text`. Building takes O(total length of the texts), decoding O(ids + length of the output).
//!
//! Deviations:
//! 1. An id that does not exist is an error; llama.cpp ends the process.
//! 2. A byte token in a WordPiece vocabulary is an error; llama.cpp aborts. Elsewhere one that is too short is an
//!    error in both.

use std::io::Write;

use memchr::{memchr_iter, memchr2_iter};

use crate::error::{TokenIndexError, VocabularyError};
use crate::sink::{NULL_TOKEN, TokenId};
use crate::unicode::utf8;
use crate::vocabulary::spelling::byte_level::unspell;
use crate::vocabulary::spelling::{
    BEYOND_UNICODE_LEAD, beyond_unicode, byte_of, leading_byte_of, unescape_rwkv, unescape_spaces,
};
use crate::vocabulary::{Kind, Vocabulary};

/// A piece up to this length is copied as that many bytes, whose number the compiler knows.
const BLOCK: usize = 16;

/// More than the pieces of any vocabulary take; a text that describes many characters is as long as its square.
const MAX_BYTES: usize = 1 << 28;

/// What each token of a vocabulary stands for: llama.cpp's pieces.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    /// The pieces end to end, and then [`BLOCK`] more bytes.
    bytes: Vec<u8>,
    /// By id.
    places: Vec<Place>,
}

/// Where a piece lies and whether it is only shown on request.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: u32,
    /// Length in the upper 31 bits, and in the lowest whether the token is a control token or unknown.
    len_and_special: u32,
}

impl Place {
    /// The length where the token is shown, else 0.
    fn len(self, special: bool) -> usize {
        if !special && self.len_and_special & 1 == 1 { 0 } else { (self.len_and_special >> 1) as usize }
    }
}

impl Pieces {
    /// Works out the piece of every token.
    ///
    /// # Errors
    /// - [`VocabularyError::ByteToken`]: a byte token's text is too short to name its byte, or the vocabulary is
    ///   WordPiece.
    /// - [`VocabularyError::BeyondUnicode`]: a byte-level text cannot be read as characters.
    /// - [`VocabularyError::TooLarge`]: the pieces together are larger than 256 MiB.
    pub fn new(vocabulary: &Vocabulary) -> Result<Self, VocabularyError> {
        let mut bytes = Vec::with_capacity(vocabulary.len() * 8 + BLOCK);
        let mut places = Vec::with_capacity(vocabulary.len());
        for id in 0..vocabulary.len() as TokenId {
            let start = bytes.len();
            append_piece(vocabulary, id, &mut bytes)?;
            check_size(&bytes)?;
            let attributes = vocabulary.attributes(id);
            let special = attributes.is_control() || attributes.is_unknown();
            let len_and_special = ((bytes.len() - start) as u32) << 1 | u32::from(special);
            places.push(Place { start: start as u32, len_and_special });
        }
        bytes.extend([0; BLOCK]);
        Ok(Self { bytes, places })
    }

    /// Whether [`Pieces::new`] is sure to succeed, told from a glance at the texts; false where only trying tells.
    pub fn are_sure(vocabulary: &Vocabulary) -> bool {
        let texts = vocabulary.texts();
        let are_spelled = are_spelled(vocabulary);
        // At worst every byte is a character that is described, with the whole text, or the piece is the id.
        let for_each_byte = |text: &[u8]| if are_spelled { text.len() + 32 } else { 1 };
        let most_bytes = |text: &[u8]| text.len().saturating_mul(for_each_byte(text)) + 8;
        let has_room = texts.iter().map(most_bytes).fold(0, usize::saturating_add) <= MAX_BYTES;
        let names_byte = |(text, id)| {
            let is_byte = vocabulary.attributes(id).is_byte();
            !is_byte || vocabulary.kind() != Kind::Wpm && <[u8]>::len(text) >= 3
        };
        has_room
            && (!are_spelled || texts.highest_byte() < BEYOND_UNICODE_LEAD)
            && texts.iter().zip(0..).all(names_byte)
    }

    /// What a token stands for; nothing for control and unknown tokens unless `special`.
    ///
    /// # Errors
    /// [`TokenIndexError`]: there is no such token.
    pub fn piece(&self, id: TokenId, special: bool) -> Result<&[u8], TokenIndexError> {
        let place = self.place(id)?;
        Ok(&self.bytes[place.start as usize..][..place.len(special)])
    }

    /// Memory held outside the value itself, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.places.capacity() * size_of::<Place>()
    }

    #[inline]
    fn place(&self, id: TokenId) -> Result<Place, TokenIndexError> {
        let place = self.places.get(id as usize).filter(|_| id >= 0);
        place.copied().ok_or(TokenIndexError { id: id.into(), size: self.places.len() })
    }

    /// The pieces of `ids` end to end.
    fn concatenate(&self, ids: &[TokenId], special: bool) -> Result<Vec<u8>, TokenIndexError> {
        let mut len = 0;
        for &id in ids {
            len += self.place(id)?.len(special);
        }
        let mut text = vec![0; len + BLOCK];
        let mut end = 0;
        for &id in ids {
            let place = self.place(id)?;
            let (start, len) = (place.start as usize, place.len(special));
            let copied = len.max(BLOCK);
            if copied == BLOCK {
                text[end..end + BLOCK].copy_from_slice(&self.bytes[start..start + BLOCK]);
            } else {
                text[end..end + len].copy_from_slice(&self.bytes[start..start + len]);
            }
            end += len;
        }
        text.truncate(len);
        Ok(text)
    }
}

/// The text that `ids` stand for.
///
/// `remove_special` takes off a BOS at the beginning and an EOS at the end, where the vocabulary adds them;
/// `unparse_special` shows control and unknown tokens.
///
/// # Errors
/// [`TokenIndexError`]: an id is not in the vocabulary.
pub fn detokenize(
    vocabulary: &Vocabulary,
    pieces: &Pieces,
    mut ids: &[TokenId],
    remove_special: bool,
    unparse_special: bool,
) -> Result<Vec<u8>, TokenIndexError> {
    let (settings, special) = (vocabulary.settings(), vocabulary.special());
    let mut remove_space = settings.add_space_prefix;
    // A vocabulary without a BOS takes the null token for it, as llama.cpp does.
    if remove_special && settings.add_bos && ids.first() == Some(&special.bos.unwrap_or(NULL_TOKEN)) {
        remove_space = false;
        ids = &ids[1..];
    }
    if remove_special && settings.add_eos && ids.last() == Some(&special.eos.unwrap_or(NULL_TOKEN)) {
        ids = &ids[..ids.len() - 1];
    }
    let mut text = pieces.concatenate(ids, unparse_special)?;
    if let Some(&first) = ids.first()
        && remove_space
        && pieces.piece(first, unparse_special)?.starts_with(b" ")
    {
        text.remove(0);
    }
    if settings.clean_spaces {
        clean_spaces(&mut text);
    }
    Ok(text)
}

/// Takes out spaces before `.`, `,`, `!` and `?`, then those around a lone apostrophe, then those before the
/// contractions `'s`, `'m`, `'re` and `'ve`.
fn clean_spaces(text: &mut Vec<u8>) {
    let space_before = |text: &[u8], at: usize| at > 0 && text[at - 1] == b' ';

    let before_marks: [fn(&[u8]) -> memchr::Memchr2<'_>; 2] =
        [|text| memchr2_iter(b'.', b',', text), |text| memchr2_iter(b'!', b'?', text)];
    for marks in before_marks {
        let spaces = marks(text).filter(|&at| space_before(text, at)).map(|at| at - 1).collect();
        delete(text, spaces);
    }

    let mut spaces = Vec::new();
    // Where the next apostrophe has to come for its space to be there: not right after a space that is taken out.
    let mut from = 0;
    for at in memchr_iter(b'\'', text) {
        if at >= from && space_before(text, at) && text.get(at + 1) == Some(&b' ') {
            spaces.extend([at - 1, at + 1]);
            from = at + 3;
        }
    }
    delete(text, spaces);

    let contracted = |rest: &[u8]| matches!(rest, [b's' | b'm', ..] | [b'r' | b'v', b'e', ..]);
    let apostrophes = memchr_iter(b'\'', text).filter(|&at| space_before(text, at) && contracted(&text[at + 1..]));
    let spaces = apostrophes.map(|at| at - 1).collect();
    delete(text, spaces);
}

/// Takes the bytes at the ascending `places` out of a text.
fn delete(text: &mut Vec<u8>, places: Vec<usize>) {
    let Some(&first) = places.first() else { return };
    let mut end = first;
    let nexts = places.iter().skip(1).copied().chain([text.len()]);
    for (&place, next) in places.iter().zip(nexts) {
        text.copy_within(place + 1..next, end);
        end += next - (place + 1);
    }
    text.truncate(end);
}

/// Whether normal tokens spell bytes.
fn are_spelled(vocabulary: &Vocabulary) -> bool {
    vocabulary.kind() == Kind::Bpe && !vocabulary.settings().escape_whitespaces
}

/// Appends what a token stands for, special ones included.
fn append_piece(vocabulary: &Vocabulary, id: TokenId, out: &mut Vec<u8>) -> Result<(), VocabularyError> {
    let text = vocabulary.text(id);
    let attributes = vocabulary.attributes(id);
    match vocabulary.kind() {
        Kind::None => {}
        Kind::Rwkv => unescape_rwkv(text, out),
        Kind::Plamo2 => match byte_of(text).filter(|_| attributes.is_byte()) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(text),
        },
        // Writing to a vector cannot fail.
        Kind::Test => {
            let _ = write!(out, "{id:x}");
        }
        kind @ (Kind::Spm | Kind::Bpe | Kind::Wpm | Kind::Ugm) => {
            if attributes.is_unknown() || attributes.is_control() || attributes.is_user_defined() {
                out.extend_from_slice(text);
            } else if attributes.is_normal() && are_spelled(vocabulary) {
                if let Some(offset) = beyond_unicode(text) {
                    return Err(VocabularyError::BeyondUnicode { id, offset });
                }
                append_decoded(text, out)?;
            } else if attributes.is_normal() {
                unescape_spaces(text, out);
            } else if attributes.is_byte() {
                let byte = leading_byte_of(text).filter(|_| kind != Kind::Wpm);
                out.push(byte.ok_or_else(|| VocabularyError::ByteToken { id, text: text.to_vec() })?);
            }
        }
    }
    Ok(())
}

/// Appends the bytes that a byte-level text spells. A character that spells none is described, with the whole text,
/// where its byte should have been.
fn append_decoded(text: &[u8], out: &mut Vec<u8>) -> Result<(), VocabularyError> {
    let mut at = 0;
    while at < text.len() {
        let (code_point, len) = utf8::decode_lossy(text, at);
        at += len;
        if let Some(byte) = unspell(code_point) {
            out.push(byte);
            continue;
        }
        out.extend_from_slice(b"[UNK_BYTE_0x");
        for byte in utf8::encode(code_point, &mut [0; 4]) {
            let _ = write!(out, "{byte:02x}");
        }
        out.extend_from_slice(text);
        out.push(b']');
        check_size(out)?;
    }
    Ok(())
}

fn check_size(bytes: &[u8]) -> Result<(), VocabularyError> {
    if bytes.len() > MAX_BYTES {
        return Err(VocabularyError::TooLarge { what: "text of all tokens" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::Definition;
    use crate::vocabulary::strings::StringIndex;
    use proptest::prelude::*;

    fn load(model: &str, tokens: &[(&[u8], i32)]) -> Result<(Vocabulary, Pieces), VocabularyError> {
        let texts: Vec<&[u8]> = tokens.iter().map(|&(text, _)| text).collect();
        let types: Vec<i32> = tokens.iter().map(|&(_, token_type)| token_type).collect();
        let (data, index) = StringIndex::concatenate(&texts).unwrap();
        let definition = Definition {
            model,
            pre: Some("default"),
            tokens: Some(index.view(&data)),
            token_types: Some(&types),
            merges: Some(index.view(&data)),
            ..Definition::default()
        };
        let vocabulary = Vocabulary::declare(&definition)?;
        let pieces = Pieces::new(&vocabulary)?;
        Ok((vocabulary, pieces))
    }

    fn shown(model: &str, tokens: &[(&[u8], i32)]) -> Vec<Vec<u8>> {
        let (vocabulary, pieces) = load(model, tokens).unwrap();
        (0..vocabulary.len()).map(|id| pieces.piece(id as TokenId, true).unwrap().to_vec()).collect()
    }

    const NORMAL: i32 = 1;
    const UNKNOWN: i32 = 2;
    const CONTROL: i32 = 3;
    const USER_DEFINED: i32 = 4;
    const UNUSED: i32 = 5;
    const BYTE: i32 = 6;

    #[test]
    fn pieces_of_each_kind() {
        let text = "▁a▁\u{2582}".as_bytes();
        let types =
            [(text, NORMAL), (&b"b"[..], UNUSED), (b"<0x0a>", BYTE), (b"\xE2\x96\x81!", USER_DEFINED), (b"c", 9)];
        let spaced: [&[u8]; 5] = [" a \u{2582}".as_bytes(), b"", b"\n", "▁!".as_bytes(), b""];
        assert_eq!(shown("llama", &types), spaced);
        assert_eq!(shown("t5", &types), spaced);
        assert_eq!(shown("gemma4", &types), spaced);
        let plain: [&[u8]; 5] = [text, b"b", b"\n", "▁!".as_bytes(), b"c"];
        assert_eq!(shown("plamo2", &types), plain);
        assert_eq!(shown("rwkv", &[(br"a\n\xff", NORMAL), (br"\t", CONTROL)]), [&b"a\n\xff"[..], b"\t"]);
        let hex: Vec<Vec<u8>> = shown("test", &[(&b"x"[..], NORMAL); 1]);
        assert_eq!(hex, [b"0"]);
    }

    #[test]
    fn byte_level_texts_are_read_back() {
        let tokens: [(&[u8], i32); 4] =
            [("ĠéĊ".as_bytes(), NORMAL), (b"a b\xFF", NORMAL), ("Ġ".as_bytes(), USER_DEFINED), (b"<0xfF>", BYTE)];
        let unknown = b"a[UNK_BYTE_0x20a b\xFF]b[UNK_BYTE_0xefbfbda b\xFF]";
        assert_eq!(shown("gpt2", &tokens), [&b" \xE9\n"[..], unknown, "Ġ".as_bytes(), b"\xFF"]);
    }

    #[test]
    fn byte_tokens_read_like_strtol() {
        let short = VocabularyError::ByteToken { id: 0, text: b"<0".to_vec() };
        assert_eq!(load("llama", &[(b"<0", BYTE)]).unwrap_err(), short);
        assert!(load("bert", &[(b"<0x00>", BYTE)]).is_err());
        assert_eq!(shown("llama", &[(b"<0x", BYTE)]), [[0]]);
    }

    #[test]
    fn only_texts_that_spell_bytes_can_be_beyond_unicode() -> Result<(), VocabularyError> {
        for (model, is_sure) in [("gpt2", false), ("llama", true), ("t5", true)] {
            let (vocabulary, _) = load(model, &[("\u{10FFFF}".as_bytes(), NORMAL), (b"a", NORMAL), (b"b", NORMAL)])?;
            assert_eq!(Pieces::are_sure(&vocabulary), is_sure, "{model}");
        }
        Ok(())
    }

    #[test]
    fn special_tokens_and_the_leading_space() -> Result<(), VocabularyError> {
        let tokens: [(&[u8], i32); 5] = [
            (b"<unk>", UNKNOWN),
            (b"<s>", CONTROL),
            (b"</s>", CONTROL),
            ("▁▁a".as_bytes(), NORMAL),
            (b"a token of more than one block", NORMAL),
        ];
        // BOS is 1 and EOS 2 by default, BOS is added and EOS is not.
        let (vocabulary, pieces) = load("llama", &tokens)?;
        let text = |ids: &[TokenId], remove, unparse| {
            detokenize(&vocabulary, &pieces, ids, remove, unparse)
                .map(|text| String::from_utf8_lossy(&text).into_owned())
        };
        assert_eq!(text(&[1, 3, 3, 2], false, false), Ok("  a  a".into()));
        assert_eq!(text(&[1, 3, 3, 2], true, false), Ok("  a  a".into()));
        assert_eq!(text(&[1, 3, 3, 2], true, true), Ok("  a  a</s>".into()));
        assert_eq!(text(&[3, 3, 0], false, true), Ok(" a  a<unk>".into()));
        assert_eq!(text(&[4, 3, 4, 3], false, true), Ok("a token of more than one block  a".repeat(2)));
        assert_eq!(text(&[], true, true), Ok(String::new()));
        for id in [-1, 5, TokenId::MIN, TokenId::MAX] {
            assert_eq!(text(&[3, id], false, false), Err(TokenIndexError { id: id.into(), size: 5 }));
            assert!(pieces.piece(id, true).is_err());
        }
        Ok(())
    }

    /// The three passes as llama.cpp's loops make them: byte by byte, in place, the byte before being what it was.
    fn naive_clean_spaces(text: &[u8]) -> Vec<u8> {
        let pass = |text: Vec<u8>, step: fn(&[u8], usize) -> (bool, bool)| {
            let (mut out, mut before, mut at) = (Vec::new(), b'\0', 0);
            while at < text.len() {
                let (drop_before, drop_after) = if before == b' ' { step(&text, at) } else { (false, false) };
                if drop_before {
                    out.pop();
                }
                out.push(text[at]);
                before = if drop_after { b'\0' } else { text[at] };
                at += 1 + usize::from(drop_after);
            }
            out
        };
        let text = pass(text.to_vec(), |text, at| (b"?!.,".contains(&text[at]), false));
        let text = pass(text, |text, at| {
            let alone = text[at] == b'\'' && text.get(at + 1) == Some(&b' ');
            (alone, alone)
        });
        pass(text, |text, at| {
            let rest = &text[at..];
            (["'s", "'m", "'re", "'ve"].iter().any(|end| rest.starts_with(end.as_bytes())), false)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn spaces_are_cleaned_as_in_the_loops(text in "[ '?!.,smrvetdl]{0,24}") {
            let mut cleaned = text.clone().into_bytes();
            clean_spaces(&mut cleaned);
            prop_assert_eq!(cleaned, naive_clean_spaces(text.as_bytes()));
        }
    }
}
