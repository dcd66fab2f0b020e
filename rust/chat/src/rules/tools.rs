//! The tools of a request, as templates get them.
//!
//! Source: `common_chat_tools_parse_oaicompat` and `common_chat_tools_to_json_oaicompat` in `common/chat.cpp` of
//! llama.cpp. Deviations: 1. Errors name the field.

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
    match tool.get("type") {
        Some(Json::String(kind)) if *kind == "function" => {}
        Some(_) => return Err(Error::request(format!("{field}.type"), "a tool must be of the type 'function'")),
        None => return Err(Error::request(field, "a tool must be an object with a type")),
    }
    let Some(function) = tool.get("function") else {
        return Err(Error::request(field, "a tool must have a function"));
    };
    let field = format!("{field}.function");
    let name = match function.get("name") {
        Some(Json::String(name)) => name.clone(),
        Some(other) => return Err(not_text(&field, "name", other)),
        None => return Err(Error::request(field, "a function must be an object with a name")),
    };
    let description = match function.get("description") {
        None => Json::from(""),
        Some(Json::String(text)) => text.clone().into(),
        Some(other) => return Err(not_text(&field, "description", other)),
    };
    let parameters = function.get("parameters").cloned().unwrap_or_else(|| Object::default().into());
    let function: Object =
        [("name", Json::from(name)), ("description", description), ("parameters", parameters)].into_iter().collect();
    let tool: Object = [("type", Json::from("function")), ("function", function.into())].into_iter().collect();
    Ok(tool.into())
}

fn not_text(field: &str, name: &str, value: &Json) -> Error {
    Error::request(format!("{field}.{name}"), format!("expected a string, got {}", value.kind()))
}
