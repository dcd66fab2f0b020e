//! Properties that must hold for any chat template and any conversation.

use arbitrary::{Result, Unstructured};
use ggtok_chat::{Budget, ChatTemplate, Error, Json, Mask, Now, Object, Options, Origin, Request, Template, Text};

use super::{memory, templates};

/// What no call may need at a time: three times what a template may allocate, for the renderings that it takes.
const MOST_BYTES: isize = 200 << 20;
/// What may be left after a call: tables that are made once for a thread.
const MOST_LEFT: isize = 1 << 16;

/// A text that a template in ASCII wrote: its runs are all of it, and what is not ASCII comes from a caller.
fn check_origins(text: &Text, num_messages: usize, source: &str) {
    let mut end = 0;
    for (run, origin) in text.runs() {
        assert_eq!(run.start, end, "runs of {source}");
        assert!(run.start < run.end, "a run of {source}");
        assert!(origin.message().is_none_or(|message| message < num_messages), "{origin:?} in {source}");
        assert!(
            origin.is_caller() || text.as_bytes()[run.clone()].is_ascii(),
            "{:?} as the template's in {source}",
            String::from_utf8_lossy(&text.as_bytes()[run])
        );
        end = run.end;
    }
    assert_eq!(end, text.len(), "runs of {source}");
}

fn runs(text: &Text) -> Vec<(std::ops::Range<usize>, Origin)> {
    text.runs().collect()
}

/// Compares two results of the same call.
fn check_same(a: &std::result::Result<Text, Error>, b: &std::result::Result<Text, Error>, source: &str) {
    match (a, b) {
        (Ok(a), Ok(b)) => assert_eq!((a.as_bytes(), runs(a)), (b.as_bytes(), runs(b)), "{source}"),
        (a, b) => assert_eq!(a.as_ref().err(), b.as_ref().err(), "{source}"),
    }
}

fn bounded<T>(source: &str, run: impl FnOnce() -> T) -> T {
    let (result, needed, left) = memory::measured(run);
    assert!(needed < MOST_BYTES, "{needed} bytes for {source}");
    assert!(left < MOST_LEFT, "{left} bytes left of {source}");
    result
}

/// A template with values, without llama-server's rules.
pub fn template(u: &mut Unstructured<'_>) -> Result<()> {
    let source = templates::template(u)?;
    let mut variables = Object::default();
    for name in ["x", "y", "m", "tools"] {
        let value = templates::value(u, 2)?;
        variables.set(name, value);
    }
    let mut messages = Vec::new();
    for _ in 0..u.int_in_range(0..=3)? {
        let mut message = Object::with(Some(messages.len()), []);
        for name in ["role", "content", "a"] {
            let value = templates::value(u, 1)?;
            message.set(name, value);
        }
        messages.push(Json::Object(message));
    }
    variables.set("messages", messages);
    let now = Now { seconds: u.arbitrary()?, offset: u.int_in_range(-50_000..=50_000)?, zone: "UTC".to_owned() };

    let render = || Template::new(source.as_bytes())?.render(&variables, &now, &mut Budget::new(0));
    bounded(&source, || {
        let text = render();
        if let Ok(text) = &text {
            check_origins(text, 3, &source);
        }
        check_same(&text, &render(), &source);
    });
    Ok(())
}

/// A request with all rules, and its mask.
pub fn request(u: &mut Unstructured<'_>) -> Result<()> {
    let (source, body) = (templates::template(u)?, templates::request(u)?);
    let options = Options {
        bos: u.choose(&["", "<s>"])?.to_string(),
        eos: u.choose(&["", "</s>"])?.to_string(),
        media_marker: if u.arbitrary()? { Some("<__media__>".to_owned()) } else { None },
        closes: u.arbitrary()?,
    };
    let mask = *u.choose(&[Mask::Turn, Mask::Content])?;
    let request = Request::parse(body.as_bytes()).expect("a sound body");
    let now = Now::default();

    bounded(&source, || {
        let Ok(chat) = ChatTemplate::new(source.as_bytes()) else { return };
        let render = || chat.apply(&request, &options, &now).map(|rendered| rendered.text);
        let text = render();
        check_same(&text, &render(), &source);
        let Ok(text) = text else { return };
        check_origins(&text, request.roles().len(), &source);
        let ranges = chat.masked(&request, &text, &options, &now, &[b"<|im_end|>"], mask);
        for range in ranges.unwrap_or_default() {
            assert!(range.start <= range.end && range.end <= text.len(), "{range:?} of {source}");
        }
    });
    Ok(())
}
