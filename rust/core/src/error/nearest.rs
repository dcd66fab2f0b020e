//! The known names nearest to an unknown one by edit distance, for error messages.
//!
//! Source: Wagner and Fischer (1974). Time: the length of the name times the total length of the known names. Only the
//! first 64 characters of the name are compared.

/// How many names a message lists.
const LISTED: usize = 3;

/// The known names with the smallest Levenshtein distance to `name`, nearest first, ties in the order given.
pub fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let name: Vec<char> = name.chars().take(64).collect();
    let mut ranked: Vec<_> = known.map(|candidate| (distance(&name, candidate), candidate)).collect();
    ranked.sort_by_key(|&(distance, _)| distance);
    ranked.into_iter().take(LISTED).map(|(_, candidate)| candidate).collect()
}

/// Wagner and Fischer's table, one row at a time.
fn distance(left: &[char], right: &str) -> usize {
    let mut row: Vec<usize> = (0..=left.len()).collect();
    for (at, letter) in right.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (index, &other) in left.iter().enumerate() {
            let replaced = diagonal + usize::from(other != letter);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(row[index] + 1).min(diagonal + 1);
        }
    }
    row[left.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn nearest_names_come_first() {
        let known = || ["gpt-2", "qwen2", "qwen35", "llama-bpe"].into_iter();
        assert_eq!(nearest("qwen3", known())[..2], ["qwen2", "qwen35"]);
        assert_eq!(nearest("gpt2", known())[0], "gpt-2");
        assert_eq!(nearest("", known()).len(), 3);
    }
}
