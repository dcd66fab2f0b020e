//! Checks rules and the maps compiled from them. `tests/test_train_unigram.py` compares the named ones with
//! sentencepiece's.

use std::collections::BTreeMap;

use ggtok_core::internals::Charsmap;
use proptest::collection::btree_map;
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

use super::{NormalizationRules, RulesError, normalizer};

fn normalized(map: &[u8], text: &str) -> String {
    let mut out = Vec::new();
    match normalizer(map).unwrap() {
        Some(normalize) => normalize(text, &mut out),
        None => out.extend_from_slice(text.as_bytes()),
    }
    String::from_utf8(out).unwrap()
}

proptest! {
    /// A map replaces exactly what its rules replace.
    #[test]
    fn a_map_is_its_rules(rules in btree_map("[abéあ]{1,5}", "[abéx]{0,2}", 1..40), text in "[abéあ]{0,20}") {
        let rules = NormalizationRules { rules };
        let map = rules.compile().unwrap();
        prop_assert_eq!(rules.apply(&text), normalized(&map, &text));
        let charsmap = Charsmap::new(&map).unwrap();
        for (sequence, replacement) in &rules.rules {
            prop_assert_eq!(charsmap.longest_prefix(sequence.as_bytes()), Some((sequence.len(), replacement.as_bytes())));
        }
        // sentencepiece wants the root's children elsewhere than at its own index.
        prop_assert_ne!(u32::from_le_bytes(map[4..8].try_into().unwrap()) >> 10, 0);
        prop_assert_eq!(map.len() % 1024, (4 + map.len() - 4 - u32::from_le_bytes(map[..4].try_into().unwrap()) as usize) % 1024);
    }

    /// Lines of rules survive a round trip.
    #[test]
    fn rules_are_read(rules in btree_map("[^\0]{1,4}", "[^\0]{0,3}", 0..20)) {
        let hex = |text: &str| text.chars().map(|c| format!("{:X}", u32::from(c))).collect::<Vec<_>>().join(" ");
        let line = |(a, b): (&String, &String)| format!("{}\t{}\t# {}\n", hex(a), hex(b), "comment");
        let tsv: String = rules.iter().map(line).collect();
        prop_assert_eq!(NormalizationRules::from_tsv(&tsv), Ok(NormalizationRules { rules }));
    }

    /// Any text of precomposed characters, and any that decomposes fully, is normalized as Unicode says.
    #[test]
    fn nfkc_normalizes(text in "[À-ỹ가-힣ａ-ｚ①-⑨ａ-ﾟ゙]{0,12}") {
        thread_local! {
            static MAP: Vec<u8> = NormalizationRules::named("nfkc").unwrap().compile().unwrap();
        }
        MAP.with(|map| {
            let decomposed: String = text.nfc().collect::<String>().chars().map(|c| c.nfkd().collect::<String>()).collect();
            assert_eq!(normalized(map, &decomposed).nfkc().collect::<String>(), text.nfkc().collect::<String>());
        });
    }
}

#[test]
fn bad_rules_are_refused() {
    let error = |tsv: &str| NormalizationRules::from_tsv(tsv).unwrap_err().to_string();
    assert_eq!(error("41\t42\n\n4G\t"), "line 3 of the rules: \"4G\" is not a code point in hexadecimal other than 0");
    assert_eq!(error("+41\t42"), "line 1 of the rules: \"+41\" is not a code point in hexadecimal other than 0");
    assert_eq!(error("0\t42"), "line 1 of the rules: \"0\" is not a code point in hexadecimal other than 0");
    assert_eq!(error("41\tD800"), "line 1 of the rules: \"D800\" is not a code point in hexadecimal other than 0");
    assert_eq!(error("\t42"), "line 1 of the rules has no code points before the tab");
    assert_eq!(error("41\t42\n41"), "line 2 of the rules replaces \"A\", and so does an earlier one");
    let long = format!("{}\t", "41 ".repeat(256));
    assert_eq!(error(&long), "line 1 of the rules replaces 256 bytes of UTF-8; at most 255 are possible");
    assert_eq!(NormalizationRules::named("nfd"), Err(RulesError::UnknownName { name: "nfd".to_owned() }));
}

#[test]
fn no_rules_are_no_map() {
    let rules = NormalizationRules::named("identity").unwrap();
    assert_eq!((rules.compile(), rules.apply("Ａ ▁")), (Ok(Vec::new()), "Ａ ▁".to_owned()));
    assert_eq!(NormalizationRules::from_tsv(""), Ok(NormalizationRules { rules: BTreeMap::new() }));
}
