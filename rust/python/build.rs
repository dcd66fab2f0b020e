//! Docstrings are written once, in the stub `_ggtok.pyi`, which editors read. This hands those of public names to the
//! bindings, for `help()`: it writes a macro `doc!` with one arm per documented item, such as `doc!(Tokenizer.encode)`.
//!
//! The stub is read line by line, as ruff formats it: what starts with `class`, `def` or three quotes is a class, a
//! function or a docstring. If one is missing, the crate does not compile; `tests/test_stubs.py` finds an unused one.

use std::path::Path;
use std::{env, fs};

const STUB: &str = "../../python/ggtok/_ggtok.pyi";
const QUOTES: &str = r#"""""#;

fn main() {
    println!("cargo:rerun-if-changed={STUB}");
    let stub = fs::read_to_string(STUB).unwrap_or_else(|error| panic!("{STUB}: {error}"));
    let arms: String = docstrings(&stub).map(|(item, text)| format!("    ({item}) => {{ {text:?} }};\n")).collect();
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("doc.rs"), format!("#[allow(unused_macro_rules)]\nmacro_rules! doc {{\n{arms}}}\n"))
        .expect("cargo makes OUT_DIR");
}

/// The documented items of a stub, each with its docstring.
fn docstrings(stub: &str) -> impl Iterator<Item = (String, String)> {
    let (mut class, mut item) = ("", None);
    let mut lines = stub.lines().zip(1..);
    std::iter::from_fn(move || {
        while let Some((line, number)) = lines.next() {
            let code = line.trim_start();
            let indent = &line[..line.len() - code.len()];
            if let Some(name) = name_after("class ", code) {
                (class, item) = (name, Some(name.to_owned()));
            } else if let Some(name) = name_after("def ", code) {
                item = Some(if indent.is_empty() { name.to_owned() } else { format!("{class}.{name}") });
            }
            let Some(mut line) = code.trim_start_matches('r').strip_prefix(QUOTES) else { continue };

            let mut text = String::new();
            while !line.ends_with(QUOTES) {
                text += line;
                text += "\n";
                let (next, _) = lines.next().unwrap_or_else(|| panic!("{STUB}:{number}: the docstring has no end"));
                line = next.strip_prefix(indent).unwrap_or(next);
            }
            text += line.trim_end_matches(QUOTES);
            assert!(code.starts_with('r') || !text.contains('\\'), "{STUB}:{number}: a backslash needs r{QUOTES}");
            // The first docstring is that of the module.
            if let Some(item) = item.take() {
                return Some((item, text.trim_end().to_owned()));
            }
        }
        None
    })
}

/// The name that a line of code defines with `keyword`.
fn name_after<'a>(keyword: &str, code: &'a str) -> Option<&'a str> {
    code.strip_prefix(keyword)?.split(['(', ':']).next()
}
