//! Regular expressions in schemas: which of them llama.cpp refuses.
//!
//! It makes grammars from patterns between `^` and `$`. What a grammar cannot express becomes "any string", which is no
//! error; what is wrong even as a regular expression is one. The first thing of either kind decides.
//!
//! Source: `_pattern_to_rule` in `common/json-schema-to-grammar.cpp` of llama.cpp. Deviations: none, but that no
//! grammar is made. Time: O(bytes).

/// The deepest nesting of groups that becomes a grammar.
const DEEPEST: usize = 100;

/// What is wrong with a pattern, if llama.cpp refuses it.
pub(super) fn fault(pattern: &[u8]) -> Option<&'static str> {
    let [b'^', pattern @ .., b'$'] = pattern else { return None };
    // For each open group, whether there is something in it that could be repeated.
    let mut groups = vec![false];
    let mut at = 0;
    while let Some(&byte) = pattern.get(at) {
        let rest = &pattern[at..];
        match byte {
            b'(' => {
                at += match rest {
                    [_, b'?', b':', ..] => 3,
                    [_, b'?', ..] => return None,
                    _ => 1,
                };
                groups.push(false);
                if groups.len() > DEEPEST + 1 {
                    return None;
                }
                continue;
            }
            b')' if groups.len() == 1 => return Some("a parenthesis closes nothing"),
            b')' => {
                groups.pop();
                at += 1;
            }
            b'^' | b'$' | b']' | b'}' => return None,
            b'[' => match class_len(rest) {
                Class::Closed(len) => at += len,
                Class::Open => return Some("a character class does not end"),
                Class::Unsupported => return None,
            },
            b'*' | b'+' | b'?' | b'{' => {
                let len = if byte == b'{' { counts_len(rest)? } else { 1 };
                if groups.last() == Some(&false) {
                    return Some("there is nothing to repeat");
                }
                at += len;
            }
            b'\\' if rest.len() == 1 => return Some("a backslash at the end"),
            b'\\' if b"^$.[]()|{}*+?".contains(&rest[1]) => at += 2,
            b'\\' => at += escape_len(rest)?,
            _ => at += 1,
        }
        if let Some(is_filled) = groups.last_mut() {
            *is_filled = true;
        }
    }
    (groups.len() > 1).then_some("a parenthesis is not closed")
}

enum Class {
    Closed(usize),
    Open,
    Unsupported,
}

/// How long the character class is that the text begins with.
fn class_len(text: &[u8]) -> Class {
    let mut at = 1;
    loop {
        match text.get(at) {
            None => return Class::Open,
            Some(b']') => return Class::Closed(at + 1),
            Some(b'\\') => match escape_len(&text[at..]) {
                Some(len) => at += len,
                None => return Class::Unsupported,
            },
            Some(_) => at += 1,
        }
    }
}

/// How long the escape is that the text begins with, if grammars have it.
fn escape_len(text: &[u8]) -> Option<usize> {
    let digits = match text.get(1)? {
        b'x' => 2,
        b'u' => 4,
        b'U' => 8,
        b't' | b'r' | b'n' | b'\\' | b'"' | b'[' | b']' | b'-' => return Some(2),
        _ => return None,
    };
    text.get(2..2 + digits)?.iter().all(u8::is_ascii_hexdigit).then_some(2 + digits)
}

/// How long `{2,3}` at the beginning of the text is, if it is one or two numbers. One of two may be left out.
fn counts_len(text: &[u8]) -> Option<usize> {
    let end = memchr::memchr(b'}', text)?;
    let counts: Vec<&[u8]> = text[1..end].split(|&byte| byte == b',').collect();
    let is_optional = match counts.len() {
        1 => false,
        2 => true,
        _ => return None,
    };
    counts.iter().all(|count| (is_optional && count.is_empty()) || starts_with_int(count)).then_some(end + 1)
}

/// Whether `stoi` of C++ takes it: white space, a sign, digits, and then anything.
fn starts_with_int(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let len = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&digits[..len]).is_ok_and(|digits| digits.parse::<i32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn what_is_no_regular_expression_is_refused() {
        for pattern in ["^(a$", "^a)$", "^*a$", "^(+)$", "^[a$", "^a\\$", "^{2}$", "^((a)$"] {
            assert!(fault(pattern.as_bytes()).is_some(), "{pattern}");
        }
    }

    #[test]
    fn what_has_no_grammar_is_any_string() {
        let unanchored = ["(a", "^(a", "a)$", "^", "$", "", "^$"];
        let unsupported = ["^(?=a)(b$", "^a]($", "^\\d($", "^a{x}($", "^a{1,2,3}($", "^a{1($", "^a^($", "^[\\w($"];
        let supported = ["^a*$", "^(?:a|b)+$", "^[a-z]{2,}$", "^|*$", "^a{,3}$", "^\\.\\x41$", "^(a){2}b?$", "^[]]$"];
        for pattern in unanchored.iter().chain(&unsupported).chain(&supported) {
            assert_eq!(fault(pattern.as_bytes()), None, "{pattern}");
        }
        assert_eq!(fault(format!("^{}$", "(".repeat(101)).as_bytes()), None);
        assert!(fault(format!("^{}$", "(".repeat(100)).as_bytes()).is_some());
    }
}
