//! GNU's introsort, whose order of equal items shows in llama.cpp's results, with a comparison that can fail.
//!
//! The C++ standard does not say where `std::sort` puts equal items, and llama.cpp's loader depends on it. Templates even
//! sort with comparisons that are not an order: numbers and lists are neither less nor greater than each other, and so
//! "equal" to everything. So the comparisons are those of libstdc++, one by one.
//!
//! Source: `std::sort` of libstdc++ (Musser's introsort, 1997). Deviations: 1. Where an inconsistent comparison makes
//! libstdc++ leave the array, which is undefined behavior, this is an error.
//!
//! Time: O(n log n) comparisons, even in the worst case.

/// Ranges of up to this length are left to the insertion sort at the end.
const INSERTION_LEN: usize = 16;

/// The comparison is not a strict weak order.
#[derive(Debug)]
pub struct Inconsistent;

/// Sorts items by whether the first of two is less.
///
/// # Errors
///
/// A comparison fails, or comparisons contradict each other.
pub fn introsort_by<T: Copy, E: From<Inconsistent>>(
    items: &mut [T],
    mut less: impl FnMut(T, T) -> Result<bool, E>,
) -> Result<(), E> {
    let less = &mut less;
    if let Some(log) = items.len().checked_ilog2() {
        partition_all(items, 2 * log, less)?;
    }
    // Items beyond the first ones have a smaller or equal one before them, unless the comparison is inconsistent.
    for at in 1..items.len() {
        let item = items[at];
        let mut hole = at;
        if at < INSERTION_LEN && less(item, items[0])? {
            hole = 0;
        } else {
            while less(item, items[hole - 1])? {
                hole -= 1;
                if hole == 0 {
                    return Err(Inconsistent.into());
                }
            }
        }
        items.copy_within(hole..at, hole + 1);
        items[hole] = item;
    }
    Ok(())
}

/// Partitions items into short ranges. A range that is still long after `max_depth` partitions is heap-sorted.
fn partition_all<T: Copy, E: From<Inconsistent>>(
    mut items: &mut [T],
    mut max_depth: u32,
    less: &mut impl FnMut(T, T) -> Result<bool, E>,
) -> Result<(), E> {
    while items.len() > INSERTION_LEN {
        if max_depth == 0 {
            return heap_sort(items, less);
        }
        max_depth -= 1;
        let middle = partition(items, less)?;
        let (left, right) = items.split_at_mut(middle);
        partition_all(right, max_depth, less)?;
        items = left;
    }
    Ok(())
}

/// Partitions items around the median of the second, the middle and the last one; the median moves to the front.
/// Returns the start of the right side.
fn partition<T: Copy, E: From<Inconsistent>>(
    items: &mut [T],
    less: &mut impl FnMut(T, T) -> Result<bool, E>,
) -> Result<usize, E> {
    let second = 1;
    let middle = items.len() / 2;
    let last = items.len() - 1;
    let mut below = |left: usize, right: usize| less(items[left], items[right]);
    let (low, high) = if below(second, middle)? { (second, middle) } else { (middle, second) };
    let median = if below(high, last)? {
        high
    } else if below(low, last)? {
        last
    } else {
        low
    };
    items.swap(0, median);

    let pivot = items[0];
    let mut left = 1;
    let mut right = items.len();
    loop {
        while less(*items.get(left).ok_or(Inconsistent)?, pivot)? {
            left += 1;
        }
        right -= 1;
        while less(pivot, items[right])? {
            right = right.checked_sub(1).ok_or(Inconsistent)?;
        }
        if left >= right {
            return Ok(left);
        }
        items.swap(left, right);
        left += 1;
    }
}

fn heap_sort<T: Copy, E>(items: &mut [T], less: &mut impl FnMut(T, T) -> Result<bool, E>) -> Result<(), E> {
    for root in (0..items.len() / 2).rev() {
        fill_hole(items, root, items[root], less)?;
    }
    for last in (1..items.len()).rev() {
        let item = items[last];
        items[last] = items[0];
        fill_hole(&mut items[..last], 0, item, less)?;
    }
    Ok(())
}

/// Puts `item` into the heap at or below the hole at `top`: the hole sinks to a leaf along the larger children, then
/// `item` rises from there.
fn fill_hole<T: Copy, E>(
    heap: &mut [T],
    top: usize,
    item: T,
    less: &mut impl FnMut(T, T) -> Result<bool, E>,
) -> Result<(), E> {
    let mut hole = top;
    while 2 * hole + 1 < heap.len() {
        let left = 2 * hole + 1;
        let right = left + 1;
        let larger = if right == heap.len() || less(heap[right], heap[left])? { left } else { right };
        heap[hole] = heap[larger];
        hole = larger;
    }
    while hole > top {
        let parent = (hole - 1) / 2;
        if !less(heap[parent], item)? {
            break;
        }
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = item;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(count: u32, less: impl Fn(u32, u32) -> bool) -> Option<Vec<u32>> {
        let mut items: Vec<u32> = (0..count).collect();
        introsort_by(&mut items, |left, right| Ok::<_, Inconsistent>(less(left, right))).ok()?;
        Some(items)
    }

    /// The digests below were printed by a C++ program compiled with GCC 12.
    fn digest(order: Vec<u32>) -> u64 {
        order.into_iter().fold(0, |digest: u64, number| digest.wrapping_mul(31).wrapping_add(number.into()))
    }

    #[test]
    fn equal_items_end_where_std_sort_leaves_them() {
        let less = |left: u32, right: u32| left * left % 7 > right * right % 7;
        let order = [16, 2, 5, 12, 9, 3, 4, 10, 11, 8, 15, 13, 6, 1, 0, 7, 14];
        assert_eq!(sorted(17, less).unwrap(), order);
        let expected = [(0, 0), (1, 0), (16, 0xb56c5795ab7f786a), (40, 0xc52c0cb4ab836e06), (1000, 0x893bc0e4821ccc3e)];
        for (count, expected) in expected {
            assert_eq!(digest(sorted(count, less).unwrap()), expected, "{count} items");
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
        let sorted = sorted(2 * half, |left, right| key(left) / 4 < key(right) / 4).unwrap();
        assert_eq!(digest(sorted), 0x8c28c79cc25f771c);
    }

    #[test]
    fn inconsistent_comparisons_end() {
        for count in 0..200 {
            sorted(count, |_, _| true);
            sorted(count, |left, right| left ^ right & 1 == 0);
            sorted(count, |left, right| (left * 7 + right * 13) % 5 < 2);
        }
        assert!(sorted(17, |_, _| true).is_none());
    }

    #[test]
    fn a_failed_comparison_ends_the_sort() {
        assert!(introsort_by(&mut [1, 2, 3], |_, _| Err(Inconsistent)).is_err());
        assert!(introsort_by(&mut [1], |_, _| Err(Inconsistent)).is_ok());
    }
}
