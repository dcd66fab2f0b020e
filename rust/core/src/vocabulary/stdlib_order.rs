//! GNU's introsort, and the iteration order of GNU's hash table: two orders that show in llama.cpp's results.
//!
//! The C++ standard does not define where `std::sort` puts equal elements, nor the iteration order of a
//! `std::unordered_map<std::string, T>`, and llama.cpp's loader depends on both. No hash table is built here: the order
//! follows from the bucket of each key (see [`iteration_order`]).
//!
//! Source: libstdc++ on 64-bit machines, with which llama.cpp is commonly built. Its sort is Musser's introsort (1997),
//! its string hash is Appleby's MurmurHash64A.
//!
//! Time: O(n log n) comparisons for the sort, even in the worst case. The iteration order needs the hash of every key,
//! and then O(n) steps for a few of them. Space: O(n).
//!
//! Deviations: none in the orders.

use std::collections::{HashMap, HashSet};

use crate::token::TokenId;

/// Ranges of up to this length are left to the insertion sort at the end.
const INSERTION_LEN: usize = 16;

/// Sorts as `std::sort` does, equal elements included. `less` must be a strict weak order.
pub(crate) fn introsort_by<T: Copy>(items: &mut [T], less: impl Fn(&T, &T) -> bool) {
    if let Some(log) = items.len().checked_ilog2() {
        introsort_loop(items, 2 * log, &less);
    }
    for at in 1..items.len() {
        let item = items[at];
        let mut hole = at;
        while hole > 0 && less(&item, &items[hole - 1]) {
            items[hole] = items[hole - 1];
            hole -= 1;
        }
        items[hole] = item;
    }
}

/// Partitions items into short ranges. A range that is still long after `max_depth` partitions is heap-sorted.
fn introsort_loop<T: Copy>(mut items: &mut [T], mut max_depth: u32, less: &impl Fn(&T, &T) -> bool) {
    while items.len() > INSERTION_LEN {
        if max_depth == 0 {
            return heap_sort(items, less);
        }
        max_depth -= 1;
        let middle = partition(items, less);
        let (left, right) = items.split_at_mut(middle);
        introsort_loop(right, max_depth, less);
        items = left;
    }
}

/// Partitions items around the median of the second, the middle and the last one; the median moves to the front.
/// Returns the start of the right side.
fn partition<T: Copy>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) -> usize {
    let (second, middle, last) = (1, items.len() / 2, items.len() - 1);
    let below = |left: usize, right: usize| less(&items[left], &items[right]);
    let median = match (below(second, middle), below(middle, last), below(second, last)) {
        (true, true, _) | (false, false, false) => middle,
        (true, false, true) | (false, true, false) => last,
        (true, false, false) | (false, _, true) => second,
    };
    items.swap(0, median);

    let (mut left, mut right) = (1, items.len());
    loop {
        while less(&items[left], &items[0]) {
            left += 1;
        }
        right -= 1;
        while less(&items[0], &items[right]) {
            right -= 1;
        }
        if left >= right {
            return left;
        }
        items.swap(left, right);
        left += 1;
    }
}

fn heap_sort<T: Copy>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) {
    for root in (0..items.len() / 2).rev() {
        fill_hole(items, root, items[root], less);
    }
    for last in (1..items.len()).rev() {
        let item = items[last];
        items[last] = items[0];
        fill_hole(&mut items[..last], 0, item, less);
    }
}

/// Puts `item` into the heap at or below the hole at `top`: the hole sinks to a leaf along the larger children, then
/// `item` rises from there.
fn fill_hole<T: Copy>(heap: &mut [T], top: usize, item: T, less: &impl Fn(&T, &T) -> bool) {
    let mut hole = top;
    while 2 * hole + 1 < heap.len() {
        let (left, right) = (2 * hole + 1, 2 * hole + 2);
        let larger = if right == heap.len() || less(&heap[right], &heap[left]) { left } else { right };
        heap[hole] = heap[larger];
        hole = larger;
    }
    while hole > top && less(&heap[(hole - 1) / 2], &item) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = item;
}

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
    let hashes: Vec<u64> = keys.map(hash).collect();
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
/// The place of an element depends only on the elements of its bucket, and their places only on those that shared their
/// buckets before the growth. Each smaller table has twice as many such elements for every wanted one, but is half as
/// large.
fn iteration_order(hashes: &[u64], wanted: &[u32], sizes: &[u64]) -> Vec<u32> {
    let Some((&num_buckets, smaller)) = sizes.split_last() else { return Vec::new() };
    let divisor = Divisor::new(num_buckets);
    let bucket = |element: u32| divisor.remainder(hashes[element as usize]) as usize;
    let mut is_wanted_bucket = vec![false; num_buckets as usize];
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
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
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

    fn sorted(count: u32, less: impl Fn(u32, u32) -> bool) -> Vec<u32> {
        let mut items: Vec<u32> = (0..count).collect();
        introsort_by(&mut items, |&left, &right| less(left, right));
        items
    }

    #[test]
    fn equal_elements_end_where_std_sort_leaves_them() {
        let less = |left: u32, right: u32| left * left % 7 > right * right % 7;
        assert_eq!(sorted(17, less), [16, 2, 5, 12, 9, 3, 4, 10, 11, 8, 15, 13, 6, 1, 0, 7, 14]);
        let expected = [(0, 0), (1, 0), (16, 0xb56c5795ab7f786a), (40, 0xc52c0cb4ab836e06), (1000, 0x893bc0e4821ccc3e)];
        for (count, expected) in expected {
            assert_eq!(digest(sorted(count, less)), expected, "{count} items");
        }
    }

    #[test]
    fn bad_pivots_end_in_the_heap_sort() {
        let half = 1000;
        let key = |item: u32| match item {
            _ if item >= half => 2 * (item - half) + 2,
            _ if item.is_multiple_of(2) => item + 1,
            _ => item + half,
        };
        assert_eq!(digest(sorted(2 * half, |left, right| key(left) / 4 < key(right) / 4)), 0x8c28c79cc25f771c);
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
