//! Conversations as llama.cpp reads them: a chat template and a request become a prompt whose bytes know who wrote them.
//!
//! A [`Request`] is the body of `/v1/chat/completions`. [`ChatTemplate::apply`] reads it by llama-server's rules (`rules`),
//! repairs it for the template, and renders it with the template language of llama.cpp (`language`). The resulting
//! [`Text`] is cut into runs, each with its [`Origin`]: the template, or one of the caller's strings. From the origins
//! follow the ids ([`encode`]: control tokens are read only in what the template wrote), the tokens of each message
//! ([`message_spans`]) and what the model itself would write ([`ChatTemplate::masked`]).
//!
//! Work and memory are charged to a [`Budget`] before they are spent, and the date is a value ([`Now`]): the same call
//! gives the same answer on any machine, and no template can hang or fill one.
//!
//! [`Template`] is the language alone, without the rules.

mod budget;
mod clock;
mod encoding;
mod error;
mod json;
mod language;
mod mask;
mod rules;
mod text;

pub use budget::Budget;
pub use clock::Now;
pub use encoding::{encode, encode_stretch, markers, mask_of, message_spans};
pub use error::{Error, Position};
pub use json::{Json, Object};
pub use language::Template;
pub use mask::{ASSISTANT, Mask};
pub use rules::{CHATML, ChatTemplate, MediaPlace, Options, Rendered, Request, Warning};
pub use text::{Origin, Text};

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
