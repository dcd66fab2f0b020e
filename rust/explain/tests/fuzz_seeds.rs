//! The fuzz targets of `rust/fuzz` on any compiler: with their seeds, and with bytes that are always the same noise.

use std::fs;
use std::path::PathBuf;

#[allow(dead_code)]
#[path = "../../fuzz/src/lib.rs"]
mod fuzz;

/// Inputs of noise per target.
const ROUNDS: u64 = 40;

/// The noise of a number: Vigna's splitmix64.
fn noise(mut state: u64, len: usize) -> Vec<u8> {
    let mut words = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (word ^ (word >> 31)).to_le_bytes()
    });
    words.by_ref().take(len.div_ceil(8)).flatten().take(len).collect()
}

/// Runs a target, and says with which input it failed.
fn run(name: &str, input: &str, data: &[u8]) {
    if let Err(error) = std::panic::catch_unwind(|| fuzz::run(name, data)) {
        eprintln!("the fuzz target {name} failed with {input}");
        std::panic::resume_unwind(error);
    }
}

#[test]
fn seeds() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    for (name, _) in fuzz::TARGETS {
        let Ok(files) = fs::read_dir(folder.join(name)) else { continue };
        for file in files {
            let path = file.expect("a seed").path();
            run(name, &path.display().to_string(), &fs::read(&path).expect("a seed"));
        }
    }
}

#[test]
fn noise_of_many_lengths() {
    for (name, _) in fuzz::TARGETS {
        for number in 0..ROUNDS {
            run(name, &format!("noise({number}, ..)"), &noise(number, 50 * (1 + number as usize % 40)));
        }
    }
}
