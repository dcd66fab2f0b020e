#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ggtok_fuzz::run("chat", data));
