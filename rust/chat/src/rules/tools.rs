//! The tools of a request, as templates get them.
//!
//! Source: `common_chat_tools_parse_oaicompat` and `common_chat_tools_to_json_oaicompat` in `common/chat.cpp` of
//! llama.cpp. Deviations: 1. Errors name the field.

use super::content;
use crate::error::Error;
use crate::json::{Json, Object};

/// Reads the tools. Each has a type and a function with a name, a description and parameters; all else is dropped.
/// `None` if there are none.
pub(crate) fn read(tools: Option<&Json>) -> Result<Option<Vec<Json>>, Error> {
    let tools = match tools {
        None | Some(Json::Null) => return Ok(None),
        Some(Json::Array(tools)) => tools,
        Some(other) => return Err(Error::request("tools", format!("expected an array, got {}", other.kind()))),
    };
    let tools = tools.iter().enumerate().map(|(at, tool)| read_tool(tool, &format!("tools[{at}]")));
    Ok(Some(tools.collect::<Result<Vec<_>, _>>()?).filter(|tools| !tools.is_empty()))
}

fn read_tool(tool: &Json, field: &str) -> Result<Json, Error> {
    content::check_function(tool, "a tool", field)?;
    let Some(function) = tool.get("function") else {
        return Err(Error::request(field, "a tool must have a function"));
    };
    let string = |name: &str| {
        let string = |value| content::string(value, || format!("{field}.function.{name}")).cloned();
        function.get(name).map(string).transpose()
    };
    let Some(name) = string("name")? else {
        return Err(Error::request(format!("{field}.function"), "a function must be an object with a name"));
    };
    let description = string("description")?.unwrap_or_default();
    let parameters = function.get("parameters").cloned().unwrap_or_else(|| Object::default().into());
    let function = [("name", name.into()), ("description", description.into()), ("parameters", parameters)];
    let function = Object::with(None, function).into();
    Ok(Object::with(None, [("type", "function".into()), ("function", function)]).into())
}
