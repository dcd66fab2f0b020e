//! The regular expressions in a schema from which a grammar is made: wrong ones are refused.
//!
//! Strings that a model writes without quotes, as in `<parameter=x>`, are not made from their schemas, so that their
//! patterns do not count.
//!
//! Source: `visit`, `_visit_all_of` and `_resolve_ref` in `common/json-schema-to-grammar.cpp`, and `may_be_string` in
//! `common/json-schema.cpp`, of llama.cpp. Deviations: 1. No grammar is made. 2. As in [`schema`](super::schema), 1.
//! 3. `allOf` with both values and properties: the patterns of the properties count even where the original takes the
//! values alone. Time: O(nodes × references). Space: O(depth).

use super::pattern;
use super::{Conversion, DEEPEST, NODE, Node, Outcome, Refs, Refusal, too_deep};
use crate::budget::Budget;

/// A walk over what a grammar is made from.
pub(super) struct Patterns<'a> {
    refs: &'a Refs,
    /// References that were followed.
    seen: Vec<&'a [u8]>,
    depth: usize,
    budget: &'a mut Budget,
}

impl<'a> Patterns<'a> {
    pub(super) fn new(refs: &'a Refs, budget: &'a mut Budget) -> Self {
        Self { refs, seen: Vec::new(), depth: 0, budget }
    }

    /// # Errors
    /// A pattern is wrong, or there is too much.
    pub(super) fn check(&mut self, root: &'a Node, conversion: Conversion) -> Outcome<()> {
        match (conversion, root) {
            (Conversion::Whole, _) => self.visit(root),
            (Conversion::Parameters | Conversion::StrictParameters, Node::Object(parameters, _)) => {
                for parameter in parameters {
                    if !self.may_be_string(parameter, conversion == Conversion::StrictParameters)? {
                        self.visit(parameter)?;
                    }
                }
                Ok(())
            }
            (Conversion::Values, Node::Object(parameters, _)) => {
                parameters.iter().try_for_each(|parameter| self.visit_value(parameter))
            }
            _ => Ok(()),
        }
    }

    /// A value that is written as elements, down to what is written as JSON.
    fn visit_value(&mut self, node: &'a Node) -> Outcome<()> {
        self.enter()?;
        if !self.may_be_string(node, false)? {
            match node {
                Node::AnyOf(nodes) => nodes.iter().try_for_each(|node| self.visit_value(node))?,
                Node::Object(properties, _) if !properties.is_empty() => {
                    properties.iter().try_for_each(|node| self.visit_value(node))?;
                }
                Node::Array(item) => self.visit_value(item)?,
                _ => self.visit(node)?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn enter(&mut self) -> Outcome<()> {
        self.budget.steps(NODE + self.seen.len())?;
        self.depth += 1;
        if self.depth > 2 * DEEPEST {
            return Err(too_deep());
        }
        Ok(())
    }

    fn visit(&mut self, node: &'a Node) -> Outcome<()> {
        self.enter()?;
        match node {
            Node::Other | Node::Any | Node::Values(_) | Node::String(None) => {}
            Node::String(Some(pattern)) => {
                if let Some(fault) = pattern::fault(pattern) {
                    let pattern = String::from_utf8_lossy(pattern);
                    return Err(Refusal::Schema(format!("the pattern '{pattern}' is wrong: {fault}")));
                }
            }
            Node::Array(item) => self.visit(item)?,
            Node::Tuple(nodes) | Node::AnyOf(nodes) => nodes.iter().try_for_each(|node| self.visit(node))?,
            Node::Object(properties, others) => {
                properties.iter().chain(others.as_deref()).try_for_each(|node| self.visit(node))?;
            }
            Node::AllOf(nodes) => {
                for node in nodes {
                    match node {
                        Node::AnyOf(nodes) => nodes.iter().try_for_each(|node| self.visit_component(node))?,
                        node => self.visit_component(node)?,
                    }
                }
            }
            Node::Ref(reference) => {
                if !self.seen.contains(&reference.as_slice()) {
                    self.seen.push(reference);
                    self.refs.get(reference).map_or(Ok(()), |target| self.visit(target))?;
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// One of `allOf`: only properties count.
    fn visit_component(&mut self, node: &'a Node) -> Outcome<()> {
        self.enter()?;
        match node {
            Node::Ref(reference) => {
                self.refs.get(reference).map_or(Ok(()), |target| self.visit_component(target))?;
            }
            Node::Object(properties, _) => properties.iter().try_for_each(|node| self.visit(node))?,
            _ => {}
        }
        self.depth -= 1;
        Ok(())
    }

    /// Whether a string fits. What may be `any`thing counts as a string, or does not.
    fn may_be_string(&mut self, node: &'a Node, any: bool) -> Outcome<bool> {
        self.enter()?;
        let may = match node {
            Node::String(_) => true,
            Node::Any => any,
            Node::Values(has_string) => *has_string,
            Node::Ref(reference) if !self.seen.contains(&reference.as_slice()) => {
                self.seen.push(reference);
                let may = self.refs.get(reference).map_or(Ok(false), |target| self.may_be_string(target, any))?;
                self.seen.pop();
                may
            }
            Node::AnyOf(nodes) => {
                let mut may = false;
                for node in nodes {
                    may = may || self.may_be_string(node, any)?;
                }
                may
            }
            Node::AllOf(nodes) => {
                let mut constrained = nodes.iter().filter(|node| any || !matches!(node, Node::Any)).peekable();
                let mut may = constrained.peek().is_some();
                for node in constrained {
                    may = may && self.may_be_string(node, any)?;
                }
                may
            }
            _ => false,
        };
        self.depth -= 1;
        Ok(may)
    }
}
