//! Which bytes of a conversation the model itself would write, for templates of each shape.

use ggtok_chat::{ChatTemplate, Error, Mask, Now, Options, Request};

/// The texts that a mask covers.
fn masked(template: &str, messages: &str, mask: Mask) -> Result<Vec<String>, Error> {
    let chat = ChatTemplate::new(template.as_bytes())?;
    let request = Request::parse(format!(r#"{{"messages": [{messages}]}}"#).as_bytes())?;
    let options = Options { closes: Some(true), ..Options::default() };
    let now = Now::default();
    let text = chat.apply(&request, &options, &now)?.text;
    let ranges = chat.masked(&request, &text, &options, &now, &[b"<end>"], mask)?;
    let bytes = text.as_bytes();
    Ok(ranges.into_iter().map(|range| String::from_utf8_lossy(&bytes[range]).into_owned()).collect())
}

const USER: &str = r#"{"role": "user", "content": "Hi"}"#;
const ANSWER: &str = r#"{"role": "assistant", "content": "Yo\n", "reasoning_content": "So"}"#;
const CALL: &str = r#"{"role": "assistant", "content": "", "tool_calls": [
    {"type": "function", "id": "1", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]}"#;
const RESULT: &str = r#"{"role": "tool", "content": "sunny", "tool_call_id": "1"}"#;

/// A template whose loop writes this, and then the generation prompt.
fn looped(body: &str, prompt: &str) -> String {
    format!("{{% for m in messages %}}{body}{{% endfor %}}{{% if add_generation_prompt %}}{prompt}{{% endif %}}")
}

#[test]
fn a_turn_begins_after_the_prompt_and_ends_with_its_end() {
    let chats = [
        ("<{{ m.role }}>{{ m.content }}<end>\n", "<assistant>", "Yo\n<end>"),
        // The generation prompt goes on where a message does not, and the other way round.
        ("<{{ m.role }}>{{ m.content }}<end>\n", "<assistant><think>", "Yo\n<end>"),
        (
            "<{{ m.role }}><think>{{ m.reasoning_content }}</think>{{ m.content }}<end>",
            "<assistant><t>",
            "<think>So</think>Yo\n<end>",
        ),
        (
            "<{{ m.role }}><think>{{ m.reasoning_content }}</think>{{ m.content }}<end>",
            "<assistant><think>",
            "So</think>Yo\n<end>",
        ),
        // There is none, or the end of a turn is not a token.
        ("{% if m.role == 'user' %}[{{ m.content }}]{% else %} {{ m.content }}.\n{% endif %}", "", " Yo\n."),
        // White space at the end is the model's.
        ("<{{ m.role }}>{{ m.content }}{{ '\n' }}", "<assistant>", "Yo\n"),
        // What the vocabulary ends a turn with stands at the start of the next one.
        ("{% if not loop.first %}<end>{% endif %}<{{ m.role }}>{{ m.content }}", "<end><assistant>", "Yo\n<end>"),
    ];
    for (body, prompt, expected) in chats {
        let found = masked(&looped(body, prompt), &[USER, ANSWER, USER].join(", "), Mask::Turn).unwrap();
        assert_eq!(found, [expected], "{body}");
    }
}

#[test]
fn calls_are_learned_and_answers_of_tools_are_not() {
    let body = "{% if m.role == 'tool' %}<tool>{{ m.content }}</tool>{% else %}<{{ m.role }}>{{ m.content }}\
        {% for c in m.tool_calls %}<call>{{ c.function.name }}{{ c.function.arguments|tojson }}</call>{% endfor %}<end>{% endif %}";
    let chat = [USER, CALL, RESULT, ANSWER].join(", ");
    let found = masked(&looped(body, "<assistant>"), &chat, Mask::Turn).unwrap();
    assert_eq!(found, [r#"<call>f{"x": 1}</call><end>"#, "Yo\n<end>"]);

    // The template writes the answer where the call is.
    let body = "{% if m.role != 'tool' %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls %}<call>\
        {{ c.function.name }}</call>{% if loop.last and messages|length > 2 %}<tool>{{ messages[2].content }}</tool>{% endif %}\
        {% endfor %}<end>{% endif %}";
    let found = masked(&looped(body, "<assistant>"), &chat, Mask::Turn).unwrap();
    assert_eq!(found, ["<call>f</call>", "Yo\n<end>"]);

    // No prompt is asked for after a tool's answer, but a header is written.
    let prompt = "{% if messages[-1].role != 'tool' %}<assistant>{% endif %}";
    let found = masked(&looped("<{{ m.role }}>{{ m.content }}<end>", prompt), &chat, Mask::Turn).unwrap();
    assert_eq!(found, ["<end>", "Yo\n<end>"]);
}

#[test]
fn what_stands_between_messages_and_the_prompt_is_not_learned() {
    let prompt = "<assistant>";
    let template =
        looped("<{{ m.role }}>{{ m.content }}<end>", prompt).replacen("{% if add", "<tools>{}</tools>{% if add", 1);
    let found = masked(&template, &[USER, ANSWER].join(", "), Mask::Turn).unwrap();
    assert_eq!(found, ["Yo\n<end>"]);
}

#[test]
fn templates_that_loop_over_numbers() {
    let template = "{% for i in range(messages|length) %}<{{ messages[i].role }}>{{ messages[i].content }}<end>{% endfor %}\
        {% if add_generation_prompt %}<assistant>{% endif %}";
    // A role is the template's, in the turn of its message. Content that is the role's name is not.
    assert_eq!(masked(template, &[USER, ANSWER, USER].join(", "), Mask::Turn).unwrap(), ["Yo\n<end>"]);
    let named = r#"{"role": "assistant", "content": "assistant"}"#;
    assert_eq!(masked(template, &[USER, named, USER].join(", "), Mask::Turn).unwrap(), ["assistant<end>"]);
    assert_eq!(
        masked("{% for m in messages %}{{ m.content }}\n{% endfor %}", named, Mask::Turn).unwrap(),
        ["assistant"]
    );
    let template = "{{ messages[0].content }}:{{ messages[1].content }}<end>{% if add_generation_prompt %}{% endif %}";
    assert_eq!(masked(template, &[USER, ANSWER].join(", "), Mask::Turn).unwrap(), ["Yo\n<end>"]);
    let refuses = "{% if messages|length < 2 %}{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}{{ messages[1].content }}";
    let result = masked(refuses, &[USER, ANSWER].join(", "), Mask::Turn);
    assert_eq!(result, Err(Error::Mask { message: 1 }));
}

#[test]
fn content_and_generation() {
    let template = looped("<{{ m.role }}>{{ m.reasoning_content }}|{{ m.content }}<end>", "<assistant>");
    assert_eq!(masked(&template, &[USER, ANSWER].join(", "), Mask::Content).unwrap(), ["So", "Yo\n"]);
    let body = "<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}!{% endgeneration %}{% endif %}<end>";
    for mask in [Mask::Turn, Mask::Content] {
        assert_eq!(masked(&looped(body, "<assistant>"), &[USER, ANSWER].join(", "), mask).unwrap(), ["Yo\n!"]);
    }
    // So are numbers of the caller's.
    let body = "{{ m.content }}{% for c in m.tool_calls %}{% for k, v in c.function.arguments|items %}\
        {% generation %}{{ k }}={{ v }}{% endgeneration %}{% endfor %}{% endfor %}<end>";
    assert_eq!(masked(&looped(body, ""), &[USER, CALL].join(", "), Mask::Turn).unwrap(), ["x=1"]);
}
