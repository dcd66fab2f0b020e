//! JSON schemas of tools and answers: which of them llama.cpp refuses, because it makes no grammar from them.
//!
//! A schema is walked as llama.cpp does, whatever it is used for; what it does not know is refused. Then
//! [`patterns`](super::patterns) walks what a grammar is made from.
//!
//! Source: `common/json-schema.cpp` of llama.cpp. Deviations: 1. Schemas are bounded in depth, references included, and
//! work is charged: the original ends with a stack overflow.
//!
//! Time and space: O(nodes), where a node counts once for each type of an array of types above it.

mod pattern;
mod patterns;

use std::collections::HashMap;

use crate::budget::Budget;
use crate::error::Error;
use crate::json::{Json, Object};
use crate::text::Text;
use patterns::Patterns;

/// What llama.cpp makes from the schema of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// Nothing.
    None,
    /// A tree only.
    Tree,
    /// A grammar for each parameter that is not a string.
    Parameters,
    /// A grammar for each parameter that cannot be a string.
    StrictParameters,
    /// A grammar for each value in a parameter, however deep, that is written as JSON.
    Values,
    /// One grammar.
    Whole,
}

/// The deepest nesting, references included.
pub(super) const DEEPEST: usize = 256;

/// The steps that a node costs: many keys are looked for in it.
pub(super) const NODE: usize = 32;

/// Checks a schema. `field` is where it stands in the request.
pub(crate) fn check(
    schema: &Json,
    conversion: Conversion,
    field: impl FnOnce() -> String,
    budget: &mut Budget,
) -> Result<(), Error> {
    if conversion == Conversion::None {
        return Ok(());
    }
    let mut reader =
        Reader { root: schema, refs: HashMap::new(), path: "#".to_owned(), depth: 0, has_patterns: false, budget };
    let checked = reader.node(schema).and_then(|root| {
        if !reader.has_patterns {
            return Ok(());
        }
        Patterns::new(&reader.refs, reader.budget).check(&root, conversion)
    });
    checked.map_err(|refusal| match refusal {
        Refusal::Schema(problem) => Error::request(field(), problem),
        Refusal::Limit(error) => error,
    })
}

/// Why a schema is refused.
pub(super) enum Refusal {
    Schema(String),
    Limit(Error),
}

pub(super) fn too_deep() -> Refusal {
    Refusal::Limit(Error::Limit { problem: "a JSON schema is nested too deeply".to_owned() })
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Limit(error)
    }
}

pub(super) type Outcome<T> = Result<T, Refusal>;

/// A schema, as far as its strings and their patterns are concerned.
pub(super) enum Node {
    /// Anything without strings that have a schema.
    Other,
    /// Any value.
    Any,
    /// A string, with its pattern unless that is empty.
    String(Option<Vec<u8>>),
    /// Certain values: whether a string is among them.
    Values(bool),
    /// Values of an array, all of one kind.
    Array(Box<Node>),
    /// Values of an array, each of its own.
    Tuple(Vec<Node>),
    /// Properties of an object, and what others may be.
    Object(Vec<Node>, Option<Box<Node>>),
    AnyOf(Vec<Node>),
    AllOf(Vec<Node>),
    Ref(Vec<u8>),
}

/// What references refer to.
pub(super) type Refs = HashMap<Vec<u8>, Node>;

struct Reader<'a> {
    root: &'a Json,
    /// What references refer to. `Other` while it is being read.
    refs: Refs,
    /// Where the node at hand is.
    path: String,
    depth: usize,
    has_patterns: bool,
    budget: &'a mut Budget,
}

impl<'a> Reader<'a> {
    fn refuse<T>(&self, problem: impl AsRef<str>) -> Outcome<T> {
        Err(Refusal::Schema(format!("{}: {}", self.path, problem.as_ref())))
    }

    fn node(&mut self, schema: &'a Json) -> Outcome<Node> {
        let Some(schema) = schema.as_object() else { return self.refuse("a schema must be an object") };
        self.enter()?;
        let node = self.object_node(schema);
        self.depth -= 1;
        node
    }

    fn enter(&mut self) -> Outcome<()> {
        self.budget.steps(NODE)?;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(too_deep());
        }
        Ok(())
    }

    /// A node below the one at hand.
    fn below(&mut self, step: std::fmt::Arguments<'_>, schema: &'a Json) -> Outcome<Node> {
        let len = self.path.len();
        self.path.push_str(&step.to_string());
        let node = self.node(schema)?;
        self.path.truncate(len);
        Ok(node)
    }

    fn object_node(&mut self, schema: &'a Object) -> Outcome<Node> {
        if let Some(reference) = schema.get("$ref") {
            return self.reference(reference);
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(alternatives) = schema.get(key) {
                return Ok(Node::AnyOf(self.alternatives(alternatives, key)?));
            }
        }
        self.typed(schema, schema.get("type").unwrap_or(&Json::Null))
    }

    /// A node whose type is this, whatever the schema says.
    fn typed(&mut self, schema: &'a Object, of: &'a Json) -> Outcome<Node> {
        if let Json::Array(types) = of {
            if types.is_empty() {
                return self.refuse("'type' must not be empty");
            }
            self.enter()?;
            let nodes = types.iter().map(|each| self.typed(schema, each)).collect::<Outcome<_>>()?;
            self.depth -= 1;
            return Ok(Node::AnyOf(nodes));
        }
        self.budget.steps(NODE)?;
        if let Some(value) = schema.get("const") {
            return Ok(Node::Values(value.as_text().is_some()));
        }
        if let Some(values) = schema.get("enum") {
            return match values.as_array() {
                Some(values) if !values.is_empty() => {
                    Ok(Node::Values(values.iter().any(|value| value.as_text().is_some())))
                }
                _ => self.refuse("'enum' must be an array that is not empty"),
            };
        }
        let name = match of {
            Json::Null => "",
            Json::String(name) => std::str::from_utf8(name.as_bytes()).unwrap_or("?"),
            _ => return self.refuse("'type' must be a string or an array of strings"),
        };

        let has_properties = schema.get("properties").is_some()
            || schema.get("additionalProperties").is_some_and(|others| *others != Json::Bool(true));
        let has = |keys: &[&str]| keys.iter().any(|key| schema.get(key).is_some());
        let all_of = schema.get("allOf");
        match (name, all_of) {
            ("", _) if has_properties => self.object(schema),
            ("", Some(all)) | ("string", Some(all)) => Ok(Node::AllOf(self.alternatives(all, "allOf")?)),
            ("object", Some(all)) if !has_properties => Ok(Node::AllOf(self.alternatives(all, "allOf")?)),
            ("", None) if has(&["items", "prefixItems"]) => self.array(schema),
            ("", None) if has(&["pattern", "minLength", "maxLength"]) || self.has_format(schema)? => {
                self.string(schema)
            }
            ("", None) => Ok(Node::Any),
            ("object", _) => self.object(schema),
            ("string", None) => self.string(schema),
            ("array", _) => self.array(schema),
            ("integer", _) => self.integer(schema),
            ("number" | "boolean" | "null", _) => Ok(Node::Other),
            _ => self.refuse(format!("'{name}' is not a type")),
        }
    }

    fn alternatives(&mut self, schemas: &'a Json, key: &str) -> Outcome<Vec<Node>> {
        match schemas.as_array() {
            None => self.refuse(format!("'{key}' must be an array of schemas")),
            Some([]) => self.refuse(format!("'{key}' must not be empty")),
            Some(schemas) => {
                let numbered = schemas.iter().enumerate();
                numbered.map(|(number, schema)| self.below(format_args!("/{key}/{number}"), schema)).collect()
            }
        }
    }

    fn reference(&mut self, reference: &'a Json) -> Outcome<Node> {
        let Some(reference) = reference.as_text() else { return self.refuse("'$ref' must be a string") };
        let shown = String::from_utf8_lossy(reference.as_bytes());
        let Some(route) = reference.as_bytes().strip_prefix(b"#/") else {
            return self.refuse(format!("'$ref' leads to '{shown}', and only '#/...' is known"));
        };
        if !self.refs.contains_key(reference.as_bytes()) {
            self.refs.insert(reference.as_bytes().to_vec(), Node::Other);
            let Some(target) = follow(self.root, route) else {
                return self.refuse(format!("'$ref' leads to '{shown}', which is not there"));
            };
            let path = std::mem::replace(&mut self.path, shown.into_owned());
            let node = self.node(target)?;
            self.path = path;
            self.refs.insert(reference.as_bytes().to_vec(), node);
        }
        Ok(Node::Ref(reference.as_bytes().to_vec()))
    }

    fn object(&mut self, schema: &'a Object) -> Outcome<Node> {
        let mut nodes = Vec::new();
        if let Some(properties) = schema.get("properties") {
            let Some(properties) = properties.as_object() else { return self.refuse("'properties' must be an object") };
            for (name, property) in properties.iter() {
                let name = String::from_utf8_lossy(name.as_bytes());
                nodes.push(self.below(format_args!("/properties/{name}"), property)?);
            }
        }
        let others = match schema.get("additionalProperties") {
            None | Some(Json::Bool(_)) => None,
            Some(others @ Json::Object(_)) => Some(self.below(format_args!("/additionalProperties"), others)?),
            Some(_) => return self.refuse("'additionalProperties' must be a boolean or a schema"),
        };
        Ok(Node::Object(nodes, others.map(Box::new)))
    }

    fn array(&mut self, schema: &'a Object) -> Outcome<Node> {
        for key in ["items", "prefixItems"] {
            match schema.get(key) {
                None => continue,
                Some(Json::Array(items)) => {
                    let numbered = items.iter().enumerate();
                    let items = numbered.map(|(number, item)| self.below(format_args!("/{key}/{number}"), item));
                    return Ok(Node::Tuple(items.collect::<Outcome<_>>()?));
                }
                Some(item) => {
                    let item = self.below(format_args!("/{key}"), item)?;
                    self.counts(schema, ["minItems", "maxItems"])?;
                    return Ok(Node::Array(Box::new(item)));
                }
            }
        }
        self.counts(schema, ["minItems", "maxItems"])?;
        Ok(Node::Other)
    }

    fn string(&mut self, schema: &'a Object) -> Outcome<Node> {
        let pattern = match schema.get("pattern").map(Json::as_text) {
            None => None,
            Some(Some(pattern)) => Some(pattern.as_bytes().to_vec()).filter(|pattern| !pattern.is_empty()),
            Some(None) => return self.refuse("'pattern' must be a string"),
        };
        self.has_format(schema)?;
        self.counts(schema, ["minLength", "maxLength"])?;
        self.has_patterns |= pattern.is_some();
        Ok(Node::String(pattern))
    }

    fn integer(&mut self, schema: &'a Object) -> Outcome<Node> {
        for [bound, exclusive] in [["minimum", "exclusiveMinimum"], ["maximum", "exclusiveMaximum"]] {
            let value = schema.get(bound).or_else(|| schema.get(exclusive));
            if !matches!(value, None | Some(Json::Int(_) | Json::Unsigned(_) | Json::Float(_))) {
                return self.refuse(format!("'{bound}' and '{exclusive}' must be numbers"));
            }
        }
        Ok(Node::Other)
    }

    /// Whether there is a format that has a grammar.
    fn has_format(&self, schema: &Object) -> Outcome<bool> {
        match schema.get("format").map(Json::as_text) {
            None => Ok(false),
            Some(None) => self.refuse("'format' must be a string"),
            Some(Some(format)) => Ok(match format.as_bytes() {
                b"date" | b"time" | b"date-time" | b"uuid" => true,
                [b'u', b'u', b'i', b'd', version] => (b'1'..=b'5').contains(version),
                _ => false,
            }),
        }
    }

    fn counts(&self, schema: &Object, keys: [&str; 2]) -> Outcome<()> {
        for key in keys {
            // The original looks at the lowest 32 bits.
            let is_count = match schema.get(key) {
                None => true,
                Some(Json::Int(count)) => *count as i32 >= 0,
                Some(Json::Unsigned(count)) => *count as i32 >= 0,
                Some(_) => false,
            };
            if !is_count {
                return self.refuse(format!("'{key}' must be a whole number from 0 on"));
            }
        }
        Ok(())
    }
}

/// What a reference leads to: names of keys and numbers of items.
fn follow<'a>(root: &'a Json, route: &[u8]) -> Option<&'a Json> {
    route.split(|&byte| byte == b'/').try_fold(root, |node, step| match node {
        Json::Object(object) => object.get(std::str::from_utf8(step).ok()?),
        Json::Array(items) => {
            let step = step.trim_ascii_start();
            let digits = step.strip_prefix(b"+").unwrap_or(step);
            let len = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
            items.get(std::str::from_utf8(&digits[..len]).ok()?.parse::<usize>().ok()?)
        }
        _ => None,
    })
}

/// Checks the schemas of all tools.
pub(crate) fn check_tools(tools: &[Json], conversion: Conversion, budget: &mut Budget) -> Result<(), Error> {
    let none = Object::from_iter([
        (Text::from("type"), Json::from("object")),
        (Text::from("properties"), Json::from(Object::default())),
    ]);
    let none = Json::from(none);
    for (number, tool) in tools.iter().enumerate() {
        let parameters = tool.get("function").and_then(|function| function.get("parameters")).unwrap_or(&Json::Null);
        let is_empty = parameters.is_null() || parameters.as_object().is_some_and(Object::is_empty);
        let schema = if is_empty { &none } else { parameters };
        check(schema, conversion, || format!("tools[{number}].function.parameters"), budget)?;
    }
    Ok(())
}

/// Checks the schema of an answer.
pub(crate) fn check_answer(schema: &Json, budget: &mut Budget) -> Result<(), Error> {
    check(schema, Conversion::Whole, || "json_schema".to_owned(), budget)
}

#[cfg(test)]
mod tests {
    use super::{Conversion, check};
    use crate::budget::Budget;
    use crate::error::Error;
    use crate::json::Json;
    use crate::text::Text;

    fn checked(schema: &str, conversion: Conversion) -> Result<(), Error> {
        let schema = Json::parse_text(&Text::template(schema)).unwrap();
        check(&schema, conversion, || "schema".to_owned(), &mut Budget::new(0))
    }

    #[test]
    fn what_has_no_grammar_is_refused() {
        for (schema, problem) in [
            ("5", "#: a schema must be an object"),
            (r#"{"type": "float"}"#, "#: 'float' is not a type"),
            (r#"{"properties": {"a": {"items": {"type": "any"}}}}"#, "#/properties/a/items: 'any' is not a type"),
            (r#"{"properties": []}"#, "#: 'properties' must be an object"),
            (r#"{"type": ["string", 5]}"#, "#: 'type' must be a string or an array of strings"),
            (r#"{"anyOf": []}"#, "#: 'anyOf' must not be empty"),
            (r#"{"type": "string", "minLength": -1}"#, "#: 'minLength' must be a whole number from 0 on"),
            (r#"{"type": "integer", "exclusiveMinimum": true}"#, "#: 'minimum' and 'exclusiveMinimum' must be numbers"),
            (r#"{"$ref": "http://a"}"#, "#: '$ref' leads to 'http://a', and only '#/...' is known"),
            (r##"{"$ref": "#/a/1", "a": [{}]}"##, "#: '$ref' leads to '#/a/1', which is not there"),
            (
                r##"{"items": {"$ref": "#/a/0"}, "a": [{"enum": []}]}"##,
                "#/a/0: 'enum' must be an array that is not empty",
            ),
        ] {
            let refused = Err(Error::request("schema", problem));
            assert_eq!(checked(schema, Conversion::Tree), refused, "{schema}");
            assert_eq!(checked(schema, Conversion::None), Ok(()));
        }
    }

    #[test]
    fn what_is_not_looked_at_is_not_refused() {
        for schema in [
            r##"{"$ref": "#/a", "a": {"properties": {"b": {"$ref": "#/a"}}}}"##,
            r#"{"type": "array", "minLength": "x"}"#,
            r#"{"const": 5, "pattern": 5}"#,
            r#"{"oneOf": [{}], "type": "float"}"#,
            r#"{"type": "string", "format": "email", "maxLength": 4294967296}"#,
            r#"{"type": "integer", "minimum": 0.5}"#,
            r#"{"required": 5, "additionalProperties": true}"#,
        ] {
            assert_eq!(checked(schema, Conversion::Whole), Ok(()), "{schema}");
        }
    }

    #[test]
    fn patterns_count_where_a_grammar_is_made_from_them() {
        let wrong = r#"{"type": "string", "pattern": "^(a$"}"#;
        let text = format!(r#"{{"properties": {{"a": {wrong}}}}}"#);
        let nested = format!(r#"{{"properties": {{"a": {{"items": {wrong}}}}}}}"#);
        let either = format!(r#"{{"properties": {{"a": {{"anyOf": [{{"type": "null"}}, {wrong}]}}}}}}"#);
        let all = format!(r#"{{"allOf": [{wrong}]}}"#);
        let all_properties = format!(r#"{{"allOf": [{{"anyOf": [{{"properties": {{"a": {wrong}}}}}]}}]}}"#);
        let referred = format!(r##"{{"items": {{"$ref": "#/a"}}, "a": {wrong}}}"##);
        for (schema, in_whole, in_parameters) in [
            (&text, false, true),
            (&nested, false, false),
            (&either, false, true),
            (&all, true, true),
            (&all_properties, false, true),
            (&referred, false, true),
        ] {
            assert_eq!(checked(schema, Conversion::Whole).is_ok(), in_whole, "{schema}");
            assert_eq!(checked(schema, Conversion::Parameters).is_ok(), in_parameters, "{schema}");
            assert_eq!(checked(schema, Conversion::Tree), Ok(()));
        }
    }

    #[test]
    fn what_is_written_without_quotes_has_no_pattern() {
        let wrong = r#"{"type": "string", "pattern": "^(a$"}"#;
        let any = format!(r#"{{"properties": {{"a": {{"anyOf": [{{}}, {{"items": {wrong}}}]}}}}}}"#);
        let array = format!(r#"{{"properties": {{"a": {{"items": {wrong}}}}}}}"#);
        let tuple = format!(r#"{{"properties": {{"a": {{"items": [{wrong}]}}}}}}"#);
        for (schema, accepting) in [
            (any, [Conversion::StrictParameters, Conversion::Values].as_slice()),
            (array, &[Conversion::Values]),
            (tuple, &[]),
        ] {
            for conversion in [Conversion::Parameters, Conversion::StrictParameters, Conversion::Values] {
                let is_accepted = checked(&schema, conversion).is_ok();
                assert_eq!(is_accepted, accepting.contains(&conversion), "{schema} {conversion:?}");
            }
        }
    }

    #[test]
    fn deep_and_wide_schemas_end() {
        let mut deep = Json::Object([("type", "string")].into_iter().collect());
        for _ in 0..1000 {
            deep = Json::Object([("items", deep)].into_iter().collect());
        }
        let mut wide = Json::Object([("type", "string")].into_iter().collect());
        for _ in 0..30 {
            let types = Json::Array(vec!["array".into(), "array".into()]);
            wide = Json::Object([("type", types), ("items", wide)].into_iter().collect());
        }
        let chain = (0..1000).map(|at| (format!("{at}"), format!("#/{}", at + 1)));
        let chain = chain.map(|(name, next)| {
            let reference: Json = Json::Object([("$ref", Text::template(next))].into_iter().collect());
            (Text::template(name), reference)
        });
        let mut chain: crate::json::Object = chain.collect();
        chain.set("$ref", "#/0");
        for schema in [deep, wide, chain.into()] {
            let checked = check(&schema, Conversion::Whole, String::new, &mut Budget::new(0));
            assert!(matches!(checked, Err(Error::Limit { .. })));
        }
    }
}
