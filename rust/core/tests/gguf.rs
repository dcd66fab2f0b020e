//! The reader of GGUF files: sound files of both byte orders, damaged ones and what is refused about each.

use std::fmt::Debug;
use std::panic::{RefUnwindSafe, UnwindSafe};

use ggtok_core::gguf::{Array, GgufError, Layout, LoadError, Metadata, Override, Problem, Type, Value};
use ggtok_core::vocab::Kind;
use ggtok_core::{Tokenizer, VocabularyError};
use proptest::prelude::*;

#[allow(dead_code)]
mod common;

use common::{EMBEDDED, embedded_bytes};

/// Writes numbers in one byte order.
#[derive(Debug, Clone, Copy)]
struct Order {
    is_big: bool,
}

const LITTLE: Order = Order { is_big: false };
const BIG: Order = Order { is_big: true };

impl Order {
    fn number<const N: usize>(self, mut bytes: [u8; N]) -> Vec<u8> {
        if self.is_big {
            bytes.reverse();
        }
        bytes.to_vec()
    }

    fn long(self, number: u64) -> Vec<u8> {
        self.number(number.to_le_bytes())
    }

    fn word(self, number: u32) -> Vec<u8> {
        self.number(number.to_le_bytes())
    }

    fn string(self, text: &[u8]) -> Vec<u8> {
        [self.long(text.len() as u64), text.to_vec()].concat()
    }

    fn pair(self, key: &str, kind: u32, value: impl AsRef<[u8]>) -> Vec<u8> {
        [&self.string(key.as_bytes()), &self.word(kind), value.as_ref()].concat()
    }

    fn array(self, kind: u32, count: u64, elements: impl AsRef<[u8]>) -> Vec<u8> {
        [&self.word(kind), &self.long(count), elements.as_ref()].concat()
    }

    fn strings(self, texts: &[&str]) -> Vec<u8> {
        let elements: Vec<u8> = texts.iter().flat_map(|text| self.string(text.as_bytes())).collect();
        self.array(STRING, texts.len() as u64, elements)
    }

    fn file(self, version: u32, pairs: &[Vec<u8>]) -> Vec<u8> {
        let head = [b"GGUF".to_vec(), self.word(version), self.long(0), self.long(pairs.len() as u64)].concat();
        [head, pairs.concat()].concat()
    }

    /// A small SPM vocabulary with one key of each type.
    fn spm(self) -> Vec<u8> {
        let scores: Vec<u8> =
            [0.0, 0.0, 0.0, -1.0, -2.0, -0.5].map(|score: f32| self.number(score.to_le_bytes())).concat();
        let types: Vec<u8> = [2, 3, 3, 1, 1, 1].map(|kind| self.word(kind)).concat();
        self.file(
            3,
            &[
                self.pair("general.architecture", STRING, self.string(b"llama")),
                self.pair("general.alignment", UINT32, self.word(32)),
                self.pair("tokenizer.ggml.model", STRING, self.string(b"llama\0junk")),
                self.pair("tokenizer.ggml.tokens", ARRAY, self.strings(&["<unk>", "<s>", "</s>", "▁", "a", "▁a"])),
                self.pair("tokenizer.ggml.scores", ARRAY, self.array(FLOAT32, 6, scores)),
                self.pair("tokenizer.ggml.token_type", ARRAY, self.array(INT32, 6, types)),
                self.pair("tokenizer.ggml.bos_token_id", UINT32, self.word(2)),
                self.pair("tokenizer.ggml.add_eos_token", 7, [1]),
                self.pair("nested", ARRAY, self.array(ARRAY, 2, [self.strings(&["x"]), self.strings(&[])].concat())),
                self.pair("u8", 0, [250]),
                self.pair("i8", 1, [0xFD]),
                self.pair("u16", 2, self.number(65000u16.to_le_bytes())),
                self.pair("i16", 3, self.number((-300i16).to_le_bytes())),
                self.pair("i32", 5, self.number((-70_000i32).to_le_bytes())),
                self.pair("f32", 6, self.number(0.15625f32.to_le_bytes())),
                self.pair("u64", 10, self.long((1 << 63) + 1)),
                self.pair("i64", 11, self.number((-(1i64 << 62)).to_le_bytes())),
                self.pair("f64", 12, self.number(1e300f64.to_le_bytes())),
            ],
        )
    }
}

const UINT32: u32 = 4;
const INT32: u32 = 5;
const FLOAT32: u32 = 6;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

#[test]
fn both_byte_orders_give_the_same_tokenizer_and_values() -> Result<(), Box<dyn std::error::Error>> {
    for order in [LITTLE, BIG] {
        let file = order.spm();
        let metadata = Metadata::read(&file)?;
        assert_eq!((metadata.layout().size(), metadata.entries().count()), (file.len(), 18));
        for (key, value) in [
            ("general.architecture", Value::String(b"llama")),
            ("tokenizer.ggml.add_eos_token", Value::Bool(true)),
            ("u8", Value::Uint8(250)),
            ("i8", Value::Int8(-3)),
            ("u16", Value::Uint16(65000)),
            ("i16", Value::Int16(-300)),
            ("general.alignment", Value::Uint32(32)),
            ("i32", Value::Int32(-70_000)),
            ("f32", Value::Float32(0.15625)),
            ("u64", Value::Uint64((1 << 63) + 1)),
            ("i64", Value::Int64(-(1 << 62))),
            ("f64", Value::Float64(1e300)),
        ] {
            assert_eq!(metadata.get(key), Some(value), "{key}");
        }
        let Some(Value::Array(nested)) = metadata.get("nested") else { panic!("no array") };
        assert_eq!((nested.kind(), nested.len(), nested.strings().is_none()), (Type::Array, 2, true));

        let tokenizer = metadata.tokenizer()?;
        assert_eq!(tokenizer.encode("a a")?, [2, 5, 5, 2]);
        assert_eq!((tokenizer.vocabulary().kind(), tokenizer.vocabulary().score(5)), (Kind::Spm, -0.5));
    }
    Ok(())
}

#[test]
fn public_types_are_send_sync_and_unwind_safe() {
    const fn assert<T: Send + Sync + UnwindSafe + RefUnwindSafe + Unpin + Debug>() {}
    assert::<Array<'_>>();
    assert::<GgufError>();
    assert::<Layout>();
    assert::<Metadata<&[u8]>>();
    assert::<LoadError>();
    assert::<Override>();
    assert::<Problem>();
    assert::<Type>();
    assert::<Value<'_>>();
}

#[test]
fn version_2_is_read_too() {
    for (order, version) in [(LITTLE, 2), (BIG, 2), (LITTLE, 3), (BIG, 3)] {
        let file = order.file(version, &[order.pair("b", 3, order.number((-2i16).to_le_bytes()))]);
        assert_eq!(Metadata::read(&file).map(|metadata| metadata.get("b") == Some(Value::Int16(-2))), Ok(true));
    }
}

#[test]
fn values_can_be_replaced() -> Result<(), Box<dyn std::error::Error>> {
    let file = LITTLE.spm();
    let mut metadata = Metadata::read(&file)?;
    metadata.set("tokenizer.ggml.bos_token_id", Override::Int(1));
    metadata.set("tokenizer.ggml.add_eos_token", Override::Bool(false));
    assert_eq!(metadata.tokenizer()?.encode("a")?, [1, 5]);
    // As in llama.cpp, one of another type is ignored, and the file has 2.
    metadata.set("tokenizer.ggml.bos_token_id", Override::Float(1.0));
    assert_eq!(metadata.tokenizer()?.encode("a")?, [2, 5]);
    metadata.set("tokenizer.ggml.bos_token_id", Override::Int((1 << 32) + 1));
    assert_eq!(metadata.tokenizer()?.encode("a")?, [1, 5]);
    metadata.set("tokenizer.ggml.model", Override::String(b"llama\xff"[..].into()));
    let error = metadata.tokenizer().unwrap_err();
    assert!(
        matches!(&error, LoadError::Vocabulary(VocabularyError::UnknownModel { name, .. }) if name == r"llama\xff")
    );
    metadata.set("tokenizer.ggml.model", Override::String(b"none"[..].into()));
    assert_eq!(metadata.tokenizer()?.vocabulary().kind(), Kind::None);
    Ok(())
}

#[test]
fn a_file_without_a_tokenizer_says_so() {
    let error = Tokenizer::from_bytes(&LITTLE.file(3, &[])).unwrap_err();
    let expected = "the file names no tokenizer (key \"tokenizer.ggml.model\"): expected a key of this name";
    assert_eq!(error.to_string(), expected);
    let tokens = LITTLE.pair("tokenizer.ggml.tokens", ARRAY, LITTLE.array(INT32, 0, []));
    let file = LITTLE.file(3, &[LITTLE.pair("tokenizer.ggml.model", STRING, LITTLE.string(b"llama")), tokens]);
    let error = Tokenizer::from_bytes(&file).unwrap_err();
    let expected = "the value has a wrong type (key \"tokenizer.ggml.tokens\", byte 102): expected array of string, \
                    found array of int32";
    assert_eq!(error.to_string(), expected);
}

/// One damaged file: its bytes, and the key, offset, expected and found of the error.
type Damaged = (Vec<u8>, Option<&'static str>, usize, &'static str, &'static str);

const HUGE: u64 = 1 << 62;

fn damaged() -> Vec<Damaged> {
    let file = |pairs: &[u8]| [LITTLE.file(3, &[vec![]]), pairs.to_vec()].concat();
    let key = LITTLE.string(b"k");
    let after_key = |rest: &[Vec<u8>]| file(&[key.clone(), rest.concat()].concat());
    let array = |kind, count, elements: &[u8]| after_key(&[LITTLE.word(ARRAY), LITTLE.array(kind, count, elements)]);
    let with_count = |count: i64, num_tensors: i64| {
        [b"GGUF\x03\0\0\0".to_vec(), LITTLE.long(num_tensors as u64), LITTLE.long(count as u64)].concat()
    };
    let alignment = |kind, value: Vec<u8>| LITTLE.file(3, &[LITTLE.pair("general.alignment", kind, value)]);
    let twice = LITTLE.file(3, &[LITTLE.pair("k", 0, [1]), LITTLE.pair("k", 0, [2])]);
    let nested = [LITTLE.word(ARRAY), LITTLE.long(1)].concat().repeat(10_000);
    let too_long = "at most 1073741824 bytes";
    vec![
        (vec![], None, 0, "4 bytes", "0 bytes"),
        (b"GGML\x03\0\0\0".to_vec(), None, 0, "b'GGUF'", "b'GGML'"),
        (LITTLE.file(0, &[]), None, 4, "2 or 3", "0"),
        (LITTLE.file(1, &[]), None, 4, "2 or 3", "1"),
        (BIG.file(4, &[]), None, 4, "2 or 3", "4"),
        (with_count(0, -1), None, 8, "0 or more", "-1"),
        (with_count(-1, 0), None, 16, "18446744073709551615 keys", "0 bytes"),
        (file(&[LITTLE.long(HUGE), vec![0; 9]].concat()), None, 24, too_long, "4611686018427387904"),
        (file(&[LITTLE.long(99), vec![0; 9]].concat()), None, 32, "99 bytes", "9 bytes"),
        (file(&[LITTLE.pair("", 0, [1]), vec![0]].concat()), Some(""), 24, "at least 1 byte", "0 bytes"),
        (after_key(&[LITTLE.word(13), vec![1]]), Some("k"), 33, "0 to 12", "13"),
        (after_key(&[LITTLE.word(u32::MAX), vec![1]]), Some("k"), 33, "0 to 12", "-1"),
        (after_key(&[LITTLE.word(STRING), LITTLE.long(HUGE)]), Some("k"), 37, too_long, "4611686018427387904"),
        (array(99, 0, &[]), Some("k"), 37, "0 to 12", "99"),
        (array(0, (1 << 30) + 1, &[]), Some("k"), 41, "at most 1073741824 elements", "1073741825"),
        (array(10, 1 << 30, &[]), Some("k"), 49, "8589934592 bytes", "0 bytes"),
        (array(STRING, 3, &LITTLE.string(b"abcd").repeat(2)), Some("k"), 73, "8 bytes", "0 bytes"),
        (array(STRING, 1, &LITTLE.long(HUGE)), Some("k"), 49, too_long, "4611686018427387904"),
        (twice, Some("k"), 38, "each key once", "the first value at byte 37"),
        (alignment(10, LITTLE.long(32)), Some("general.alignment"), 53, "uint32", "uint64"),
        (alignment(UINT32, LITTLE.word(48)), Some("general.alignment"), 53, "a power of two", "48"),
        (after_key(&[LITTLE.word(ARRAY), nested]), Some("k"), 421, "at most 32 levels", "more"),
    ]
}

#[test]
fn damaged_files_are_refused() {
    for (number, (file, key, offset, expected, found)) in damaged().into_iter().enumerate() {
        let error: GgufError = Metadata::read(&file).expect_err(&number.to_string());
        let (wanted, got) = (error.expected(), error.found());
        let said = (error.key.as_deref(), error.offset, &*wanted, got.as_deref());
        assert_eq!(said, (key, Some(offset), expected, Some(found)), "file {number}");
    }
}

#[test]
fn a_file_to_be_mended_may_have_flawed_keys() {
    let file = |key: &[u8]| {
        let entries = [(&b""[..], 1), (key, 2), (key, 3)];
        let entries = entries.map(|(key, value)| [LITTLE.string(key), LITTLE.word(4), LITTLE.word(value)].concat());
        [&b"GGUF"[..], &LITTLE.word(3), &LITTLE.long(0), &LITTLE.long(3), &entries.concat()].concat()
    };
    let data = file(b"k");
    assert_eq!(Metadata::read(&data).unwrap_err().problem, Problem::EmptyKey);
    let metadata = Layout::find_flawed(&data, data.len()).unwrap().over(&data);
    assert_eq!((metadata.get(""), metadata.get("k")), (Some(Value::Uint32(1)), Some(Value::Uint32(3))));
    assert!(Layout::find_flawed(&data[..data.len() - 1], data.len()).is_err());
}

#[test]
fn a_file_cut_anywhere_says_where() {
    for order in [LITTLE, BIG] {
        let file = order.spm();
        for len in 0..file.len() {
            let error = Metadata::read(&file[..len]).expect_err("a cut file");
            assert!(error.offset.is_some_and(|offset| offset <= len) && error.found().is_some(), "{len}: {error}");
        }
    }
}

/// Opens a file, and uses what can be opened: nothing may panic.
fn open_and_use(file: &[u8]) -> Result<(), LoadError> {
    let tokenizer = Tokenizer::from_bytes(file)?;
    let mut ids = tokenizer.encode("What is LoRA? a a\n\u{FFFD}").unwrap_or_default();
    ids.retain(|&id| tokenizer.check_id(id).is_ok());
    assert!(tokenizer.decode_bytes(&ids).is_ok());
    Ok(())
}

proptest! {
    #[test]
    fn a_damaged_file_is_read_or_refused(
        is_big: bool,
        damage in prop::collection::vec((0..3, any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..9)), 1..4),
    ) {
        let mut file = Order { is_big }.spm();
        for (how, at, new) in damage {
            let start = at.index(file.len() + 1);
            let end = file.len().min(start + new.len());
            match how {
                0 => file.truncate(start),
                1 => drop(file.splice(start..start, new)),
                _ => drop(file.splice(start..end, new)),
            }
        }
        let _ = open_and_use(&file);
    }
}

proptest! {
    // Each case opens a whole vocabulary.
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
    #[test]
    fn an_embedded_file_with_a_changed_byte_is_read_or_refused(
        name in prop::sample::select(EMBEDDED.to_vec()), at: prop::sample::Index, byte: u8,
    ) {
        let mut file = embedded_bytes(name);
        let at = at.index(2000);
        file[at] = byte;
        let _ = open_and_use(&file);
    }
}

#[test]
fn the_error_of_a_file_names_it() {
    let folder = std::env::temp_dir().join(format!("ggtok-core-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let bytes = common::embedded_bytes("bpe");
    let contents: [(&str, &[u8], &str); 3] = [
        ("cut", &bytes[..1000], "ends inside"),
        ("other", b"PK\x03\x04", "not a GGUF file"),
        ("empty", b"", "ends inside"),
    ];
    for (name, content, problem) in contents {
        let path = folder.join(name);
        std::fs::write(&path, content).expect("a file");
        let error = Tokenizer::from_file(&path).expect_err(name);
        assert!(
            matches!(&error, LoadError::File(named, inner) if *named == path && matches!(**inner, LoadError::Gguf(_)))
        );
        let message = error.to_string();
        assert!(message.starts_with(&*path.to_string_lossy()) && message.contains(problem), "{message}");
    }
    let path = folder.join("bare");
    std::fs::write(&path, LITTLE.file(3, &[])).expect("a file");
    let error = Tokenizer::from_file(&path).expect_err("no tokenizer").to_string();
    assert!(error.contains("bare") && error.contains("names no tokenizer"), "{error}");
    for missing in [folder.join("missing"), folder.clone()] {
        let error = Tokenizer::from_file(&missing).expect_err("no file");
        assert!(
            matches!(&error, LoadError::File(named, inner) if *named == missing && matches!(**inner, LoadError::Read(..)))
        );
    }
    let whole = folder.join("whole");
    std::fs::write(&whole, &bytes).expect("a file");
    assert!(Tokenizer::from_file(whole).is_ok());
    std::fs::remove_dir_all(folder).expect("a folder");
}
