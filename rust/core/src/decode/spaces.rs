//! Cleans up spaces part by part: llama.cpp's three passes as three searches for a few strings, each feeding the next.
//!
//! A pass needs at most three bytes after a space to decide about it. Until then it holds the space and these bytes
//! back. Bytes of a prompt take part but are not output. Text without a space before a space, mark or apostrophe is
//! copied at once.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::detokenize`. Time: O(1) per byte. Space: at most six
//! bytes are held back.
//!
//! Deviations: none.

use crate::work::interrupt::Ticker;
use crate::work::memory::{append, push};

/// A byte of the text, and whether it belongs to the prompt.
#[derive(Debug, Clone, Copy, Default)]
struct Byte {
    value: u8,
    is_prompt: bool,
}

/// The bytes that a pass holds back: the beginning of one of its strings.
#[derive(Debug, Clone, Default)]
struct Held {
    bytes: [Byte; 4],
    len: usize,
}

impl Held {
    fn push(&mut self, byte: Byte) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Releases all of them.
    fn take(&mut self) -> impl Iterator<Item = Byte> + use<> {
        let Self { bytes, len } = std::mem::take(self);
        bytes.into_iter().take(len)
    }
}

/// The strings that each pass looks for. It removes their spaces.
const PASSES: [&[&[u8]]; 3] = [&[b" .", b" ,", b" !", b" ?"], &[b" ' "], &[b" 's", b" 'm", b" 're", b" 've"]];

/// The state of the three passes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spaces([Held; 3]);

impl Spaces {
    /// Takes more bytes and appends those that stay, except bytes of the prompt.
    #[inline(never)]
    pub(crate) fn push(&mut self, mut bytes: &[u8], is_prompt: bool, out: &mut Vec<u8>) {
        let mut ticker = Ticker::default();
        while !bytes.is_empty() {
            ticker.tick();
            if self.0.iter().all(|held| held.len == 0) {
                let (plain, rest) = bytes.split_at(num_plain(bytes));
                if !is_prompt {
                    append(out, plain);
                }
                // The most common strings of the first and the second pass. A mark after ` ' ` takes the second space.
                let num_done = match *rest {
                    [b' ', mark, ..] if is_mark(mark) => 1,
                    [b' ', value @ b'\'', b' ', next, ..] if !is_mark(next) => {
                        emit(Byte { value, is_prompt }, out);
                        3
                    }
                    _ => 0,
                };
                bytes = &rest[num_done..];
                if num_done > 0 {
                    continue;
                }
            }
            if let Some((&value, rest)) = bytes.split_first() {
                self.pass(0, Byte { value, is_prompt }, out);
                bytes = rest;
            }
        }
        self.settle(out);
    }

    /// Releases what a later pass holds back although an earlier one implies that it stays: a space held back by the
    /// first pass reaches the later ones as a space, or is removed and a mark follows.
    fn settle(&mut self, out: &mut Vec<u8>) {
        if self.0[1].len == 1 && self.0[0].len > 0 {
            self.release(1, out);
        }
        // Then an earlier pass releases its space next, or a mark or apostrophe instead: not a letter of a contraction.
        if self.0[2].len > 1 && self.0[0].len + self.0[1].len > 0 {
            self.release(2, out);
        }
    }

    /// Ends the text: everything held back stays.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) {
        (0..PASSES.len()).for_each(|number| self.release(number, out));
    }

    /// Takes the next byte of a pass; after the last pass, outputs it. A pass that holds nothing back waits for a space.
    #[inline]
    fn pass(&mut self, first: usize, byte: Byte, out: &mut Vec<u8>) {
        let takes = |&number: &usize| byte.value == b' ' || self.0[number].len > 0;
        let Some(number) = (first..PASSES.len()).find(takes) else { return emit(byte, out) };
        let held = &mut self.0[number];
        // Only the next byte is compared: where strings of a pass differ in one byte, the same byte follows in all.
        match PASSES[number].iter().find(|string| string.get(held.len) == Some(&byte.value)) {
            Some(string) if string.len() > held.len + 1 => held.push(byte),
            Some(_) => {
                held.push(byte);
                let kept = held.take().filter(|byte| byte.value != b' ');
                kept.for_each(|byte| self.pass(number + 1, byte, out));
            }
            None => {
                self.release(number, out);
                self.pass(number, byte, out);
            }
        }
    }

    /// Has the next pass take what this one holds back.
    fn release(&mut self, number: usize, out: &mut Vec<u8>) {
        self.0[number].take().for_each(|byte| self.pass(number + 1, byte, out));
    }
}

/// How many bytes stay, whatever the passes do: those before a space that is the last byte, or before another space, a
/// mark or an apostrophe.
fn num_plain(bytes: &[u8]) -> usize {
    let may_go = |pair: &[u8]| pair[0] == b' ' && (matches!(pair[1], b' ' | b'\'') || is_mark(pair[1]));
    bytes.windows(2).position(may_go).unwrap_or(bytes.len() - usize::from(bytes.ends_with(b" ")))
}

/// Whether the first pass removes a space before this byte.
fn is_mark(byte: u8) -> bool {
    matches!(byte, b'.' | b',' | b'!' | b'?')
}

fn emit(byte: Byte, out: &mut Vec<u8>) {
    if !byte.is_prompt {
        push(out, byte.value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Spaces;

    /// llama.cpp's three passes, byte by byte. Each byte is compared with the previous one in the pass's input.
    fn cleaned(text: &str) -> String {
        let pass = |text: Vec<u8>, step: fn(&[u8], usize) -> (bool, bool)| {
            let mut out = Vec::new();
            let mut before = b'\0';
            let mut at = 0;
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
        let text = pass(text.as_bytes().to_vec(), |text, at| (b"?!.,".contains(&text[at]), false));
        let text = pass(text, |text, at| {
            let alone = text[at] == b'\'' && text.get(at + 1) == Some(&b' ');
            (alone, alone)
        });
        let text = pass(text, |text, at| {
            let rest = &text[at..];
            (["'s", "'m", "'re", "'ve"].iter().any(|end| rest.starts_with(end.as_bytes())), false)
        });
        String::from_utf8(text).expect("ASCII")
    }

    fn pushed(spaces: &mut Spaces, text: &str, is_prompt: bool) -> String {
        let mut out = Vec::new();
        spaces.push(text.as_bytes(), is_prompt, &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn a_text_is_cleaned_as_by_the_naive_loops(text in "[ '?!.,smrvetdl]{0,24}") {
            let mut spaces = Spaces::default();
            let mut out = Vec::new();
            spaces.push(text.as_bytes(), false, &mut out);
            spaces.flush(&mut out);
            prop_assert_eq!(String::from_utf8(out).expect("ASCII"), cleaned(&text));
        }

        #[test]
        fn parts_are_cleaned_as_the_whole(text in "[ '.smrve]{0,16}") {
            let mut spaces = Spaces::default();
            let mut out = String::new();
            for at in 0..text.len() {
                out += &pushed(&mut spaces, &text[at..=at], false);
                // The output is exactly what all continuations share.
                let ends = ["", "x", ".", "' ", "' s", " ", " s", "'", "s", "e", "'x", " x", "' x", "'s", "'re", " ' s"];
                let wholes: Vec<String> = ends.iter().map(|end| cleaned(&format!("{}{end}", &text[..=at]))).collect();
                let shared = (0..).take_while(|&n| {
                    wholes.iter().all(|whole| n < whole.len() && whole.as_bytes()[n] == wholes[0].as_bytes()[n])
                });
                prop_assert_eq!(&out, &wholes[0][..shared.count()], "after {:?}", &text[..=at]);
            }
            let mut end = Vec::new();
            spaces.flush(&mut end);
            prop_assert_eq!(out + std::str::from_utf8(&end).expect("ASCII"), cleaned(&text));
        }

        #[test]
        fn a_prompt_takes_part_and_does_not_come_out(prompt in "[ '.smrve]{0,8}", text in "[ '.smrve]{0,8}") {
            let mut spaces = Spaces::default();
            prop_assert_eq!(pushed(&mut spaces, &prompt, true), "");
            let mut out = pushed(&mut spaces, &text, false).into_bytes();
            spaces.flush(&mut out);
            let out = String::from_utf8(out).expect("ASCII");
            // Only spaces are removed, so the output is the end of the whole text: `text` without some of its spaces.
            let whole = cleaned(&format!("{prompt}{text}"));
            prop_assert!(whole.ends_with(&out));
            prop_assert_eq!(out.replace(' ', ""), text.replace(' ', ""));
            // Before the first letter of the text, a space may belong to either; after it, all belong to the text.
            if let Some(first) = text.find(|letter| letter != ' ') {
                let from = |text: &str| text[text.find(|letter| letter != ' ').unwrap_or(0)..].to_owned();
                prop_assert!(whole.ends_with(&from(&out)));
                prop_assert!(out.len() - from(&out).len() <= first);
            }
        }
    }

    #[test]
    fn a_space_of_the_prompt_is_not_output() {
        let after = |prompt: &str, text: &str| {
            let mut spaces = Spaces::default();
            pushed(&mut spaces, prompt, true);
            let mut out = pushed(&mut spaces, text, false).into_bytes();
            spaces.flush(&mut out);
            String::from_utf8(out).expect("ASCII")
        };
        assert_eq!(after("a ", "."), ".");
        assert_eq!(after("a", " ."), ".");
        assert_eq!(after("a '", " b"), "b");
        assert_eq!(after("a '", "re"), "re");
        assert_eq!(after("a '", "x"), "x");
    }
}
