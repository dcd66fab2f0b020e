//! Reads Python for the positions before top-level blocks, and for what goes over several lines: strings, brackets,
//! continued lines, and decorators with what they decorate.
//!
//! A block starts at a line without indentation that is a `def` or `class`, or the first one after an indented line.
//! Comments and decorators before it belong to it. Source: the Python language reference, "Lexical analysis".
//! Deviation: a string inside an f-string is read as if it ended that. Text that is not Python gives some positions.
//! O(n).

use std::ops::Range;

use super::boundaries::Structure;
use crate::work::memory::{extend, push, reserve};

pub(super) fn read(text: &[u8]) -> Structure {
    let mut found = Structure::default();
    // Where the comments and decorators before this statement start, how far they are indented, and whether there are
    // decorators.
    let mut head = None::<(usize, usize, bool)>;
    let mut end = 0;
    let mut is_indented = false;
    while end < text.len() {
        let start = end;
        end = statement_end(text, start, &mut found.wholes);
        let indent = text[start..end].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let statement = &text[start + indent..end];
        let (from, _, is_decorated) = head.filter(|head| head.1 == indent).unwrap_or((start, indent, false));
        match statement.first() {
            None | Some(b'\n' | b'\r') => continue,
            Some(mark @ (b'#' | b'@')) => head = Some((from, indent, is_decorated || *mark == b'@')),
            Some(_) => {
                let word = statement.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
                let starts_block = match &statement[..word] {
                    b"def" | b"class" | b"async" => true,
                    b"else" | b"elif" | b"except" | b"finally" => false,
                    _ => is_indented,
                };
                if indent == 0 && starts_block {
                    push(&mut found.boundaries, from);
                }
                push(&mut found.wholes, if is_decorated { from } else { start }..end);
                (head, is_indented) = (None, indent > 0);
            }
        }
    }
    found
}

/// Where the statement or comment that starts at a line ends, after a newline. Finds strings and brackets in it that go
/// over several lines.
fn statement_end(text: &[u8], start: usize, wholes: &mut Vec<Range<usize>>) -> usize {
    // The lines where the open brackets start, and those where what ends in this line starts.
    let mut open = Vec::new();
    let mut ended = Vec::new();
    let mut at = start;
    let mut line = start;
    while at < text.len() {
        let from = at;
        at = match text[from] {
            b'#' => from + memchr::memchr(b'\n', &text[from..]).unwrap_or(text.len() - from),
            b'\'' | b'"' => string_end(text, from),
            b'\\' => from + 1 + newline_len(&text[from + 1..]),
            _ => from + 1,
        };
        match text[from] {
            b'(' | b'[' | b'{' => push(&mut open, line),
            b')' | b']' | b'}' => {
                if let Some(start) = open.pop() {
                    push(&mut ended, start);
                }
            }
            b'\n' => {
                reserve(wholes, ended.len());
                wholes.extend(ended.drain(..).filter(|&start| start < line).map(|start| start..at));
                line = at;
                if open.is_empty() {
                    break;
                }
            }
            _ => {
                if let Some(newline) = memchr::memrchr(b'\n', &text[from..at]) {
                    push(&mut ended, line);
                    line = from + newline + 1;
                }
            }
        }
    }
    extend(wholes, ended.into_iter().map(|start| start..at));
    at
}

/// Where the string that starts at a quote ends: at the latest with the line or, if it has three quotes, with the text.
fn string_end(text: &[u8], start: usize) -> usize {
    let triple = [text[start]; 3];
    let quotes = if text[start..].starts_with(&triple) { &triple[..] } else { &triple[..1] };
    let mut at = start + quotes.len();
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1 + newline_len(&text[at + 1..]).max(1),
            b'\n' if quotes.len() == 1 => return at,
            _ if text[at..].starts_with(quotes) => return at + quotes.len(),
            _ => at += 1,
        }
    }
    text.len()
}

fn newline_len(text: &[u8]) -> usize {
    usize::from(text.starts_with(b"\n")) + 2 * usize::from(text.starts_with(b"\r\n"))
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn blocks_are_found_with_what_belongs_to_them() {
        let cases: [(&str, &[&str]); 7] = [
            ("a = 1\nb = 2\ndef f():\n    c\nd = 3\n", &["def f():", "d = 3"]),
            ("if a:\n    b\nelse:\n    c\nelsewhere\n", &["elsewhere"]),
            ("a\n# b\n\n@c\n# d\nasync def e(): f\n", &["# b"]),
            ("def f():\n    a\n    # b\n# c\ng = (\n1)\n", &["def f():", "# c"]),
            ("a = '''\ndef f():\n'''\nclass B: pass\n", &["class B: pass"]),
            ("a = (\ndef f():\n)\ndefinite = 1\n", &[]),
            ("a = '\ndef f(): \"\n# '''\ndef g(): pass", &["def f(): \"", "# '''"]),
        ];
        for (text, blocks) in cases {
            let found = read(text.as_bytes()).boundaries;
            let lines: Vec<_> = found.iter().map(|&at| text[at..].lines().next().unwrap_or("")).collect();
            assert_eq!(lines, blocks, "{text:?}");
        }
    }

    #[test]
    fn wholes_are_lines() {
        let text = "a = [\n(1,\n2), '''\n''']\nb = \\\n1\n@c\ndef d(e,\nf): '\\\n'\n";
        let mut lines: Vec<_> = read(text.as_bytes()).wholes.iter().map(|whole| &text[whole.clone()]).collect();
        lines.sort_unstable();
        lines.dedup();
        let nested = ["(1,\n2), '''\n''']\n", "2), '''\n''']\n", "def d(e,\nf): '\\\n'\n", "f): '\\\n'\n"];
        let whole = ["a = [\n(1,\n2), '''\n''']\n", "b = \\\n1\n", "@c\ndef d(e,\nf): '\\\n'\n"];
        for expected in nested.into_iter().chain(whole) {
            assert!(lines.contains(&expected), "{expected:?} of {lines:?}");
        }
    }
}
