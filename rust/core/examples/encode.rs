//! Prints the ids of a text: `cargo run --example encode -- model.gguf "What is LoRA?"`.

use std::error::Error;

use ggtok_core::Tokenizer;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(text)) = (arguments.next(), arguments.next()) else {
        return Err("expected a GGUF file and a text".into());
    };
    println!("{:?}", Tokenizer::from_file(path)?.encode(&text)?);
    Ok(())
}
