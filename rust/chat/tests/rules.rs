//! llama-server's rules for requests. The prompts are those of its `/apply-template` (b11549), except where a test says
//! that ggtok deviates.

use ggtok_chat::{ChatTemplate, Error, Json, Now, Object, Options, Origin, Rendered, Request, Text};

/// Shows everything that a template gets of each message.
const SHOW: &str = "{% for m in messages %}<{{ m|tojson }}>{% endfor %}{% if add_generation_prompt %}<G>{% endif %}";
/// Takes contents that are text, by their use.
const TEXT: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content + '' }}{% endfor %}\
                    {% if add_generation_prompt %}[assistant]{% endif %}";
/// Takes contents that are arrays.
const PARTS: &str =
    "{% for m in messages %}[{{ m.role }}]{% for p in m.content %}{{ p.text }};{% endfor %}{% endfor %}";

fn rendered(template: &str, body: &str, options: &Options) -> Result<Rendered, Error> {
    ChatTemplate::new(template.as_bytes())?.apply(&Request::parse(body.as_bytes())?, options, &Now::default())
}

fn prompt(template: &str, body: &str) -> String {
    let options = Options { closes: Some(false), ..Options::default() };
    String::from_utf8(rendered(template, body, &options).unwrap().text.into_bytes()).unwrap()
}

/// The field at fault.
fn fault(body: &str) -> String {
    match rendered(SHOW, body, &Options::default()) {
        Err(Error::Request { field, .. }) => field,
        other => panic!("{body}: {other:?}"),
    }
}

/// A request with one message of the user's and these fields.
fn with(fields: &str) -> String {
    format!(r#"{{"messages": [{{"role": "user", "content": "Hi"}}], {fields}}}"#)
}

/// The runs of a text: what it says, and which message wrote it, or the template.
fn runs(text: &Text) -> Vec<(String, Option<usize>)> {
    let mut runs: Vec<(String, Option<usize>)> = Vec::new();
    for (range, origin) in text.runs() {
        let writer = origin.is_caller().then(|| origin.message().unwrap_or(99));
        let says = String::from_utf8_lossy(&text.as_bytes()[range]).into_owned();
        match runs.last_mut() {
            Some(last) if last.1 == writer => last.0.push_str(&says),
            _ => runs.push((says, writer)),
        }
    }
    runs
}

#[test]
fn a_template_gets_the_fields_that_llama_server_reads_in_its_order() {
    let body = r#"{"messages": [{"name": "n", "tool_calls": [{"function": {"arguments": {"a": [1.50, 1e-7]}, "name": "f"},
        "type": "function", "index": 0}], "refusal": null, "content": null, "role": "assistant", "reasoning_content": "r"},
        {"role": "tool", "content": "t", "tool_call_id": "i", "tool_calls": []}]}"#;
    let template = SHOW.replace("tojson", "tojson(separators=(',', ':'))");
    assert_eq!(
        prompt(&template, body),
        r#"<{"role":"assistant","content":"","reasoning_content":"r","name":"n","tool_calls":[{"type":"function","#
            .to_owned()
            + r#""function":{"name":"f","arguments":{"a":[1.5,1e-07]}}}]}><{"role":"tool","content":"t","#
            + r#""tool_call_id":"i"}><G>"#
    );
}

#[test]
fn parts_are_joined_for_templates_that_take_text_and_made_for_those_that_take_parts() {
    let parts = r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "a"},
        {"type": "text", "text": ""}, {"type": "text", "text": "b"}]}, {"role": "tool", "content": []}]}"#;
    assert_eq!(prompt(TEXT, parts), "[user]a\n\nb[tool][assistant]");
    let text = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "tool", "content": ""}]}"#;
    assert_eq!(prompt(PARTS, text), "[user]a;[tool];");
}

#[test]
fn a_system_message_is_merged_into_the_next_where_a_template_takes_none() {
    let template = "{% for m in messages %}{% if m.role == 'user' %}{{ '<U>' + m.content }}{% endif %}{% endfor %}";
    let body = r#"{"messages": [{"role": "developer", "content": "S"}, {"role": "user", "content": "U"}]}"#;
    assert_eq!(prompt(template, body), "<U>S\nU");
    let alone =
        rendered(template, r#"{"messages": [{"role": "system", "content": "S"}]}"#, &Options::default()).unwrap();
    assert!(alone.text.is_empty());
    assert_eq!(alone.warnings[0].to_string(), "messages[0] is dropped: the template takes no system messages");
}

#[test]
fn a_last_message_of_the_assistant_is_continued_or_closed() {
    let body = |fields: &str| {
        format!(
            r#"{{"messages": [{{"role": "user", "content": "Q"}}, {{"role": "assistant", "content": "A"}}]{fields}}}"#
        )
    };
    let text = |fields: &str, closes| {
        let rendered = rendered(TEXT, &body(fields), &Options { closes, ..Options::default() });
        rendered.map(|rendered| String::from_utf8(rendered.text.into_bytes()).unwrap())
    };
    let (continued, closed) = ("[user]Q[assistant]A", "[user]Q[assistant]A[assistant]");
    assert_eq!(text("", None).unwrap(), continued);
    assert_eq!(text(r#", "add_generation_prompt": false"#, Some(false)).unwrap(), continued);
    // Numbered deviations: the server continues these too.
    assert_eq!(text("", Some(true)).unwrap(), closed);
    let end = TEXT.replace("{% endfor %}", ".{% endfor %}");
    for (fields, expected) in
        [("", "[user]Q.[assistant]A"), (r#", "add_generation_prompt": false"#, "[user]Q.[assistant]A.")]
    {
        let rendered = rendered(&end, &body(fields), &Options::default()).unwrap();
        assert_eq!(rendered.text.as_bytes(), expected.as_bytes());
    }
    let both = r#", "continue_final_message": true"#;
    assert!(text(both, Some(true)).is_err());
    let asked = r#", "continue_final_message": true, "add_generation_prompt": false"#;
    assert_eq!(text(asked, Some(true)).unwrap(), continued);
}

#[test]
fn bos_and_eos_are_variables() {
    let template = "{{ bos_token }}{{ bos_token }}{{ messages[0].content }}{{ eos_token }}";
    let body = r#"{"messages": [{"role": "user", "content": "Hi"}]}"#;
    let options = Options { bos: "<s>".to_owned(), eos: "</s>".to_owned(), ..Options::default() };
    assert_eq!(rendered(template, body, &options).unwrap().text.as_bytes(), b"<s><s>Hi</s>");
}

#[test]
fn variables_of_the_request_win() {
    let template = "{{ messages|length }} {{ enable_thinking }} {{ reasoning_effort }} {{ reasoning_strength }} \
                    {{ clear_thinking }} {{ date_string }} {{ datetime }} {{ custom }}";
    assert_eq!(prompt(template, &with(r#""x": 1"#)), "1 False    01 Jan 1970 Jan 01 1970 ");
    let fields = r#""reasoning_effort": "low", "chat_template_kwargs":
        {"enable_thinking": true, "preserve_reasoning": true, "custom": 9223372036854775808, "messages": []}"#;
    assert_eq!(prompt(template, &with(fields)), "0 True low low False 01 Jan 1970 Jan 01 1970 -9223372036854775808");
    let fields =
        r#""reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": true, "reasoning_effort": "x"}"#;
    assert_eq!(prompt(template, &with(fields)), "1 True    01 Jan 1970 Jan 01 1970 ");
    // A numbered deviation: the server drops documents.
    assert_eq!(prompt("{{ documents[0] }}", &with(r#""documents": ["D"]"#)), "D");
}

#[test]
fn what_a_caller_passes_is_not_the_templates() {
    let body = br#"{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": [
        {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, {"role": "critic", "content": "c"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"type": "function", "function": {"name": "f", "arguments": {"x": [1, "y"]}}}]}]}"#;
    let request = Request::parse(body).unwrap();
    let template = "{% for m in messages %}{% if m.role != 'system' %}<{{ m.role }}>{{ m.content + '' }}\
                    {% for c in m.tool_calls %}{{ c.function.arguments + '' }}{% endfor %}{% endif %}{% endfor %}";
    let options = Options { closes: Some(true), ..Options::default() };
    let rendered = ChatTemplate::new(template.as_bytes()).unwrap().apply(&request, &options, &Now::default()).unwrap();
    // The first two are merged, and the line feeds between them and between parts are theirs.
    let expected = [
        ("<user>", None),
        ("S\n", Some(0)),
        ("a\nb", Some(1)),
        ("<", None),
        ("critic", Some(2)),
        (">", None),
        ("c", Some(2)),
        ("<assistant>", None),
        (r#"{"x":[1,"y"]}"#, Some(3)),
    ];
    let expected = expected.map(|(says, writer)| (says.to_owned(), writer));
    assert_eq!(runs(&rendered.text), expected);
}

#[test]
fn an_image_is_refused_or_marked() {
    let body = r#"{"messages": [{"role": "user", "content": "Hi"}, {"role": "user", "content": [
        {"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:,"}},
        {"type": "text", "text": "?"}]}]}"#;
    assert_eq!(fault(body), "messages[1].content[1]");
    let options = Options { media_marker: Some("<__media__>".to_owned()), ..Options::default() };
    let rendered = rendered(TEXT, body, &options).unwrap();
    assert_eq!(rendered.text.as_bytes(), b"[user]Hi[user]see<__media__>?[assistant]");
    let [place] = rendered.media[..] else { panic!("{:?}", rendered.media) };
    assert_eq!((place.message, place.part), (1, 1));
    let spans: Vec<_> = (0..rendered.text.len()).map(|at| at..at + 1).collect();
    assert_eq!(ggtok_chat::markers(&rendered, &spans), [(place, 17..28)]);
}

#[test]
fn every_refusal_names_its_field() {
    let cases = [
        (r#"{}"#, "messages"),
        (r#"{"messages": "Hi"}"#, "messages"),
        (r#"{"messages": [5]}"#, "messages[0]"),
        (r#"{"messages": [{"content": "x"}]}"#, "messages[0]"),
        (r#"{"messages": [{"role": 5, "content": "x"}]}"#, "messages[0].role"),
        (r#"{"messages": [{"role": "user"}]}"#, "messages[0]"),
        (r#"{"messages": [{"role": "assistant"}]}"#, "messages[0]"),
        (r#"{"messages": [{"role": "user", "content": 5}]}"#, "messages[0].content"),
        (r#"{"messages": [{"role": "user", "content": ["x"]}]}"#, "messages[0].content[0]"),
        (
            r#"{"messages": [{"role": "user", "content": [{"type": "input_text", "text": ""}]}]}"#,
            "messages[0].content[0]",
        ),
        (
            r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}"#,
            "messages[0].content[0].text",
        ),
        (r#"{"messages": [{"role": "user", "content": "", "name": null}]}"#, "messages[0].name"),
        (r#"{"messages": [{"role": "assistant", "tool_calls": [{}]}]}"#, "messages[0].tool_calls[0]"),
        (r#"{"messages": [{"role": "assistant", "tool_calls": "f"}]}"#, "messages[0].tool_calls"),
        (
            r#"{"messages": [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]}"#,
            "messages[1]",
        ),
    ];
    for (body, field) in cases {
        assert_eq!(fault(body), field, "{body}");
    }
    let cases = [
        (r#""tools": {}"#, "tools"),
        (r#""tools": [{"type": "function"}]"#, "tools[0]"),
        (r#""tools": [{"type": "function", "function": {"name": 5}}]"#, "tools[0].function.name"),
        (
            r#""tools": [{"type": "function", "function": {"name": "f", "description": null}}]"#,
            "tools[0].function.description",
        ),
        (r#""tool_choice": "f""#, "tool_choice"),
        (r#""continue_final_message": 1"#, "continue_final_message"),
        (r#""reasoning_format": "x""#, "reasoning_format"),
        (r#""response_format": {"type": "yaml"}"#, "response_format.type"),
        (r#""json_schema": {}, "grammar": "x""#, "grammar"),
        (r#""chat_template_kwargs": {"enable_thinking": "false"}"#, "chat_template_kwargs.enable_thinking"),
        (r#""top_logprobs": 5"#, "top_logprobs"),
    ];
    for (fields, field) in cases {
        assert_eq!(fault(&with(fields)), field, "{fields}");
    }
}

#[test]
fn arguments_that_are_not_json_are_refused_by_templates_that_take_objects() {
    let template = "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments.arg }}\
                    {% for k, v in c.function.arguments|items %}{{ k }}{% endfor %}{% endfor %}{{ m.content }}{% endfor %}";
    let body = |arguments: &str| {
        format!(
            r#"{{"messages": [{{"role": "user", "content": "Hi"}}, {{"role": "assistant", "tool_calls":
                [{{"type": "function", "function": {{"name": "f", "arguments": {arguments}}}}}]}}],
                "add_generation_prompt": false}}"#
        )
    };
    let error = rendered(template, &body(r#""{\"a\": ""#), &Options::default()).unwrap_err();
    assert!(error.to_string().starts_with("messages[1].tool_calls[0].function.arguments: not JSON: "), "{error}");
    let objects = rendered(template, &body(r#""{\"z\": 1, \"b\": 2}""#), &Options::default()).unwrap();
    assert_eq!(objects.text.as_bytes(), b"Hizb");
}

#[test]
fn what_the_model_does_not_see_is_said() {
    let body = r#"{"messages": [{"role": "user", "content": "Hi", "weight": 1}, {"role": "tool", "content": "42"}],
        "tools": [{"type": "function", "function": {"name": "f"}}], "documents": ["D"],
        "chat_template_kwargs": {"enable_thinking": true, "lang": "en"}}"#;
    let template = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}{# lang #}";
    let warnings = rendered(template, body, &Options::default()).unwrap().warnings;
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "the template never reads the variable 'lang'",
            "the template never reads tools",
            "the template never reads documents",
            "llama-server drops the field 'weight', which messages[0] has",
            "the template leaves out messages[1], whose role is 'tool'",
        ]
    );
}

#[test]
fn strings_know_their_message() {
    let body = br#"{"x": ["y"], "messages": [{"a": "b"}, {"c": ["d"], "content": [{"text": "e"}]}], "messages2": [{"f": "g"}]}"#;
    let request = Request::parse(body).unwrap();
    let item = |json: &Json, at: usize| json.as_array().unwrap()[at].clone();
    let origin = |json: Option<&Json>| json.unwrap().as_text().unwrap().first_origin();
    let messages = request.body().get("messages").unwrap();
    assert_eq!(origin(item(messages, 0).get("a")), Origin::caller(0));
    assert_eq!(origin(Some(&item(item(messages, 1).get("c").unwrap(), 0))), Origin::caller(1));
    let content = origin(item(item(messages, 1).get("content").unwrap(), 0).get("text"));
    assert_eq!((content.message(), content.is_caller(), content.is_content()), (Some(1), true, true));
    assert_eq!(origin(item(request.body().get("messages2").unwrap(), 0).get("f")), Origin::CALLER);
    assert_eq!(Origin::CALLER.message(), None);
}

#[test]
fn requests_can_be_made_by_hand() {
    let message = Object::with(None, [("role", "user".into()), ("content", "Hi".into())]);
    let body = Object::with(None, [("messages", vec![message.into()].into())]);
    let request = Request::from_body(body.into());
    let rendered = ChatTemplate::new(TEXT.as_bytes()).unwrap().apply(&request, &Options::default(), &Now::default());
    // What stands in messages is the caller's.
    let expected = [("[user]", None), ("Hi", Some(0)), ("[assistant]", None)];
    assert_eq!(runs(&rendered.unwrap().text), expected.map(|(says, writer)| (says.to_owned(), writer)));
}

#[test]
fn templates_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync + std::panic::UnwindSafe>() {}
    is_shared::<ChatTemplate>();
    is_shared::<Request>();
}
