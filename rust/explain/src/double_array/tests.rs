//! Checks that arrays find exactly their words, in both forms, and that every step keeps BASE and CHECK correct.

use proptest::prelude::*;

use super::*;

/// The words of the note on Unigram (seeds 000 and 001).
#[test]
fn words_by_their_first_byte_and_where_walks_end() {
    let words = ["un", "uni", "unique", "que", "quick"];
    let trace = DoubleArrayTrace::new(&words, &["unique", "unit", "quic", "x"]).expect("a trace");
    let first = |byte, words: &[usize]| FirstByte { byte, words: words.to_vec() };
    assert_eq!(trace.by_first_byte, [first(b'q', &[3, 4]), first(b'u', &[0, 1, 2])]);
    // "unit" fails at "t", which occurs in no word, "quic" at the end mark, "x" at once.
    let last = |lookup: usize| trace.lookups[lookup].steps.last().map(|step| (step.byte, step.code.is_some()));
    assert_eq!([last(1), last(2), last(3)], [Some((Some(b't'), false)), Some((None, true)), Some((Some(b'x'), false))]);
}

#[test]
fn a_conflict_moves_the_fewer_children() {
    // The numbers are 1 for the end mark and 2 to 4 for a, b and c.
    let trace = DoubleArrayTrace::new(&["a", "c", "b"], &["a", "b", "c"]).expect("a trace");
    let cells = |insertion: usize| {
        let cells = trace.insertions[insertion].cells.iter();
        cells.map(|cell| (cell.index, cell.base, cell.check)).collect::<Vec<_>>()
    };
    // BASE of the root is 1, the child for a is cell 3 with BASE 1, and its end mark is cell 2.
    assert_eq!(cells(0), [(1, 1, 0), (2, -1, 3), (3, 1, 1)]);
    // c is cell 5; its end mark goes into cell 4, the first free one: BASE is 3.
    assert_eq!(cells(1), [(1, 1, 0), (2, -1, 3), (3, 1, 1), (4, -2, 5), (5, 3, 1)]);
    // b wants cell 4, which belongs to cell 5. That node has one child and the root has three: the end mark moves.
    let step = &trace.insertions[2].steps[0];
    let moved = Move { byte: None, from: 4, to: 6, base: -2, children: Vec::new() };
    let from_base = 3;
    let to_base = 5;
    let moves = vec![moved];
    let relocation = Relocation { num_own: 3, num_others: 1, node: 5, from_base, to_base, moves };
    assert_eq!((step.outcome, step.cell, step.check, step.child), ("conflict", 4, 5, 4));
    assert_eq!(step.relocation, Some(relocation));
    assert_eq!(trace.lookups.iter().map(|lookup| lookup.value).collect::<Vec<_>>(), [Some(0), Some(2), Some(1)]);
}

#[test]
fn words_that_cannot_be_shown() {
    let none: &[&str] = &[];
    let error = |words: &[&str]| DoubleArrayTrace::new(words, none).unwrap_err();
    assert_eq!(error(&["a", ""]), ExplainError::EmptyWord { word: 1 });
    assert_eq!(error(&["ab\0"]), ExplainError::ZeroByte { word: 0, offset: 2 });
    assert!(matches!(error(&[&"a".repeat(1 << 20)]), ExplainError::TooManySteps { .. }));
    let trace = DoubleArrayTrace::new(none, &["a"]).expect("a trace");
    assert_eq!((trace.lookups[0].value, trace.lookups[0].longest_prefix), (None, None));
}

/// The position of the first of equal words.
fn first(words: &[String], word: &String) -> Option<usize> {
    words.iter().position(|other| other == word)
}

proptest! {
    #[test]
    fn exactly_the_words_are_found(
        words in prop::collection::vec("[a-d]{1,5}|[aé\u{10FFFF}]{1,3}", 0..24),
        others in prop::collection::vec("[a-eé]{0,6}", 0..12),
    ) {
        let queries = [&words[..], &others].concat();
        let trace = DoubleArrayTrace::new(&words, &queries).expect("a trace");
        for (query, lookup) in queries.iter().zip(&trace.lookups) {
            prop_assert_eq!(lookup.value, first(&words, query));
            let prefixes = words.iter().filter(|word| query.starts_with(&word[..]));
            let longest = prefixes.max_by_key(|word| word.len());
            prop_assert_eq!(lookup.longest_prefix, longest.and_then(|longest| first(&words, longest)));
            prop_assert_eq!(lookup.steps.last().is_some_and(|step| step.matched), lookup.value.is_some());
        }
        prop_assert!(trace.xcda.units.iter().all(|unit| unit.index < trace.xcda.num_units));
    }

    #[test]
    fn every_insertion_leaves_a_whole_trie(words in prop::collection::vec("[a-f]{1,5}", 0..24)) {
        let none: &[String] = &[];
        let trace = DoubleArrayTrace::new(&words, none).expect("a trace");
        for Insertion { word, cells, .. } in &trace.insertions {
            // The text of a cell is its parent's text plus the byte whose number leads from the parent's BASE to it.
            for child in cells.iter().filter(|cell| cell.check != 0) {
                let parent = &cells[child.check - 1];
                let code = trace.codes.iter().find(|code| parent.base + code.code as i64 == child.index as i64);
                let mut text = parent.text.clone().expect("a node").0;
                text.extend(code.expect("a number").byte);
                prop_assert_eq!(Some(Bytes(text)), child.text.clone());
            }
            let ends = cells.iter().filter(|cell| cell.base < 0).map(|cell| (-1 - cell.base) as usize);
            let mut ends = Vec::from_iter(ends);
            ends.sort_unstable();
            let inserted = (0..=*word).filter(|&word| first(&words, &words[word]) == Some(word));
            prop_assert_eq!(ends, inserted.collect::<Vec<_>>());
        }
    }
}
