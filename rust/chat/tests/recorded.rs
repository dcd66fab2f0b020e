//! Our engine beside llama.cpp's recorded answers to made-up templates: the same bytes, or an error on both sides.
//!
//! `tests/data/jinja.jsonl` is generated, DO NOT EDIT. `python -m tests.differential.jinja_recorded` makes it with
//! llama.cpp's engine and describes its lines. Nothing in it comes from llama.cpp but the answers.

use std::fmt::Write as _;

use ggtok_chat::{Budget, Error, Json, Now, Template, Text};

const CASES: &str = include_str!("data/jinja.jsonl");
/// 2024-02-29 23:59:59 UTC, when llama.cpp answered.
const SECONDS: i64 = 1_709_251_199;

#[test]
fn the_same_as_llama_cpp() {
    let [mut rendered, mut failed, mut crashed] = [0; 3];
    let mut different = String::new();
    for line in CASES.lines() {
        let case = Json::parse(line.as_bytes()).expect("a line is JSON");
        let (text, error, crash) = (expected(&case), case.get("error"), case.get("crash"));
        let ours = render(&case, line.len());
        match (&text, &ours) {
            // What llama.cpp does not survive may be an error or a text of ours: it must end.
            _ if crash.is_some() => crashed += 1,
            (None, Err(_)) if error.is_some() => failed += 1,
            (Some(text), Ok(ours)) if text == ours.as_bytes() => rendered += 1,
            _ => writeln!(different, "{line}\n    ours {}", shown(&ours)).expect("a string takes everything"),
        }
    }
    println!("{rendered} rendered, {failed} failed on both sides, {crashed} crashed llama.cpp");
    assert!(different.is_empty(), "{different}");
    assert!(rendered > 3000 && failed > 1000, "{rendered} rendered, {failed} failed");
}

/// llama.cpp's text, if it rendered.
fn expected(case: &Json) -> Option<Vec<u8>> {
    let bytes = |name: &str| Some(case.get(name)?.as_text()?.as_bytes().to_vec());
    bytes("text").or_else(|| {
        let digits = String::from_utf8(bytes("hex")?).ok()?;
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        (0..digits.len()).step_by(2).map(byte).collect()
    })
}

fn render(case: &Json, num_bytes: usize) -> Result<Text, Error> {
    let source = case.get("template").and_then(Json::as_text).expect("a case has a template");
    let values = case.get("values").and_then(Json::as_object).expect("a case has values");
    let now = Now { seconds: SECONDS, ..Now::default() };
    Template::new(source.as_bytes())?.render(values, &now, &mut Budget::new(num_bytes))
}

fn shown(answer: &Result<Text, Error>) -> String {
    match answer {
        Ok(text) => format!("{:?}", String::from_utf8_lossy(text.as_bytes())),
        Err(error) => format!("an error: {error}"),
    }
}
