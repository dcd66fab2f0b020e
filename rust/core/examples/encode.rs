//! Prints the ids of a text: `cargo run --example encode -- model.gguf "What is LoRA?"`.

use std::error::Error;
use std::fs::File;

use ggtok_core::{EncodeOptions, gguf};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(text)) = (arguments.next(), arguments.next()) else {
        return Err("expected a GGUF file and a text".into());
    };
    let header = gguf::read_header(File::open(path)?)?;
    let ids = gguf::open(&header)?.encode(&*text, EncodeOptions::default())?;
    println!("{ids:?}");
    Ok(())
}
