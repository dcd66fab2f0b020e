//! What the tests of the language share.

use super::{Changed, Template, Value};
use crate::text::Text;
use crate::{Budget, Error, Now, Origin};

/// What a template writes, `x` being a value.
pub(crate) fn render(template: &str, x: Value) -> Result<Text, Error> {
    let template = Template::new(template.as_bytes())?;
    let now = Now { seconds: 1709251199, ..Now::default() };
    template.run(vec![("x", x)], &now, &mut Changed::default(), &mut Budget::new(0))
}

/// What a template writes, caller's bytes in angle brackets.
pub(crate) fn render_marked(template: &str, x: &str) -> String {
    let text = render(template, Value::string(Text::new(x, Origin::caller(1)))).unwrap();
    let mut marked = String::new();
    for (run, origin) in text.runs() {
        let run = String::from_utf8_lossy(&text.as_bytes()[run]);
        marked += &if origin.is_caller() { format!("<{run}>") } else { run.into_owned() };
    }
    marked.replace("><", "")
}
