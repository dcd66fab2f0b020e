//! llama-server's rules: how a request becomes a prompt.
//!
//! Read in this order: [`chat`], which says what happens when; `request`, `message`, `tools` and `content`, which read
//! what a caller passes; `repairs` and `caps`, which fit it to the template; `params` and `render`; and then `handlers`
//! and `thinking`, which know about single templates.

mod caps;
mod chat;
mod content;
mod handlers;
mod message;
mod params;
mod render;
mod repairs;
mod request;
mod thinking;
mod tools;
mod warnings;

pub use chat::{CHATML, ChatTemplate, Rendered};
pub use message::MediaPlace;
pub use params::Options;
pub use request::Request;
pub use warnings::Warning;
