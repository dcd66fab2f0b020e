//! The iteration order of GNU's hash table, which shows in llama.cpp's results.
//!
//! The C++ standard does not define the iteration order of a `std::unordered_map<std::string, T>`, and llama.cpp's
//! loader depends on it. No hash table is built here: the order follows from the bucket of each key (see
//! [`iteration_order`]).
//!
//! Source: libstdc++ on 64-bit machines, with which llama.cpp is commonly built. Its string hash is Appleby's
//! MurmurHash64A.
//!
//! Time: the hash of every key, and then O(n) steps for a few of them. Space: O(n).
//!
//! Deviations: none in the order.

use std::collections::{HashMap, HashSet};

use crate::lookup::hash::packed;
use crate::token::TokenId;
use crate::work::memory::{collect, filled};

/// The bucket counts of a growing table. It grows when it would have more elements than buckets.
const BUCKETS: [u64; 28] = [
    13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153, 2938679,
    5967347, 12117689, 24607243, 49969847, 101473717, 206062531, 418451333, 849749479, 1725587117, 3504151727,
];

/// The candidate that comes first in the iteration of a `std::unordered_map<std::string, T>` into which `keys` were
/// inserted one by one. Keys are distinct and fewer than 2^31; candidates are indices of keys.
pub(crate) fn first_in_iteration_order<'a>(
    keys: impl Iterator<Item = &'a [u8]>,
    candidates: &[TokenId],
) -> Option<TokenId> {
    let hashes = collect(keys.map(hash));
    let wanted: Vec<u32> = candidates.iter().map(|&id| id as u32).collect();
    iteration_order(&hashes, &wanted, sizes_for(hashes.len())).first().map(|&id| id as TokenId)
}

/// The bucket counts that a table has had by the time it holds `num_elements`.
fn sizes_for(num_elements: usize) -> &'static [u64] {
    let num_smaller = BUCKETS.partition_point(|&buckets| buckets < num_elements as u64);
    &BUCKETS[..BUCKETS.len().min(num_smaller + 1)]
}

/// The `wanted` elements in the iteration order of a table that has grown through these `sizes` and holds as many of
/// the elements as fit.
///
/// All elements are in one list, in which those of a bucket are adjacent. A new element goes before the others of its
/// bucket, or to the front of the list if its bucket is empty. Growth reinserts all elements in list order. So take the
/// elements in order of insertion since the last growth, starting with the old list, and group them by bucket: the new
/// list has the groups in reverse order of their first elements, and the elements of each group in reverse order too.
///
/// The position of an element depends only on the elements of its bucket, and their positions only on those that shared
/// their buckets before the growth. Each smaller table has twice as many such elements for every wanted one, but is
/// half as large.
fn iteration_order(hashes: &[u64], wanted: &[u32], sizes: &[u64]) -> Vec<u32> {
    let Some((&num_buckets, smaller)) = sizes.split_last() else { return Vec::new() };
    let divisor = Divisor::new(num_buckets);
    let bucket = |element: u32| divisor.remainder(hashes[element as usize]) as usize;
    let mut is_wanted_bucket = filled(num_buckets as usize, false);
    wanted.iter().for_each(|&element| is_wanted_bucket[bucket(element)] = true);
    let num_elements = hashes.len().min(num_buckets as usize) as u32;
    let num_old = smaller.last().map_or(0, |&num_buckets| num_buckets as u32);

    let old: Vec<u32> = (0..num_old).filter(|&element| is_wanted_bucket[bucket(element)]).collect();
    let old = iteration_order(hashes, &old, smaller);
    let new = (num_old..num_elements).filter(|&element| is_wanted_bucket[bucket(element)]);

    let mut first_of_bucket = HashMap::new();
    let mut elements: Vec<(usize, usize, u32)> = (old.into_iter().chain(new).enumerate())
        .map(|(place, element)| (*first_of_bucket.entry(bucket(element)).or_insert(place), place, element))
        .collect();
    elements.sort_unstable();
    let wanted: HashSet<u32> = wanted.iter().copied().collect();
    elements.into_iter().rev().map(|(_, _, element)| element).filter(|element| wanted.contains(element)).collect()
}

/// Division by multiplication (Barrett), for a divisor known only at run time.
struct Divisor {
    divisor: u64,
    /// 2^64 / divisor, rounded down.
    reciprocal: u64,
}

impl Divisor {
    fn new(divisor: u64) -> Self {
        Self { divisor, reciprocal: u64::MAX / divisor }
    }

    fn remainder(&self, dividend: u64) -> u64 {
        // The quotient is exact or one too small.
        let quotient = ((u128::from(dividend) * u128::from(self.reciprocal)) >> 64) as u64;
        let remainder = dividend - quotient * self.divisor;
        if remainder < self.divisor { remainder } else { remainder - self.divisor }
    }
}

/// `std::hash<std::string>`: MurmurHash64A with the library's seed.
fn hash(key: &[u8]) -> u64 {
    const SEED: u64 = 0xC70F_6907;
    const FACTOR: u64 = 0xC6A4_A793_5BD1_E995;
    let fold = |word: u64| word ^ word >> 47;
    let (words, rest) = key.as_chunks::<8>();
    let mut hash = SEED ^ (key.len() as u64).wrapping_mul(FACTOR);
    for word in words {
        let word = fold(u64::from_le_bytes(*word).wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let word = match key.last_chunk::<8>() {
            Some(last) => u64::from_le_bytes(*last) >> (8 * (8 - rest.len())),
            None => packed(rest).map_or(0, |(word, _)| word),
        };
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    fold(fold(hash).wrapping_mul(FACTOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of an order. The expected values below were printed by a C++ program compiled with GCC 12.
    fn digest(order: impl IntoIterator<Item = u32>) -> u64 {
        order.into_iter().fold(0, |digest: u64, number| digest.wrapping_mul(31).wrapping_add(number.into()))
    }

    #[test]
    fn maps_are_iterated_in_the_library_s_order() {
        let expected = [
            (0, 0),
            (1, 0),
            (13, 0x7bdc67dadc0ce206),
            (14, 0x301a8c6f7251fe7f),
            (100, 0x572c236bb20e55f0),
            (85229, 0x4cd4ebac917909b6),
            (85230, 0x1d72c04c82fa27b7),
            (151936, 0xe2a22a9dab147cac),
            (262144, 0x0657ea4b0fff3310),
        ];
        for (count, expected) in expected {
            let keys: Vec<String> = (0..count).map(|number| format!("tok{number}")).collect();
            let hashes: Vec<u64> = keys.iter().map(|key| hash(key.as_bytes())).collect();
            let all: Vec<u32> = (0..count).collect();
            let order = iteration_order(&hashes, &all, sizes_for(keys.len()));
            if count == 14 {
                assert_eq!(order, [0, 4, 12, 13, 1, 3, 9, 2, 6, 5, 8, 7, 10, 11]);
            }
            assert_eq!(digest(order.iter().copied()), expected, "{count} keys");

            let some: Vec<TokenId> = (0..count as TokenId).step_by(1 + keys.len() / 5).collect();
            let first = order.iter().map(|&id| id as TokenId).find(|id| some.contains(id));
            let keys = keys.iter().map(String::as_bytes);
            assert_eq!(first_in_iteration_order(keys, &some), first, "among {count} keys");
        }
    }

    #[test]
    fn remainders_are_exact() {
        for divisor in BUCKETS {
            for dividend in [0, 1, divisor - 1, divisor, divisor + 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
                assert_eq!(Divisor::new(divisor).remainder(dividend), dividend % divisor, "{dividend} / {divisor}");
            }
        }
    }
}
