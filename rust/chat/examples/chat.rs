//! Prints a conversation as text and as ids, with the chat template of a GGUF file:
//! `cargo run --example chat -- model.gguf '[{"role": "user", "content": "What is LoRA?"}]'`.

use std::error::Error;
use std::fs::File;

use ggtok_chat::{CHATML, ChatTemplate, Now, Options, Request};
use ggtok_core::TokenId;
use ggtok_core::gguf::{self, Metadata, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(messages)) = (arguments.next(), arguments.next()) else {
        return Err("expected a GGUF file and messages in JSON".into());
    };

    let metadata = Metadata::read(gguf::read_header(File::open(path)?)?)?;
    let source = match metadata.get("tokenizer.chat_template") {
        Some(Value::String(source)) => source,
        _ => CHATML.as_bytes(),
    };
    let tokenizer = metadata.tokenizer()?;
    let vocabulary = tokenizer.vocabulary();
    let text = |id: Option<TokenId>| String::from_utf8_lossy(id.map_or(b"", |id| vocabulary.text(id))).into_owned();
    let (bos, eos) = (text(vocabulary.special().bos), text(vocabulary.special().eos));

    let request = Request::parse(format!(r#"{{"messages": {messages}}}"#).as_bytes())?;
    let options = Options { bos, eos, ..Options::default() };
    let rendered = ChatTemplate::new(source)?.apply(&request, &options, &Now::default())?;
    println!("{}", rendered.text);
    let spans = ggtok_chat::encode(&mut tokenizer.encoder(), &rendered.text, true)?;
    println!("{:?}", spans.ids);
    Ok(())
}
