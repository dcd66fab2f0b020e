//! Cuts a template into tokens.
//!
//! Source: `common/jinja/lexer.cpp` of llama.cpp. White space around blocks is always trimmed as with jinja2's
//! `trim_blocks` and `lstrip_blocks`, and so are its oddities: a template that begins with one character of text before
//! a block loses it. Deviations: none.
//!
//! Time: O(bytes).

use crate::error::{Error, Position};
use crate::text::is_space;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text outside of blocks.
    Text,
    Number,
    String,
    Name,
    /// One of [`SYMBOLS`], without the `-` that strips white space.
    Symbol,
    /// `+` or `-` before a value.
    Unary,
}

/// A token: its kind, its value and where it starts.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) value: Vec<u8>,
    pub(crate) at: u32,
}

/// The first match wins.
const SYMBOLS: [&str; 31] = [
    "{%-", "-%}", "{{-", "-}}", "{%", "%}", "{{", "}}", "(", ")", "{", "}", "[", "]", ",", ".", ":", "|", "<=", ">=",
    "==", "!=", "<", ">", "+", "-", "~", "*", "/", "%", "=",
];

/// A template with `\n` for every line end, as the lexer reads it. Positions are those of this text.
pub(crate) fn normalized(source: &[u8]) -> Vec<u8> {
    let kept = (0..source.len()).filter(|&at| !source[at..].starts_with(b"\r\n"));
    let mut text: Vec<u8> = kept.map(|at| if source[at] == b'\r' { b'\n' } else { source[at] }).collect();
    if source.last() == Some(&b'\n') {
        text.pop();
    }
    text
}

/// The tokens of a normalized template.
pub(crate) fn tokens(source: &[u8]) -> Result<Vec<Token>, Error> {
    let mut lexer = Lexer { source, at: 0, tokens: Vec::new(), is_outside: true, open_curly: 0 };
    while lexer.at < source.len() {
        lexer.next()?;
    }
    Ok(lexer.tokens)
}

struct Lexer<'s> {
    source: &'s [u8],
    at: usize,
    tokens: Vec<Token>,
    /// Whether what comes next is text, as at the start and after a block or a comment.
    is_outside: bool,
    /// How many `{` of object literals are open. While one is, `}}` does not end an expression.
    open_curly: usize,
}

impl Lexer<'_> {
    /// The byte at `ahead` from here, or NUL after the end.
    fn peek(&self, ahead: usize) -> u8 {
        self.source.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Goes on to the next byte that is not of a kind.
    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) {
        self.at += self.source[self.at..].iter().take_while(|byte| is_skipped(**byte)).count();
    }

    /// Whether the last token is one of these symbols.
    fn follows(&self, symbols: &[&[u8]]) -> bool {
        self.tokens.last().is_some_and(|token| token.kind == Kind::Symbol && symbols.contains(&&*token.value))
    }

    fn push(&mut self, kind: Kind, value: impl Into<Vec<u8>>, at: usize) {
        self.tokens.push(Token { kind, value: value.into(), at: at as u32 });
        self.is_outside = self.follows(&[b"%}", b"}}"]);
    }

    fn fail<T>(&self, problem: impl Into<String>) -> Result<T, Error> {
        Err(Error::Syntax { problem: problem.into(), position: Position::of(self.source, self.at) })
    }

    /// Reads one token, or only white space.
    fn next(&mut self) -> Result<(), Error> {
        if self.is_outside && self.text() {
            return Ok(());
        }
        if self.source[self.at..].starts_with(b"{#") {
            return self.comment();
        }
        if self.peek(0) == b'-' && self.follows(&[b"{{", b"{%"]) {
            self.at += 1;
        }
        self.skip(is_space);
        if self.at >= self.source.len() || self.sign() || self.symbol() {
            return Ok(());
        }
        let start = self.at;
        let kind = match self.peek(0) {
            quote @ (b'\'' | b'"') => return self.string(quote),
            b'0'..=b'9' => {
                self.digits();
                Kind::Number
            }
            byte if is_word(byte) => {
                self.skip(is_word);
                Kind::Name
            }
            byte => return self.fail(format!("unexpected character: {}", char::from(byte))),
        };
        self.push(kind, &self.source[start..self.at], start);
        Ok(())
    }

    /// Reads the text before the next block. Returns whether there is any once it is trimmed.
    fn text(&mut self) -> bool {
        let start = self.at;
        // What the last block says of the text after it: `-%}` strips all white space, and `%}` one line end.
        let before: &[u8] = if start > 3 { &self.source[..start] } else { b"" };
        let strips_left = ["-%}", "-}}", "-#}"].iter().any(|end| before.ends_with(end.as_bytes()));
        let strips_line_end = ["#}", "%}", "-}"].iter().any(|end| before.ends_with(end.as_bytes()));

        let opens = |pair: &[u8]| matches!(pair, [b'{', b'%' | b'{' | b'#']);
        let len = self.source[start..].windows(2).position(opens);
        self.at = len.map_or(self.source.len(), |len| start + len);
        let end = match self.peek(1) {
            b'%' | b'#' => self.start_of_line(start, self.at),
            _ => self.at,
        };

        let mut text = &self.source[start.min(end)..end];
        if strips_line_end {
            text = text.strip_prefix(b"\n").unwrap_or(text);
        }
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        if strips_left {
            text = &text[text.iter().position(|byte| !is_blank(byte)).unwrap_or(text.len())..];
        }
        if self.peek(2) == b'-' {
            text = &text[..text.iter().rposition(|byte| !is_blank(byte)).map_or(0, |last| last + 1)];
        }
        if text.is_empty() {
            return false;
        }
        self.push(Kind::Text, text, start);
        true
    }

    /// Where a text that ends at `end` ends without the white space that begins its last line.
    fn start_of_line(&self, start: usize, end: usize) -> usize {
        let is_blank = |byte: &&u8| is_space(**byte) && **byte != b'\n';
        let at = end - self.source[start..end].iter().rev().take_while(is_blank).count();
        match at {
            // As in llama.cpp: one character of text at the start of a template gets lost.
            0 | 1 if start == 0 => 0,
            _ if at > start && self.source[at - 1] == b'\n' => at,
            _ => end,
        }
    }

    fn comment(&mut self) -> Result<(), Error> {
        self.at += 2;
        let Some(len) = memchr::memmem::find(&self.source[self.at..], b"#}") else {
            return self.fail("missing end of comment tag");
        };
        self.at += len + 2;
        self.is_outside = true;
        Ok(())
    }

    /// Reads a `+` or `-` that begins a value, with the digits after it.
    fn sign(&mut self) -> bool {
        let sign = self.peek(0);
        let closes_block = sign == b'-' && matches!(self.peek(1), b'%' | b'}');
        let kind = self.tokens.last().map(|token| token.kind);
        let follows_value =
            matches!(kind, Some(Kind::Name | Kind::Number | Kind::String)) || self.follows(&[b")", b"]"]);
        if !matches!(sign, b'-' | b'+') || closes_block || follows_value {
            return false;
        }
        let start = self.at;
        self.at += 1;
        self.digits();
        let kind = if self.at == start + 1 { Kind::Unary } else { Kind::Number };
        self.push(kind, &self.source[start..self.at], start);
        true
    }

    fn digits(&mut self) {
        self.skip(|byte| byte.is_ascii_digit());
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            self.at += 1;
            self.skip(|byte| byte.is_ascii_digit());
        }
    }

    fn symbol(&mut self) -> bool {
        let rest = &self.source[self.at..];
        let fits = |symbol: &&&str| rest.starts_with(symbol.as_bytes()) && !(**symbol == "}}" && self.open_curly > 0);
        let Some(symbol) = SYMBOLS.iter().find(fits) else {
            return false;
        };
        match *symbol {
            "{{" | "{{-" => self.open_curly = 0,
            "{" => self.open_curly = self.open_curly.wrapping_add(1),
            "}" => self.open_curly = self.open_curly.wrapping_sub(1),
            _ => {}
        }
        let value = if symbol.len() == 3 { symbol.trim_matches('-') } else { symbol };
        self.push(Kind::Symbol, value, self.at);
        self.at += symbol.len();
        true
    }

    fn string(&mut self, quote: u8) -> Result<(), Error> {
        let start = self.at;
        let mut value = Vec::new();
        self.at += 1;
        while let Some(&byte) = self.source.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => value.push(self.escaped()?),
                _ if byte != quote => value.push(byte),
                _ => {
                    self.push(Kind::String, value, start);
                    return Ok(());
                }
            }
        }
        self.fail("unexpected end of a string")
    }

    fn escaped(&mut self) -> Result<u8, Error> {
        let escaped = match self.source.get(self.at) {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'v') => 11,
            Some(&byte @ (b'\\' | b'\'' | b'"')) => byte,
            Some(&byte) => return self.fail(format!("unknown escape character \\{}", char::from(byte))),
            None => return self.fail("unexpected end of input after an escape character"),
        };
        self.at += 1;
        Ok(escaped)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
