//! How much memory a value holds outside itself: the sum over its fields.
//!
//! [`heap_bytes!`](heap_bytes) names the fields of a struct that hold any. Counted are the sizes that were asked for,
//! without what an allocator adds. `tests/memory.rs` compares the sums with an allocator that counts.

use std::collections::HashMap;
use std::sync::OnceLock;

/// A value that may hold memory outside itself.
pub(crate) trait HeapBytes {
    /// That memory in bytes.
    fn heap_bytes(&self) -> usize;
}

/// Implements [`HeapBytes`] for structs, given the fields that hold memory, if any; or for an enum, given what each
/// variant holds.
macro_rules! heap_bytes {
    ($($name:ident $(: $($field:tt),+)?);+) => {
        $(impl $crate::work::heap::HeapBytes for $name {
            fn heap_bytes(&self) -> usize {
                0 $($(+ $crate::work::heap::HeapBytes::heap_bytes(&self.$field))+)?
            }
        })+
    };
    ($name:ident { $($variant:pat => $held:expr),+ }) => {
        impl $crate::work::heap::HeapBytes for $name {
            fn heap_bytes(&self) -> usize {
                match self {
                    $($variant => $crate::work::heap::HeapBytes::heap_bytes($held),)+
                }
            }
        }
    };
}

heap_bytes!(bool; u8; u16; u32; u64; i32; f32; f64);

impl<T: HeapBytes> HeapBytes for [T] {
    fn heap_bytes(&self) -> usize {
        self.iter().map(T::heap_bytes).sum()
    }
}

impl<T: HeapBytes, const N: usize> HeapBytes for [T; N] {
    fn heap_bytes(&self) -> usize {
        self[..].heap_bytes()
    }
}

impl<T: HeapBytes> HeapBytes for Vec<T> {
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<T>() + self[..].heap_bytes()
    }
}

impl<T: HeapBytes + ?Sized> HeapBytes for Box<T> {
    fn heap_bytes(&self) -> usize {
        size_of_val(&**self) + T::heap_bytes(self)
    }
}

impl<T: HeapBytes> HeapBytes for Option<T> {
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, T::heap_bytes)
    }
}

impl<T: HeapBytes> HeapBytes for OnceLock<T> {
    fn heap_bytes(&self) -> usize {
        self.get().map_or(0, T::heap_bytes)
    }
}

impl<K: HeapBytes, V: HeapBytes> HeapBytes for HashMap<K, V> {
    fn heap_bytes(&self) -> usize {
        // An eighth of the buckets stays free. A byte for each bucket, and 16 more, say what is in it.
        let num_buckets = if self.capacity() == 0 { return 0 } else { (self.capacity() * 8 / 7).next_power_of_two() };
        let items = self.iter().map(|(key, value)| key.heap_bytes() + value.heap_bytes());
        num_buckets * (size_of::<(K, V)>() + 1) + 16 + items.sum::<usize>()
    }
}
