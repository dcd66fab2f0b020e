//! Reads Markdown for the positions before headings, and for fenced blocks.
//!
//! Only lines outside lists and quotations are read: a heading or fence is indented by at most three spaces. A heading
//! is a line of `#`, or a paragraph with a line of `=` or `-` under it. Source: CommonMark 0.31, sections 4.2, 4.3 and
//! 4.5. O(n).

use super::boundaries::Structure;
use crate::work::memory::{push, reserve};

/// A fence that is open: its character, how many of them it has, and where its line starts.
type Fence = (u8, usize, usize);

pub(super) fn read(text: &[u8]) -> Structure {
    let mut found = Structure::default();
    let mut start = 0;
    let mut fence = None::<Fence>;
    // Where the paragraph starts that this line may continue, and whether it may continue a list or a quotation.
    let mut paragraph = None;
    let mut in_container = false;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let end = start + line.len();
        let bare = line.trim_ascii_end();
        let indent = bare.iter().take_while(|&&byte| byte == b' ').count();
        let first = bare.get(indent).copied().filter(|&byte| indent <= 3 && byte != b'\t');
        let len = bare[indent..].iter().take_while(|&&byte| Some(byte) == first).count();
        let rest = &bare[indent + len..];
        let ends_mark = matches!(rest.first(), None | Some(b' ' | b'\t'));

        match (fence, first) {
            (Some((mark, least, from)), _) if first == Some(mark) && len >= least && rest.is_empty() => {
                push(&mut found.wholes, from..end);
                fence = None;
            }
            (None, Some(mark @ (b'`' | b'~'))) if len >= 3 && (mark == b'~' || !rest.contains(&b'`')) => {
                (fence, paragraph) = (Some((mark, len, start)), None);
            }
            (None, Some(b'#')) if len <= 6 && ends_mark => {
                push(&mut found.boundaries, start);
                paragraph = None;
            }
            (None, Some(b'=' | b'-')) if rest.is_empty() && paragraph.is_some() => {
                reserve(&mut found.boundaries, 1);
                found.boundaries.extend(paragraph.take());
            }
            (None, None) if bare.is_empty() => (paragraph, in_container) = (None, false),
            (None, Some(_)) if is_rule(bare) => paragraph = None,
            (None, Some(_)) if starts_container(&bare[indent..]) => (paragraph, in_container) = (None, true),
            (None, Some(_)) if !in_container => paragraph = paragraph.or(Some(start)),
            _ => {}
        }
        start = end;
    }
    // A fence that nothing closes goes on to the end.
    if let Some((_, _, from)) = fence {
        push(&mut found.wholes, from..start);
    }
    found
}

/// Whether a line is a thematic break.
fn is_rule(line: &[u8]) -> bool {
    let marks = line.iter().filter(|byte| !matches!(byte, b' ' | b'\t'));
    let first = marks.clone().next();
    matches!(first, Some(b'*' | b'-' | b'_')) && marks.clone().all(|byte| Some(byte) == first) && marks.count() > 2
}

/// Whether a line starts a quotation or an item of a list.
fn starts_container(line: &[u8]) -> bool {
    let num_digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match line[num_digits..] {
        [b'>', ..] => num_digits == 0,
        [b'-' | b'+' | b'*'] | [b'-' | b'+' | b'*', b' ' | b'\t', ..] => num_digits == 0,
        [b'.' | b')'] | [b'.' | b')', b' ' | b'\t', ..] => (1..10).contains(&num_digits),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn headings_and_fences_are_found() {
        let cases: [(&str, &[&str], &[&str]); 12] = [
            ("a\n# b\n#c\n####### d\n   ## e\n    # f\n", &["# b", "   ## e"], &[]),
            ("\na\nb\n===\nc\n---\n\n---\n", &["a", "c"], &[]),
            ("- a\n---\n> b\nc\n---\n1. d\n---\n\ne\n-\n", &["e"], &[]),
            ("***\na\n---\n# b\n---\n", &["a", "# b"], &[]),
            ("a\n    b\n=\n", &["a"], &[]),
            ("x\n```\n# a\n``\n````\n# b\n", &["# b"], &["```\n# a\n``\n````\n"]),
            ("~~~~ ` ~\n~~~\n```\n~~~~  \n", &[], &["~~~~ ` ~\n~~~\n```\n~~~~  \n"]),
            ("``` a`\n# b\n", &["# b"], &[]),
            ("   ```\n    ```\n  ```\n", &[], &["   ```\n    ```\n  ```\n"]),
            ("a\n```\n# b", &[], &["```\n# b"]),
            ("a\r\n===\r\n```\r\n```\r\n", &["a"], &["```\r\n```\r\n"]),
            ("", &[], &[]),
        ];
        for (text, headings, fences) in cases {
            let found = read(text.as_bytes());
            let lines: Vec<_> = found.boundaries.iter().map(|&at| text[at..].lines().next().unwrap_or("")).collect();
            let wholes: Vec<_> = found.wholes.iter().map(|whole| &text[whole.clone()]).collect();
            assert_eq!((&lines[..], &wholes[..]), (headings, fences), "{text:?}");
        }
    }
}
