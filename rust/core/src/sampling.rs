//! Other ways to cut a text into tokens than the one that `encode` returns: random ones, and the best few.

use std::borrow::Borrow;

use crate::encode::model::Fragment;
use crate::encode::model::any::AnyModel;
use crate::encode::model::sampler::{Sampler, Sampling};
use crate::encode::model::unigram::sampled::BestPaths;
use crate::encode::sink::Spans;
use crate::encode::special::Item;
use crate::encoder::Encoder;
use crate::error::EncodeError;
use crate::text::unicode::utf8::is_boundary;
use crate::token::TokenId;
use crate::tokenizer::{AsText, EncodeOptions, MAX_TEXT, Text, Tokenizer};
use crate::vocabulary::Kind;

impl<T: Borrow<Tokenizer>> Encoder<T> {
    /// The tokens of a text, cut at random as the sampler says: special tokens are as in [`Encoder::encode_with`].
    ///
    /// O(n log n) for n bytes. No cache is used.
    ///
    /// # Errors
    /// As [`Encoder::encode`]; and [`EncodeError::NotSampled`]: paths are sampled for Unigram only, dropout is for
    /// byte-pair encoding and SPM.
    pub fn sample(
        &mut self,
        text: impl AsText,
        options: EncodeOptions,
        sampler: &mut Sampler,
    ) -> Result<Vec<TokenId>, EncodeError> {
        let is_unigram = matches!(self.tokenizer().borrow().model(), AnyModel::Unigram(_));
        if sampler.way == Sampling::Dropout && sampler.amount == 0.0 && !is_unigram {
            return self.encode_with(text, options);
        }
        self.work(|tokenizer, scratch| {
            let is_path = sampler.way == Sampling::Path;
            let is_sampled = matches!(tokenizer.vocabulary().kind(), Kind::Spm | Kind::Bpe | Kind::Unigram);
            if !is_sampled || is_path != is_unigram {
                let (way, kinds) = if is_path { ("alpha", UNIGRAM) } else { ("dropout", "byte-pair and SPM") };
                return Err(EncodeError::NotSampled { way, kinds });
            }
            scratch.model.get().sampler = Some(sampler.clone());
            // With spans, the algorithms use no caches.
            let mut sampled = Spans::default();
            let result = tokenizer.encode_within(text.as_text(), None, options, scratch, &mut sampled);
            if let Some(used) = scratch.model.get().sampler.take() {
                *sampler = used;
            }
            result.map(|()| sampled.ids)
        })
    }

    /// The `n` best ways to cut a text into tokens of a Unigram vocabulary, best first, each with the sum of its
    /// tokens' scores; fewer if there are not as many. The first one is that of [`Encoder::encode_with`].
    ///
    /// O(n log n) for each match of a token in the text.
    ///
    /// # Errors
    /// As [`Encoder::encode`]; [`EncodeError::NotSampled`]: the vocabulary is of another kind; and
    /// [`EncodeError::TooManySteps`].
    pub fn n_best(
        &mut self,
        text: impl AsText,
        n: usize,
        options: EncodeOptions,
    ) -> Result<Vec<(Vec<TokenId>, f64)>, EncodeError> {
        self.work(|tokenizer, scratch| {
            let is_utf8 = matches!(text.as_text(), Text::Str(_));
            let text = text.as_text().as_bytes();
            let AnyModel::Unigram(model) = tokenizer.model() else {
                return Err(EncodeError::NotSampled { way: "n_best", kinds: UNIGRAM });
            };
            if text.len() > MAX_TEXT {
                return Err(EncodeError::TextTooLong { len: text.len() });
            }
            let (before, after) = tokenizer.added_tokens(options.add_special)?;
            let mut best = BestPaths::new(n);
            before.filter(|_| !options.continues).into_iter().for_each(|id| best.append(id));
            let mut after_special = true;
            let mut continues = options.continues;
            for item in tokenizer.specials(options.parse_special).partition(text, None, &mut scratch.special) {
                match *item {
                    Item::Text(start, end) => {
                        let is_utf8 = is_utf8 && is_boundary(text, start) && is_boundary(text, end);
                        let fragment = Fragment { text: &text[start..end], start, after_special, continues, is_utf8 };
                        model.continue_best(fragment, &mut best)?;
                        after_special = false;
                    }
                    Item::Token(id, ..) => {
                        best.append(id);
                        after_special = true;
                    }
                }
                continues = false;
            }
            after.into_iter().for_each(|id| best.append(id));
            Ok(model.best(&best))
        })
    }
}

const UNIGRAM: &str = "Unigram";

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::vocab::{Definition, SpecialIds, StringIndex};

    const PLAIN: EncodeOptions = EncodeOptions::new().add_special(false);
    const TEXT: &str = "abcab é";

    fn tokenizer(model: &str, tokens: &[(&str, f32)], merges: Option<&[&str]>) -> Tokenizer {
        let (texts, scores): (Vec<&str>, Vec<f32>) = tokens.iter().copied().unzip();
        let (data, index) = StringIndex::concatenate(&texts).expect("few tokens");
        let rules = merges.map(|merges| StringIndex::concatenate(merges).expect("few merges"));
        Tokenizer::new(&Definition {
            model,
            pre: Some("gpt-2"),
            tokens: Some(index.view(&data)),
            scores: Some(&scores),
            merges: rules.as_ref().map(|(data, index)| index.view(data)),
            special: SpecialIds { unk: Some(0), ..SpecialIds::default() },
            add_space_prefix: Some(false),
            ..Definition::default()
        })
        .expect("a vocabulary")
    }

    fn unigram() -> Tokenizer {
        let scores = [-2.0, -2.5, -3.0, -1.5, -2.2, -3.1, -2.7, -1.9].map(|score| score / 2.0);
        let tokens = ["a", "b", "c", "ab", "bc", "abc", "▁", "cab"].into_iter().zip(scores);
        tokenizer("t5", &Vec::from_iter([("<unk>", 0.0), ("</s>", 0.0)].into_iter().chain(tokens)), None)
    }

    /// All ways to cut a text into tokens, with the sum of their scores.
    fn all_ways(tok: &Tokenizer, text: &str) -> Vec<(Vec<TokenId>, f64)> {
        let Some(first) = text.chars().next() else { return vec![(Vec::new(), 0.0)] };
        let mut ways = Vec::new();
        let lens = text.char_indices().map(|(at, _)| at).skip(1).chain([text.len()]);
        for len in lens {
            let found = tok.vocabulary().id(&text.as_bytes()[..len]).filter(|&id| id > 1);
            let unknown = (found.is_none() && len == first.len_utf8()).then_some((0, -1.55 - 10.0));
            let Some((id, score)) = found.map(|id| (id, f64::from(tok.vocabulary().score(id)))).or(unknown) else {
                continue;
            };
            for (rest, sum) in all_ways(tok, &text[len..]) {
                ways.push(([vec![id], rest].concat(), score + sum));
            }
        }
        ways
    }

    #[test]
    fn paths_have_their_share() -> Result<(), Box<dyn std::error::Error>> {
        let tok = unigram();
        let ways = all_ways(&tok, &TEXT.replace(' ', "▁"));
        for alpha in [0.0, 0.5, 2.0] {
            let total: f64 = ways.iter().map(|(_, score)| (alpha * score).exp()).sum();
            let mut sampler = Sampler::path(alpha, 7)?;
            let mut counts: HashMap<Vec<TokenId>, f64> = HashMap::new();
            let num_samples = 40_000;
            for _ in 0..num_samples {
                *counts.entry(tok.encoder().sample(TEXT, PLAIN, &mut sampler)?).or_default() += 1.0;
            }
            assert!(counts.len() <= ways.len());
            for (ids, score) in &ways {
                let share = (alpha * score).exp() / total;
                let error = (share * (1.0 - share) / f64::from(num_samples)).sqrt();
                let found = counts.get(ids).copied().unwrap_or_default() / f64::from(num_samples);
                assert!((found - share).abs() < 5.0 * error, "alpha {alpha}, {ids:?}: {found}, not {share}");
            }
        }
        Ok(())
    }

    #[test]
    fn the_best_ways_come_in_order() -> Result<(), Box<dyn std::error::Error>> {
        let tok = unigram();
        let mut ways = all_ways(&tok, &TEXT.replace(' ', "▁"));
        ways.sort_by(|a, b| b.1.total_cmp(&a.1));
        let found = tok.encoder().n_best(TEXT, 1000, PLAIN)?;
        assert_eq!(found.len(), ways.len());
        assert_eq!(found[0].0, tok.encode_with(TEXT, PLAIN)?);
        for (found, way) in found.iter().zip(&ways) {
            assert!((found.1 - way.1).abs() < 1e-6);
        }
        assert_eq!(tok.encoder().n_best(TEXT, 3, PLAIN)?, found[..3]);
        let long = tok.encoder().n_best("abc".repeat(1000), 100, PLAIN);
        assert_eq!(long, Err(EncodeError::TooManySteps { n: 100, most: 1 << 12 }));
        Ok(())
    }

    #[test]
    fn dropout_goes_from_the_merged_text_to_its_characters() -> Result<(), Box<dyn std::error::Error>> {
        let tokens = [("a", 0.0), ("b", 0.0), ("c", 0.0), ("ab", -1.0), ("abc", -2.0), ("bc", -3.0)];
        for (model, merges) in [("gpt2", Some(&["a b", "ab c", "b c"][..])), ("llama", None)] {
            let tok = tokenizer(model, &tokens, merges);
            let samples = |rate| {
                let mut sampler = Sampler::dropout(rate, 3)?;
                let all = (0..500).map(|_| tok.encoder().sample("abcabc", PLAIN, &mut sampler));
                let mut all = all.collect::<Result<Vec<_>, _>>()?;
                all.sort();
                all.dedup();
                Ok::<_, Box<dyn std::error::Error>>(all)
            };
            assert_eq!(samples(0.0)?, [[4, 4]], "{model}");
            assert_eq!(samples(1.0)?, [[0, 1, 2, 0, 1, 2]], "{model}");
            // Each half as [abc], [ab c], [a bc] or [a b c].
            assert_eq!(samples(0.5)?.len(), 16, "{model}");
        }
        Ok(())
    }

    #[test]
    fn other_kinds_and_settings_are_refused() {
        let unigram = unigram();
        let spm = tokenizer("llama", &[("a", 0.0)], None);
        let path = || Sampler::path(1.0, 0).expect("a sampler");
        assert!(matches!(spm.encoder().sample("a", PLAIN, &mut path()), Err(EncodeError::NotSampled { .. })));
        let mut dropout = Sampler::dropout(0.0, 0).expect("a sampler");
        assert!(matches!(unigram.encoder().sample("a", PLAIN, &mut dropout), Err(EncodeError::NotSampled { .. })));
        assert!(matches!(spm.encoder().n_best("a", 2, PLAIN), Err(EncodeError::NotSampled { .. })));
        for value in [-0.1, f64::NAN, f64::INFINITY] {
            assert!(Sampler::path(value, 0).is_err() && Sampler::dropout(value, 0).is_err());
        }
        assert!(Sampler::dropout(1.1, 0).is_err());
    }
}
