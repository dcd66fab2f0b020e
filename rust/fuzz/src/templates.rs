//! Makes chat templates over the whole language, and values and requests for them.
//!
//! Templates are ASCII, so that whatever is not ASCII in a text comes from a caller. Loops are short, and macros call
//! no macros: a template that only spends its budget finds nothing.

use std::fmt::Write;

use arbitrary::{Result, Unstructured};
use ggtok_chat::{Json, Object, Origin, Text};

const NAMES: [&str; 12] =
    ["x", "y", "m", "n.v", "n.w", "messages", "tools", "loop.index", "loop.last", "bos_token", "m.content", "m.role"];
const NUMBERS: [&str; 10] =
    ["0", "1", "2", "7", "60", "1000000000", "9223372036854775807", "1.5", "0.1", "100000000000000000000.0"];
const STRINGS: [&str; 10] =
    ["''", "'a'", "'ab c'", "'{}'", "'a,b,,'", "'<|im_start|>'", "'\\n\\t'", "'%Y %c'", "\"it's\"", "'12'"];
#[rustfmt::skip]
const FILTERS: [&str; 50] = [
    "upper", "lower", "title", "capitalize", "string", "strip", "lstrip", "rstrip", "trim", "length", "count", "split",
    "rsplit", "replace('a', 'bb')", "replace('', x)", "format(x, y)", "int", "int(7, 16)", "float", "default(x)",
    "d(x, true)", "slice(0, 9, 2)", "safe", "tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)",
    "tojson(separators=(x, y))", "indent", "indent(3, true)", "indent(x)", "join", "join(x)",
    "join(', ', attribute='a')",
    "list", "first", "last", "select", "reject('string')", "selectattr('a')", "rejectattr('a', 'equalto', x)",
    "map(attribute='a')", "sort", "sort(attribute='a')", "reverse", "min", "max", "unique", "dictsort", "items", "abs",
];
#[rustfmt::skip]
const TESTS: [&str; 26] = [
    "boolean", "callable", "defined", "false", "float", "integer", "mapping", "none", "number", "string", "true",
    "undefined", "iterable", "sequence", "odd", "even", "divisibleby 3", "divisibleby(0)", "lower", "upper", "in([x])",
    "eq(1)", "gt(y)", "sameas(x)", "nope", "test",
];
#[rustfmt::skip]
const METHODS: [&str; 22] = [
    "upper()", "split()", "split(x)", "rsplit(',', 1)", "strip(x)", "replace('a', x)", "startswith(x)", "endswith('a')",
    "format(x)", "append(x)", "append(a=n)", "pop()", "pop(0)", "get('a')", "get(x, y)", "items()", "keys()",
    "values()",
    "upper", "append", "a", "nope()",
];
const OPERATORS: [&str; 17] =
    ["+", "-", "*", "/", "%", "~", "==", "!=", "<", ">", "<=", ">=", "in", "not in", "and", "or", "is sameas"];

/// A template.
pub fn template(u: &mut Unstructured<'_>) -> Result<String> {
    let mut text = String::from("{% set n = namespace(v=[], w=x) %}");
    for name in ["f0", "f1"] {
        write!(text, "{{% macro {name}(a, b=1) %}}").expect("room");
        statements(u, &mut text, 2, false)?;
        text += "{% if caller %}{{ caller(a) }}{% endif %}{{ a }}{% endmacro %}";
    }
    statements(u, &mut text, 4, true)?;
    // Some are damaged.
    if u.ratio(1, 8)? {
        text.truncate(u.int_in_range(0..=text.len())?);
    }
    if u.ratio(1, 8)? {
        let at = u.int_in_range(0..=text.len())?;
        text.insert_str(at, u.choose(&["{%", "%}", "{{", "}}", "-", "'", "(", "[", "\r\n", "{#"])?);
    }
    Ok(text)
}

fn statements(u: &mut Unstructured<'_>, out: &mut String, depth: usize, calls: bool) -> Result<()> {
    for _ in 0..u.int_in_range(0..=3)? {
        statement(u, out, depth, calls)?;
    }
    Ok(())
}

fn statement(u: &mut Unstructured<'_>, out: &mut String, depth: usize, calls: bool) -> Result<()> {
    let (open, close) = *u.choose(&[("{% ", " %}"), ("{%- ", " -%}"), ("{% ", " -%}\n")])?;
    let kind = if depth == 0 { u.int_in_range(0..=4)? } else { u.int_in_range(0..=14)? };
    let tag = |u: &mut Unstructured<'_>, out: &mut String, head: &str, tail: &str| -> Result<()> {
        out.push_str(open);
        out.push_str(head);
        if !tail.is_empty() {
            expression(u, out, 2, calls)?;
            out.push_str(tail.trim_start_matches('\0'));
        }
        out.push_str(close);
        Ok(())
    };
    match kind {
        0 => out.push_str(u.choose(&[
            "text ",
            "\n",
            " a\n  ",
            "<|im_start|>",
            "{# c #}",
            "{#- c -#}",
            "<|im_end|>\n",
        ])?),
        1 | 2 => {
            out.push_str("{{ ");
            expression(u, out, 3, calls)?;
            out.push_str(" }}");
        }
        3 => {
            let head = *u.choose(&["set x = ", "set n.v = ", "set n.w = ", "set m = ", "set x, y = "])?;
            tag(u, out, head, "\0")?;
        }
        4 => out.push_str(u.choose(&["{% break %}", "{% continue %}", "{% generation %}", "{% endgeneration %}"])?),
        5 | 6 => {
            tag(u, out, "if ", "\0")?;
            statements(u, out, depth - 1, calls)?;
            if u.arbitrary()? {
                tag(u, out, "elif ", "\0")?;
                statements(u, out, depth - 1, calls)?;
            }
            if u.arbitrary()? {
                tag(u, out, "else", "")?;
                statements(u, out, depth - 1, calls)?;
            }
            tag(u, out, "endif", "")?;
        }
        7 => {
            tag(u, out, "for m in messages", "")?;
            statements(u, out, depth - 1, calls)?;
            tag(u, out, "endfor", "")?;
        }
        8 => {
            let (head, tail) =
                (u.choose(&["for x in ", "for x, y in ", "for m in "])?, u.choose(&["\0", " if x", " if loop"])?);
            tag(u, out, head, tail)?;
            statements(u, out, depth - 1, calls)?;
            if u.arbitrary()? {
                tag(u, out, "else", "")?;
                statements(u, out, depth - 1, calls)?;
            }
            tag(u, out, "endfor", "")?;
        }
        9 => {
            write!(out, "{{% for x in range({}) %}}", u.int_in_range(0..=8)?).expect("room");
            statements(u, out, depth - 1, calls)?;
            out.push_str("{% endfor %}");
        }
        10 => {
            let head = *u.choose(&["set x", "set n.v", "set y"])?;
            tag(u, out, head, "")?;
            statements(u, out, depth - 1, calls)?;
            tag(u, out, "endset", "")?;
        }
        11 => {
            write!(out, "{{% filter {} %}}", u.choose(&FILTERS)?).expect("room");
            statements(u, out, depth - 1, calls)?;
            out.push_str("{% endfilter %}");
        }
        12 if calls => {
            out.push_str(u.choose(&["{% call f0(x) %}", "{% call(a) f1(x, b=y) %}", "{% call(a, b=2) f0() %}"])?);
            statements(u, out, depth - 1, false)?;
            out.push_str("{% endcall %}");
        }
        13 => {
            tag(u, out, "generation", "")?;
            statements(u, out, depth - 1, calls)?;
            tag(u, out, "endgeneration", "")?;
        }
        _ => {
            out.push_str("{% set z = n.v.append(");
            expression(u, out, 2, calls)?;
            out.push_str(") %}");
        }
    }
    Ok(())
}

fn expression(u: &mut Unstructured<'_>, out: &mut String, depth: usize, calls: bool) -> Result<()> {
    let kind = if depth == 0 { u.int_in_range(0..=3)? } else { u.int_in_range(0..=18)? };
    let put = |u: &mut Unstructured<'_>, out: &mut String, before: &str, after: &str| -> Result<()> {
        out.push_str(before);
        expression(u, out, depth.saturating_sub(1), calls)?;
        out.push_str(after);
        Ok(())
    };
    match kind {
        0 | 1 => out.push_str(u.choose(&NAMES)?),
        2 => out.push_str(u.choose(&NUMBERS)?),
        3 => out.push_str(u.choose(&STRINGS)?),
        4..=6 => {
            put(u, out, "(", " ")?;
            out.push_str(u.choose(&OPERATORS)?);
            put(u, out, " ", ")")?;
        }
        7 | 8 => {
            put(u, out, "(", ")|")?;
            out.push_str(u.choose(&FILTERS)?);
        }
        9 => {
            put(u, out, "(", ").")?;
            out.push_str(u.choose(&METHODS)?);
        }
        10 => {
            let after = *u.choose(&[") is ", ") is not "])?;
            put(u, out, "((", after)?;
            out.push_str(u.choose(&TESTS)?);
            out.push(')');
        }
        11 => {
            put(u, out, "[", ", ")?;
            put(u, out, "", "]")?;
        }
        12 => {
            put(u, out, "(", ", ")?;
            put(u, out, "", ")")?;
        }
        13 => {
            put(u, out, "{", ": ")?;
            put(u, out, "", ", 'a': 1}")?;
        }
        14 => {
            put(u, out, "(", ")[")?;
            let after = *u.choose(&["]", ":]", "::2]", ":-1]"])?;
            put(u, out, "", after)?;
        }
        15 => {
            put(u, out, "(", " if ")?;
            if u.arbitrary()? {
                put(u, out, "", " else ")?;
            }
            put(u, out, "", ")")?;
        }
        16 => {
            let before = *u.choose(&["not (", "-(", "+("])?;
            put(u, out, before, ")")?;
        }
        17 if calls => {
            let before = *u.choose(&["f0(", "f1(b=", "f0(1, "])?;
            put(u, out, before, ")")?;
        }
        _ => {
            let functions = ["namespace(v=", "dict(a=", "range(", "strftime_now(", "tojson(", "raise_exception("];
            let before = *u.choose(&functions)?;
            put(u, out, before, ")")?;
        }
    }
    Ok(())
}

/// A value of JSON whose strings are a caller's.
pub fn value(u: &mut Unstructured<'_>, depth: usize) -> Result<Json> {
    Ok(match if depth == 0 { u.int_in_range(0..=5)? } else { u.int_in_range(0..=8)? } {
        0 => Json::Null,
        1 => Json::Bool(u.arbitrary()?),
        2 => Json::Int(if u.arbitrary()? { u.arbitrary()? } else { u.int_in_range(-3..=9)? }),
        3 => Json::Float(*u.choose(&[0.0, -0.0, 1.5, 1e-7, 1e300, f64::INFINITY, f64::NAN])?),
        4 | 5 => Json::String(Text::new(text(u)?, Origin::CALLER)),
        6 | 7 => {
            let mut items = Vec::new();
            for _ in 0..u.int_in_range(0..=3)? {
                items.push(value(u, depth - 1)?);
            }
            Json::Array(items)
        }
        _ => Json::Object(object(u, depth - 1)?),
    })
}

fn object(u: &mut Unstructured<'_>, depth: usize) -> Result<Object> {
    let mut object = Object::default();
    for _ in 0..u.int_in_range(0..=3)? {
        let key = Text::new(*u.choose(&["a", "b", "\u{e9}", "type", ""])?, Origin::CALLER);
        let value = value(u, depth)?;
        object.set(key, value);
    }
    Ok(object)
}

/// A text of a caller.
fn text(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    Ok(match u.int_in_range(0..=3)? {
        0 => super::texts::bytes(u, 6)?,
        1 => u.choose(&["", " ", "a", "12", "0x1F", "-1.5e3", "a,b", "\u{e9}\u{e9}", "true"])?.as_bytes().to_vec(),
        _ => super::texts::utf8(u, 6)?.into_bytes(),
    })
}

/// The body of a request, in JSON.
pub fn request(u: &mut Unstructured<'_>) -> Result<String> {
    let mut messages = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        let role = u.choose(&["user", "assistant", "system", "tool", "developer", "\u{e9}"])?;
        let text = quoted(&super::texts::utf8(u, 5)?);
        let content = match u.int_in_range(0..=5)? {
            0 => "null".to_owned(),
            1 => format!(r#"[{{"type": "text", "text": {text}}}, {{"type": "text", "text": ""}}]"#),
            2 => r#"[{"type": "image_url", "image_url": {"url": "data:,"}}]"#.to_owned(),
            _ => text,
        };
        let more = u.choose(&[
            "",
            r#", "reasoning_content": "hm""#,
            r#", "tool_calls": []"#,
            r#", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]"#,
            r#", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": [1.5, null]}}}]"#,
        ])?;
        messages.push(format!(r#"{{"role": "{role}", "content": {content}{more}}}"#));
    }
    let more = u.choose(&[
        "",
        r#", "add_generation_prompt": false"#,
        r#", "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "minimum": 0.0}}}]"#,
        r#", "chat_template_kwargs": {"x": "é", "y": [1]}"#,
        r#", "continue_final_message": true, "add_generation_prompt": false"#,
    ])?;
    Ok(format!(r#"{{"messages": [{}]{more}}}"#, messages.join(", ")))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            ..' ' => quoted += &format!("\\u{:04x}", u32::from(char)),
            _ => quoted.push(char),
        }
    }
    quoted + "\""
}
