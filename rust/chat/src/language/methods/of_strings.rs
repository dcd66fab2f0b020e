//! Methods and filters of strings.
//!
//! Source: `value_string_t::get_builtins` in `common/jinja/value.cpp` of llama.cpp. Deviations: 1. Bytes keep their
//! origins when they are split, replaced, sliced and indented. 2. A number read from a caller's string has its origin.
//!
//! Time: O(length of what is read and written).

use memchr::memmem;

use super::super::failure::{Outcome, failed};
use super::super::numbers;
use super::super::value::{Args, Native, Run, Value};
use super::places;
use crate::text::{Origin, RUN_BYTES, Text, is_space};

pub(crate) fn method(name: &[u8]) -> Option<Native> {
    Some(match name {
        b"upper" => |_, args| Ok(Value::string(args.text(0)?.with_case(<[u8]>::to_ascii_uppercase))),
        b"lower" => |_, args| Ok(Value::string(args.text(0)?.with_case(<[u8]>::to_ascii_lowercase))),
        b"title" => |_, args| Ok(Value::string(args.text(0)?.capitalize(true))),
        b"capitalize" => |_, args| Ok(Value::string(args.text(0)?.capitalize(false))),
        b"strip" => |run, args| strip(run, args, true, true),
        b"lstrip" => |run, args| strip(run, args, true, false),
        b"rstrip" => |run, args| strip(run, args, false, true),
        b"length" => |_, args| Ok(Value::size(args.text(0)?.len())),
        b"startswith" => |_, args| Ok(Value::Bool(args.text(0)?.as_bytes().starts_with(args.text(1)?.as_bytes()))),
        b"endswith" => |_, args| Ok(Value::Bool(args.text(0)?.as_bytes().ends_with(args.text(1)?.as_bytes()))),
        b"split" => |run, args| split(run, args, false),
        b"rsplit" => |run, args| split(run, args, true),
        b"replace" => replace,
        b"format" => format_text,
        b"int" => int,
        b"float" => float,
        b"slice" => slice,
        b"safe" => |_, args| Ok(args.at(0)?.clone()),
        b"indent" => indent,
        b"join" => |_, _| failed("llama.cpp cannot join strings"),
        _ => return None,
    })
}

/// `strip(text, chars)`
fn strip(run: &mut Run<'_>, args: &Args, left: bool, right: bool) -> Outcome<Value> {
    let text = args.text(0)?;
    let chars = args.named("chars", 1);
    if chars.is_undefined() {
        return Ok(Value::string(text.strip(left, right, is_space)));
    }
    let mut is_stripped = [false; 256];
    chars.as_text(run)?.as_bytes().iter().for_each(|&byte| is_stripped[usize::from(byte)] = true);
    Ok(Value::string(text.strip(left, right, |byte| is_stripped[usize::from(byte)])))
}

/// `split(text, separator, maxsplit)`, and `rsplit`, which begins at the end.
fn split(run: &mut Run<'_>, args: &Args, from_end: bool) -> Outcome<Value> {
    args.check_len(1, 3)?;
    let text = args.text(0)?;
    let separator = args.values.get(1).map(|separator| separator.as_text(run)).transpose()?;
    let separator = separator.as_ref().map_or(&b" "[..], |separator| separator.as_bytes());
    if separator.is_empty() {
        return failed("the separator of a split must not be empty");
    }
    let most = args.values.get(2).map(Value::as_int).transpose()?;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let bytes = text.as_bytes();
    let mut places: Vec<usize> = if from_end {
        memmem::rfind_iter(bytes, separator).take(most).collect()
    } else {
        memmem::find_iter(bytes, separator).take(most).collect()
    };
    places.sort_unstable();
    run.budget.bytes((8 + size_of::<Value>()) * (places.len() + 1))?;
    let mut items = Vec::with_capacity(places.len() + 1);
    let mut start = 0;
    for end in places.into_iter().chain([bytes.len()]) {
        run.budget.string(end - start + RUN_BYTES)?;
        let mut piece = Text::default();
        piece.extend_with_range(text, start..end);
        items.push(Value::string(piece));
        start = end + separator.len();
    }
    Ok(Value::array(items))
}

/// `replace(text, old, new)`
fn replace(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    let text = args.text(0)?;
    let old = args.text(1)?;
    let new = args.text(2)?;
    if let Some(count) = args.values.get(3)
        && count.as_int()? > 0
    {
        return failed("llama.cpp replaces all or nothing");
    }
    let mut replaced = Text::default();
    let mut copied = 0;
    // An empty text is found before every byte and at the end.
    for place in memmem::find_iter(text.as_bytes(), old.as_bytes()).take_while(|_| old != new) {
        run.budget.steps(1)?;
        run.budget.bytes(new.num_bytes() + 8)?;
        replaced.extend_with_range(text, copied..place);
        replaced.extend_with(new);
        copied = place + old.len();
    }
    replaced.extend_with_range(text, copied..text.len());
    Ok(Value::string(replaced))
}

/// `format(text, argument, ...)`: arguments take the places of `{}`.
fn format_text(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    let text = args.text(0)?;
    let bytes = text.as_bytes();
    let mut formatted = Text::default();
    let mut copied = 0;
    let places = memchr::memchr_iter(b'{', bytes).chain([bytes.len()]);
    for (number, place) in places.enumerate() {
        let mut literal = Text::default();
        literal.extend_with_range(text, copied..place);
        formatted.append(&literal);
        if place == bytes.len() {
            break;
        }
        if bytes.get(place + 1) != Some(&b'}') {
            return failed("llama.cpp formats nothing but '{}'");
        }
        formatted.append(&*args.at(number + 1)?.as_text(run)?);
        copied = place + 2;
    }
    Ok(Value::string(formatted))
}

/// `int(text, default, base)`
fn int(_: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    let base = args.named_or("base", 2, Value::int(10)).as_int()? as i32;
    if !matches!(base, 0 | 2..=36) {
        return failed("a base must be 0 or between 2 and 36");
    }
    let text = args.text(0)?;
    if let Some(value) = numbers::parse_int(text.as_bytes(), base.unsigned_abs()) {
        return Ok(Value::Int(value.into(), text.main_origin()));
    }
    let instead = args.named_or("default", 1, Value::int(0));
    Ok(Value::Int(instead.as_int()?, instead.number_origin()))
}

/// `float(text, default)`
fn float(_: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    let text = args.text(0)?;
    if let Some(value) = numbers::parse_float(text.as_bytes()) {
        return Ok(Value::Float(value, text.main_origin()));
    }
    let instead = args.named_or("default", 1, Value::int(0));
    Ok(Value::Float(instead.as_float()?, instead.number_origin()))
}

/// `slice(text, start, stop, step)`
fn slice(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    let text = args.text(0)?;
    let places = places(args, text.len())?;
    run.budget.steps(places.clone().count())?;
    let mut sliced = Text::default();
    for place in places {
        sliced.extend_with_range(text, place..place + 1);
    }
    Ok(Value::string(sliced))
}

/// `indent(text, width, first, blank)`
fn indent(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    args.check_len(1, 4)?;
    let text = args.text(0)?;
    let indents_first = args.named("first", 2).as_bool()?;
    let indents_blank = args.named("blank", 3).as_bool()?;
    let width = match args.named("width", 1) {
        Value::Int(width, _) => {
            let Ok(width) = usize::try_from(width) else {
                return failed("cannot indent by a negative number");
            };
            run.budget.bytes(width)?;
            Text::new(vec![b' '; width], Origin::TEMPLATE)
        }
        Value::String(width) => width.text.clone(),
        _ => Text::from("    "),
    };

    let mut indented = Text::default();
    let bytes = text.as_bytes();
    let mut start = 0;
    // Nothing is a line too after a line feed.
    while start < bytes.len() || (start == bytes.len() && bytes.ends_with(b"\n")) {
        let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |len| start + len);
        // As long as nothing was written, it is the first line that comes next: empty lines at the start are dropped.
        let is_first = indented.is_empty() && start < bytes.len();
        if !is_first {
            indented.extend_with_range(text, start - 1..start);
        }
        if if is_first { indents_first } else { end > start || indents_blank } {
            run.budget.bytes(width.num_bytes() + 8)?;
            indented.extend_with(&width);
        }
        indented.extend_with_range(text, start..end);
        start = end + 1;
    }
    Ok(Value::string(indented))
}

#[cfg(test)]
mod tests {
    use crate::language::tests::render_marked;

    #[test]
    fn bytes_keep_their_origins() {
        let cases = [
            ("{{ (x ~ '-' ~ x).split('-')|join('+') }}", "ab", "<ab>+<ab>"),
            ("{{ ('a' ~ x ~ 'b').upper() }}", "cd", "A<CD>B"),
            ("{{ (' ' ~ x)|trim }}", " c ", "<c>"),
            ("{{ x.replace('b', '-') }}", "abc", "<a>-<c>"),
            ("{{ 'abc'.replace('b', x) }}", "-", "a<->c"),
            ("{{ ('ab' ~ x)[::-1] }}", "cd", "<dc>ba"),
            ("{{ 'a{}b'.format(x) }}", "{}", "a<{}>b"),
            ("{{ x|indent(2) }}", "a\nb", "<a\n>  <b>"),
            ("{{ x|int + 1 }}", "41", "<42>"),
            ("{{ x|float * 2 }}", "0.25", "<0.5>"),
            ("{{ x|int }}", "none", "0"),
        ];
        for (template, x, expected) in cases {
            assert_eq!(render_marked(template, x), expected, "{template}");
        }
    }
}
