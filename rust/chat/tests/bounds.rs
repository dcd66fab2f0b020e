//! Hostile templates and requests: each ends in the error or the text that is expected of it, in bounded memory, and
//! leaves nothing behind.
//!
//! Time is not asserted, because machines differ: what would take long is an `Error::Limit`, and whatever is not
//! charged shows as a test that does not end. The allocator counts the bytes of each thread, so that tests can run side
//! by side.

#[path = "../../fuzz/src/memory.rs"]
mod memory;

use ggtok_chat::{Budget, ChatTemplate, Error, Json, Now, Object, Options, Request, Template, Text};

/// What no call may need at a time, for the small conversations of these tests.
const MOST_BYTES: isize = 200 << 20;
/// What may be left after a call: tables that are made once for a thread.
const MOST_LEFT: isize = 1 << 16;

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Text,
    Syntax,
    Fails,
    Raises,
    Limit,
    Request,
}
use End::{Fails, Limit, Raises, Syntax};

fn end_of<T>(result: &Result<T, Error>) -> End {
    match result {
        Ok(_) => End::Text,
        Err(Error::Syntax { .. }) => Syntax,
        Err(Error::Template { .. }) => Fails,
        Err(Error::Raised { .. }) => Raises,
        Err(Error::Request { .. }) => End::Request,
        Err(Error::Limit { .. }) => Limit,
        Err(error) => panic!("{error:?}"),
    }
}

/// Runs something in bounded memory, and checks what it leaves.
fn bounded<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let (result, needed, left) = memory::measured(run);
    assert!(needed < MOST_BYTES, "{what:.200} needs {needed} bytes");
    assert!(left < MOST_LEFT, "{what:.200} leaves {left} bytes behind");
    result
}

/// Renders a template without llama-server's rules.
fn render(source: &[u8]) -> Result<Text, Error> {
    let variables = Object::with(None, [("x", "text".into())]);
    Template::new(source)?.render(&variables, &Now::default(), &mut Budget::new(0))
}

fn check(cases: &[(impl AsRef<[u8]>, End)]) {
    for (source, expected) in cases {
        let name = String::from_utf8_lossy(source.as_ref());
        let found = bounded(&name, || render(source.as_ref()).map(drop));
        assert_eq!(end_of(&found), *expected, "{name:.200}: {found:?}");
    }
}

/// Text of so many values that hold each other: `n.v` is set so many times.
fn grown(start: &str, step: &str, times: usize, then: &str) -> String {
    format!("{{% set n = namespace(v={start}) %}}{{% for i in range({times}) %}}{step}{{% endfor %}}{then}")
}

#[test]
fn what_kills_a_process_with_jinja2() {
    check(&[
        ("{{ ('a' * 1000000).translate({97: 'a' * 1000}) }}", Fails),
        ("{{ (1).to_bytes(length=1000000000) }}", Fails),
        ("{{ (1).to_bytes(10**9, 'big') }}", Syntax),
        ("{{ range(100000)|list|tojson(separators=('x' * 1000000, '')) }}", Limit),
        ("{{ [[[[1]]]]|tojson(indent=2147483647) }}", Limit),
        ("{{ ('a ' * 1000000)|wordwrap(1) }}", Fails),
        ("{{ ('www.a.de ' * 1000000)|urlize }}", Fails),
        ("{{ strftime_now('%c' * 8000000) }}", Limit),
        ("{{ strftime_now('%c' * 500000) }}", Fails),
        ("{{ strftime_now('%9999999999c') }}", Fails),
        ("{{ (10 ** 100000000) // 7 }}", Syntax),
        ("{{ 9223372036854775807 // 3 }}", Syntax),
        ("{{ 999999999999999999999 }}", Syntax),
        (
            "{% for a in range(100000) %}{% for b in range(100000) %}{{ '' if a is divisibleby 7 }}{% endfor %}{% endfor %}",
            Limit,
        ),
        ("{{ 1 is divisibleby 0 }}", Fails),
        ("{{ dict.fromkeys(range(100000000)) }}", Limit),
        ("{{ dict.fromkeys(range(10)) }}", Fails),
        ("{{ '%999999999d' % 1 }}", Fails),
        ("{{ '{:>999999999}'.format(1) }}", Fails),
        ("{{ 'a'|center(1000000000) }}", Fails),
        ("{{ 'a'|batch(1000000000, 0) }}", Fails),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", Fails),
        ("{% include 'x' %}", Syntax),
        ("{{ lipsum(1000) }}", Fails),
        ("{{ raise_exception('no') }}", Raises),
    ]);
}

#[test]
fn too_much_work_or_memory() {
    let concat = "{% set n.v = n.v ~ n.v %}";
    check(&[
        ("{% for a in range(1000000000000) %}{% endfor %}".to_owned(), Limit),
        ("{% for a in range(4000) %}{% for b in range(4000) %}{% for c in range(4000) %}{% endfor %}{% endfor %}{% endfor %}".to_owned(), Limit),
        ("{{ 'a' * 1000000000 }}".to_owned(), Limit),
        ("{{ 'a' * 9223372036854775807 }}".to_owned(), Limit),
        ("{{ ('a' * 30000000)|replace('a', 'b' * 100) }}".to_owned(), Limit),
        ("{{ ('a' * 1000000)|replace('', 'b' * 1000) }}".to_owned(), Limit),
        ("{{ ('a' * 30000000)|list }}".to_owned(), Limit),
        ("{{ ('a,' * 10000000).split(',')|length }}".to_owned(), Limit),
        ("{{ ('a\n' * 100000)|indent(100000) }}".to_owned(), Limit),
        ("{{ 'a'|indent(9223372036854775807) }}".to_owned(), Limit),
        ("{{ range(1000000)|join('x' * 1000) }}".to_owned(), Limit),
        ("{{ ('{}' * 1000000).format(x) }}".to_owned(), Fails),
        ("{{ ('\u{e9}' * 20000000)|tojson(ensure_ascii=true) }}".to_owned(), Limit),
        ("{{ ('\u{1}' * 20000000)|tojson }}".to_owned(), Limit),
        ("{{ range(3000000)|sort }}".to_owned(), Limit),
        ("{% set l = [] %}{% for i in range(20000) %}{% set _ = l.append([1]) %}{% endfor %}{{ l|map(attribute='0' * 3000000)|length }}".to_owned(), Limit),
        ("{{ ('a' * 1000000 ~ 'b') in ('a' * 2000000) }}".to_owned(), End::Text),
        ("{% for i in range(1000000) %}{{ ('a' * 100000).strip('b') }}{% endfor %}".to_owned(), Limit),
        ("{% for i in range(10000000) %}{{ 'a' }}{% endfor %}".to_owned(), Limit),
        (grown("'a'", concat, 99, ""), Limit),
        (grown("x", concat, 99, ""), Limit),
        (grown("[1]", "{% set n.v = n.v + n.v %}", 99, ""), Limit),
        (grown("''", "{% set n.v = n.v ~ 'ab' %}", 1000000, ""), Limit),
        (grown("[]", "{% set _ = n.v.append(n.v|string) %}", 99, "{{ n.v }}"), Limit),
        (grown("x", "{% set n.v = n.v|tojson %}", 99, ""), Limit),
        ("{% macro m(a) %}{{ a }}{{ a }}{% endmacro %}{% set n = namespace(v=x) %}{% for i in range(99) %}{% set n.v = m(n.v) %}{% endfor %}".to_owned(), Limit),
        ("{% set y %}{% for i in range(1000000) %}{{ x }}{{ x }}{{ x }}{{ x }}{{ x }}{{ x }}{{ x }}{{ x }}{{ x }}{% endfor %}{% endset %}".to_owned(), Limit),
    ]);
}

#[test]
fn deep_nesting() {
    let filled = |unit: &str, count: usize| unit.repeat(count);
    check(&[
        (filled("(", 1 << 20), End::Text),
        (format!("{{{{ {}", filled("(", (1 << 20) - 3)), Syntax),
        (format!("{{{{ {}", filled("[", (1 << 20) - 3)), Syntax),
        (format!("{{{{ {}", filled("{", (1 << 20) - 3)), Syntax),
        (format!("{{{{ {}1", filled("-", 1_000_000)), Syntax),
        (format!("{{{{ {}1", filled("not ", 250_000)), Syntax),
        (format!("{{{{ 1{} }}}}", filled(" + 1", 250_000)), Syntax),
        (format!("{{{{ x{} }}}}", filled(".a", 500_000)), Syntax),
        (format!("{{{{ x{} }}}}", filled("|f", 500_000)), Syntax),
        (format!("{{{{ x{} }}}}", filled("()", 500_000)), Syntax),
        (format!("{{{{ x{} }}}}", filled("[0]", 300_000)), Syntax),
        (format!("{{{{ x{} }}}}", filled(" if x else x", 80_000)), Syntax),
        (format!("{{{{ x{} }}}}", filled(" is string", 100_000)), Syntax),
        (filled("{% if x %}", 100_000), Syntax),
        (filled("{% for a in x %}", 60_000), Syntax),
        (filled("{% macro m() %}", 60_000), Syntax),
        (filled("{% call m() %}", 60_000), Syntax),
        (filled("{% filter upper %}", 50_000), Syntax),
        (filled("{% set a %}", 90_000), Syntax),
        (format!("{{{{ {}{} }}}}", filled("(", 90), filled(")", 90)), Syntax),
        (format!("{{{{ {}x{} }}}}", filled("(", 90), filled(")", 90)), End::Text),
        (format!("{{{{ x{} }}}}", filled(" ~ x", 300)), End::Text),
        (format!("{{{{ x{} }}}}", filled(" ~ x", 999)), End::Text),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}".to_owned(), Fails),
        ("{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}".to_owned(), Fails),
        ("{% macro m() %}{{ caller() }}{% endmacro %}{% macro k() %}{% call m() %}{{ k() }}{% endcall %}{% endmacro %}{{ k() }}".to_owned(), Fails),
        ("{% macro m(a=m()) %}{{ a }}{% endmacro %}{{ m() }}".to_owned(), Fails),
        ("{% macro m() %}{% for a in [1] %}{% if a %}{% set b %}{{ m() }}{% endset %}{% endif %}{% endfor %}{% endmacro %}{{ m() }}".to_owned(), Fails),
    ]);
}

#[test]
fn values_in_values() {
    let (tuple, list) = ("{% set n.v = (n.v, n.v) %}", "{% set n.v = [n.v, n.v] %}");
    let deep = "{% set n.v = (n.v, 1) %}";
    let mut cases = vec![
        // Equal or not, arrays that can be changed are not compared.
        (grown("[1]", list, 99, "{{ n.v == n.v }}"), End::Text),
        (grown("1", list, 99, "{{ n.v }}"), Limit),
        (grown("1", "{% set n.v = {'a': n.v, 'b': n.v} %}", 99, "{{ n.v|tojson }}"), Limit),
        (grown("1", "{% set n.v = {(n.v, n.v): 1} %}", 99, ""), Fails),
        (grown("1", deep, 200_000, ""), Fails),
        (grown("1", deep, 200_000, "{{ n.v|string }}"), Fails),
        (grown("1", deep, 200_000, "{{ n.v == n.v }}"), Fails),
        (grown("1", "{% set n.v = [n.v] %}", 200_000, ""), Fails),
        (grown("1", "{% set n.v = {'a': n.v} %}", 100_000, ""), Fails),
        (grown("1", "{% set n.v = namespace(a=n.v) %}", 100_000, ""), Fails),
        (grown("'a'.upper", "{% set n.v = [n.v].append %}", 100_000, ""), Fails),
        (grown("'a'.upper", "{% set n.v = {'a': n.v}.items %}", 100_000, ""), Fails),
        (grown("[1]", "{% set _ = n.v.append(a=n.v.pop()) %}", 100_000, ""), Fails),
        (grown("[1]", "{% set _ = n.v.append(a=n.v.pop()) %}", 100_000, "{{ n.v.pop() }}"), Fails),
        // However deep, they do not nest deeper than a stack is when they are freed.
        (grown("1", deep, 199, "{{ n.v|string|length }}"), End::Text),
        ("{% macro m(a, i) %}{{ m([[[[[[a]]]]]], i - 1) if i }}{% endmacro %}{{ m(1, 60) }}".to_owned(), Fails),
        ("{% set n = namespace() %}{% macro m() %}{% set n.v = caller %}{% endmacro %}{% for i in range(20000) %}{% call m() %}{{ i }}{% endcall %}{% endfor %}".to_owned(), End::Text),
    ];
    for test in ["n.v|string", "n.v|tojson", "n.v == n.v", "{n.v: 1}", "[n.v]|sort", "n.v < n.v"] {
        let expected = if test.contains('<') { Fails } else { Limit };
        cases.push((grown("(1, 1)", tuple, 99, &format!("{{{{ {test} }}}}")), expected));
    }
    check(&cases);
}

#[test]
fn values_that_hold_themselves() {
    let array = "{% set a = [] %}{% set _ = a.append(a) %}";
    let object = "{% set a = namespace() %}{% set a.a = a %}";
    let mut cases = vec![(format!("{object}{{{{ a }}}}"), End::Text), (format!("{array}{{{{ a }}}}"), Fails)];
    for (start, test, expected) in [
        (array, "a|string", Fails),
        (array, "a|tojson", Fails),
        (array, "a|join", Fails),
        (array, "a|sort", Fails),
        (array, "a == a", End::Text),
        (array, "[1] + a", Fails),
        (array, "{(a, 1): 1}", Fails),
        (object, "a|string", Fails),
        (object, "a|tojson", Fails),
        (object, "a == a", End::Text),
        (object, "a.a.a.a.a.a is mapping", End::Text),
    ] {
        cases.push((format!("{start}{{{{ {test} }}}}"), expected));
    }
    let each = "{% set a = ['text' * 1000] %}{% set _ = a.append(a) %}";
    cases.push((format!("{{% for i in range(1000) %}}{each}{{% endfor %}}"), End::Text));
    cases.push(("{% set a = [x] %}{% for b in a %}{% set _ = a.append(b) %}{% endfor %}".to_owned(), End::Text));
    cases.push((
        "{% set n = namespace() %}{% macro m() %}{% set n.v = caller %}{% endmacro %}{% call m() %}{{ x }}{% endcall %}"
            .to_owned(),
        End::Text,
    ));
    check(&cases);
}

#[test]
fn keys_that_are_alike() {
    let zeros = "0, ".repeat(63);
    check(&[
        (grown("[]", "{% set _ = n.v.append((i, 1)) %}", 100_000, "{{ dict(n.v)|length }}"), End::Text),
        // Tuples whose items cancel each other out in a weak hash.
        (
            grown("[]", &format!("{{% set _ = n.v.append(((i, {zeros} i), 1)) %}}"), 30_000, "{{ dict(n.v)|length }}"),
            End::Text,
        ),
        (grown("[]", "{% set _ = n.v.append((none, i)) %}", 100_000, "{{ dict(n.v)|length }}"), End::Text),
        (
            grown(
                "[]",
                "{% set k = [] %}{% set _ = k.append(a=i) %}{% set _ = n.v.append((k[0], 1)) %}",
                60_000,
                "{{ dict(n.v)|length }}",
            ),
            End::Text,
        ),
    ]);
}

#[test]
fn long_templates() {
    let fill = |unit: &str| unit.repeat((1 << 20) / unit.len());
    check(&[
        (fill("{{a}}"), End::Text),
        ("{{a}}".repeat(100_000), End::Text),
        (fill("{%set a=1%}"), End::Text),
        (fill("{%if 1%}{%endif%}"), End::Text),
        (fill("{%macro a()%}{%endmacro%}"), End::Text),
        (fill("{#-#}"), End::Text),
        (fill("{{''}}"), End::Text),
        (fill("{{1}} "), End::Text),
        (fill("a"), End::Text),
        (fill("\n"), End::Text),
        (fill("{"), Syntax),
        (fill("{{"), Syntax),
        (format!("{{{{ {} }}}}", "''; ".repeat(200_000)), Syntax),
        (fill("{% "), Syntax),
        (fill("'"), End::Text),
        (format!("{{{{ [{}] }}}}", "1,".repeat(500_000)), End::Text),
        (format!("{{{{ {{{}}} }}}}", "1:1,".repeat(250_000)), End::Text),
        (format!("{{{{ f({}) }}}}", "a=1,".repeat(250_000)), Fails),
        (format!("{{% set a = {} %}}", "'',".repeat(300_000) + "''"), End::Text),
        (format!("{{{{ {} }}}}", "''".repeat(500_000)), End::Text),
        ((0..100_000).map(|at| format!("{{{{a{at}}}}}")).collect(), End::Text),
        ("{%set a=1%}".repeat(1_000_000), Limit),
        ("a".repeat((1 << 20) + 1), Limit),
    ]);
}

#[test]
fn what_is_not_a_template() {
    let cases: [(&[u8], End); 14] = [
        (b"", End::Text),
        (b"\xEF\xBB\xBF{{ x }}", End::Text),
        (b"{{ x }}\\n{{ x }}", End::Text),
        (b"PK\x03\x04\0\0\0\xFF\xFE", End::Text),
        (b"\xFF\xFE{\0{\0 \0x\0", End::Text),
        (b"{{ \xFF }}", Syntax),
        (b"{{ 'a\xFF' }}", End::Text),
        (b"{{ 'a", Syntax),
        (b"{# a", Syntax),
        (b"{% raw %}{{ x }}{% endraw %}", Syntax),
        (b"{{- if .System }}{{ .System }}{{ end }}", Syntax),
        (b"[INST] %s [/INST]", End::Text),
        (b"<html><body>{}</body></html>", End::Text),
        (b"{{ x|nope }}", Fails),
    ];
    check(&cases);
}

/// Renders a request with the rules.
fn apply(template: &str, body: &str) -> Result<Text, Error> {
    let request = Request::parse(body.as_bytes())?;
    let template = ChatTemplate::new(template.as_bytes())?;
    Ok(template.apply(&request, &Options::default(), &Now::default())?.text)
}

const PLAIN: &str = "\
{% for m in messages %}{{ m.role }}{{ m.content }}{{ m.tool_calls|tojson if m.tool_calls else '' }}{% endfor %}";

#[test]
fn requests() {
    let nested = |open: &str, close: &str, depth: usize| open.repeat(depth) + "1" + &close.repeat(depth);
    let of_arguments = |arguments: &str| {
        format!(
            r#"{{"messages": [{{"role": "assistant", "content": "", "tool_calls": [{{"type": "function", "function":
            {{"name": "f", "arguments": {arguments}}}}}]}}, {{"role": "user", "content": ""}}]}}"#
        )
    };
    let user = r#"{"messages": [{"role": "user", "content": "Hi"}]}"#;
    let many_fields: String = (0..50_000).map(|at| format!(r#""f{at}": 1, "#)).collect();
    let many_roles = r#"{"role": "user", "content": "a"},"#.repeat(20_000);
    let many_variables: String = (0..50_000).map(|at| format!(r#""a{at}": 1,"#)).collect();
    let reads_many: String = (0..50_000).map(|at| format!("{{{{a{at}}}}}")).collect();
    let deep_string = format!("{:?}", nested("[", "]", 100_000));
    let endless = "{% for i in range(100000000) %}{% endfor %}";
    let cases: [(&str, &str, String, End); 20] = [
        ("no messages", PLAIN, "{}".to_owned(), End::Request),
        ("not JSON", PLAIN, "messages".to_owned(), End::Request),
        ("messages are a string", PLAIN, r#"{"messages": "Hi"}"#.to_owned(), End::Request),
        ("messages are an object", PLAIN, r#"{"messages": {"role": "user"}}"#.to_owned(), End::Request),
        ("a message is a string", PLAIN, r#"{"messages": ["Hi"]}"#.to_owned(), End::Request),
        ("a body that is an array", PLAIN, "[]".to_owned(), End::Request),
        ("deep arguments", PLAIN, of_arguments(&nested("[", "]", 100_000)), End::Request),
        ("deep objects", PLAIN, of_arguments(&nested(r#"{"a":"#, "}", 100_000)), End::Request),
        ("deep arguments in a string", PLAIN, of_arguments(&deep_string), End::Request),
        ("brackets", PLAIN, "[".repeat(1 << 20), End::Request),
        (
            "many fields",
            PLAIN,
            format!(r#"{{"messages": [{{{many_fields} "role": "user", "content": ""}}]}}"#),
            End::Text,
        ),
        (
            "many messages",
            PLAIN,
            format!(r#"{{"messages": [{many_roles} {{"role": "user", "content": ""}}]}}"#),
            End::Text,
        ),
        (
            "many variables",
            &reads_many,
            format!(r#"{{"messages": [], "chat_template_kwargs": {{{many_variables} "b": 1}}}}"#),
            End::Text,
        ),
        ("an endless template", endless, user.to_owned(), Limit),
        (
            "endless if it is asked for tools",
            "{% if tools %}{% for i in range(100000000) %}{% endfor %}{% endif %}{{ messages[0].content }}",
            user.to_owned(),
            Limit,
        ),
        (
            "memory if it is asked for tools",
            "{% if tools %}{{ 'a' * 1000000000 }}{% endif %}{{ messages[0].content }}",
            user.to_owned(),
            Limit,
        ),
        ("large for every probe", "{{ 'a' * 10000000 }}{{ messages[0].content }}", user.to_owned(), Limit),
        ("a deep macro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", user.to_owned(), Fails),
        ("not a template", "[INST] %s [/INST]", user.to_owned(), End::Text),
        ("a byte order mark", "\u{FEFF}{{ messages[0].content }}", user.to_owned(), End::Text),
    ];
    for (name, template, body, expected) in cases {
        let found = bounded(name, || apply(template, &body).map(drop));
        assert_eq!(end_of(&found), expected, "{name}: {found:?}");
    }
}

#[test]
fn a_long_message_has_a_budget_of_its_size() {
    let body = format!(r#"{{"messages": [{{"role": "user", "content": "{}"}}]}}"#, "a b ".repeat(1 << 20));
    let text = apply("{% for m in messages %}{{ m.content|trim|upper|replace('A', 'b')|tojson }}{% endfor %}", &body);
    assert_eq!(text.map(|text| text.len()).map_err(|error| error.to_string()), Ok((4 << 20) + 1));
}

#[test]
fn json_made_by_hand_may_not_be_deep() {
    let mut json = Json::Null;
    for _ in 0..400 {
        json = Json::Array(vec![json]);
    }
    let variables = Object::with(None, [("x", json)]);
    let template = Template::new(b"{{ x|tojson }}").expect("a template");
    let found = template.render(&variables, &Now::default(), &mut Budget::new(0));
    assert_eq!(end_of(&found), Fails);
}
