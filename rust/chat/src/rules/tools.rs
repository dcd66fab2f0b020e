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
    let Some(tools) = tools.filter(|tools| !tools.is_null()) else { return Ok(None) };
    let tools = Json::each(tools.items("tools")?, "tools", |_, tool| read_tool(tool))?;
    Ok(Some(tools).filter(|tools| !tools.is_empty()))
}

fn read_tool(tool: &Json) -> Result<Json, Error> {
    content::check_function(tool, "a tool")?;
    let function = tool.get("function").ok_or_else(|| Error::request("", "a tool must have a function"))?;
    let no_name = || Error::request("function", "a function must be an object with a name");
    let name = tool.string("function.name")?.ok_or_else(no_name)?.clone();
    let description = tool.string("function.description")?.cloned().unwrap_or_default();
    let parameters = function.get("parameters").cloned().unwrap_or_else(|| Object::default().into());
    let function = [("name", name.into()), ("description", description.into()), ("parameters", parameters)];
    let function = Object::with(None, function).into();
    Ok(Object::with(None, [("type", "function".into()), ("function", function)]).into())
}
