//! A tokenizer's scratch spaces: whichever thread calls, the caches are found, limited and freed in one place.
//!
//! 1. Spaces are in lockers. A thread takes the locker that it used last: one atomic exchange, if no other call has it.
//! 2. Otherwise it takes the next free one and stays with that. So threads that meet soon have a locker each, and threads
//!    that take turns share one.
//! 3. All caches together have one limit, and each space has an equal share. A new space makes the shares smaller.
//! 4. When the shares change, or the caches are cleared, idle spaces follow at once. A running call sees at its end that
//!    there is a new *epoch*, and then its space follows.
//!
//! Only the search for another locker, and steps 3 and 4, wait for a lock. It is never held while a text is encoded, so no
//! call waits for another one. A call inside a call, such as one from a finalizer, takes another locker. In a forked
//! process, the lockers of threads that are gone stay locked.
//!
//! O(1) for a call; O(lockers), and freeing memory, for the other steps.

use std::cell::Cell;
use std::iter::successors;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use super::Scratch;

/// How many lockers are allocated together.
const BLOCK: usize = 16;
/// A space gets at most this part of the limit, so that the first ones leave room for others.
const LEAST_SHARES: usize = 4;

thread_local! {
    /// The index of the locker that this thread used last, whatever the tokenizer.
    static LATEST: Cell<usize> = const { Cell::new(0) };
}

/// The scratch spaces of a tokenizer.
#[derive(Debug, Default)]
pub(crate) struct ScratchPool {
    first: Block,
    /// Whoever looks at all lockers has this lock.
    shares: Mutex<Shares>,
    /// A copy of [`Shares::epoch`].
    epoch: AtomicUsize,
}

#[derive(Debug, Default)]
struct Block {
    lockers: [Locker; BLOCK],
    next: OnceLock<Box<Block>>,
}

/// A space, if it has been made. Locked while a call uses it. It has cache lines to itself, so that threads with
/// different lockers do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Locker(Mutex<Option<Space>>);

#[derive(Debug)]
struct Space {
    scratch: Box<Scratch>,
    /// The epoch that it has followed.
    epoch: usize,
}

#[derive(Debug)]
struct Shares {
    /// The most memory of all caches together, in bytes.
    limit: usize,
    /// That of each space.
    share: usize,
    /// How often the share has changed or the caches were cleared.
    epoch: usize,
    /// The epoch in which they were cleared.
    cleared: usize,
}

impl Default for Shares {
    fn default() -> Self {
        Self { limit: ScratchPool::DEFAULT_LIMIT, share: Scratch::DEFAULT_CACHE_LIMIT, epoch: 0, cleared: 0 }
    }
}

impl ScratchPool {
    /// The default limit for the memory of all caches, in bytes.
    pub(crate) const DEFAULT_LIMIT: usize = LEAST_SHARES * Scratch::DEFAULT_CACHE_LIMIT;

    /// A pool with one space, whose cache has the default limit.
    pub(crate) fn with_space(scratch: Scratch) -> Self {
        let mut pool = Self::default();
        pool.first.lockers[0] = Locker(Mutex::new(Some(Space { scratch: Box::new(scratch), epoch: 0 })));
        pool
    }

    /// Calls `work` with a space that no other call uses, and which it returns. Unwinding drops the space.
    #[inline]
    pub(crate) fn with<T>(&self, work: impl FnOnce(Box<Scratch>) -> (T, Box<Scratch>)) -> T {
        let latest = self.lockers().nth(LATEST.get()).and_then(Locker::lock);
        let mut locker = latest.unwrap_or_else(|| self.another_locker());
        let index = LATEST.get();
        let Space { scratch, epoch } = locker.take().unwrap_or_else(|| self.new_space());
        let (result, scratch) = work(scratch);
        *locker = Some(Space { scratch, epoch });
        drop(locker);
        // A call inside this one had the next locker. Without this, each such call would take a new one.
        LATEST.set(index);
        // Read only after unlocking: who changes it passes over locked lockers.
        if self.epoch.load(Ordering::SeqCst) != epoch {
            self.share_out(|_| ());
        }
        result
    }

    /// Sets the limit for the memory of all caches together, in bytes.
    pub(crate) fn set_limit(&self, bytes: usize) {
        self.share_out(|shares| shares.limit = bytes);
    }

    /// Frees all spaces.
    pub(crate) fn clear(&self) {
        self.share_out(|shares| shares.cleared = shares.epoch + 1);
    }

    /// The memory of the caches that no call is using, in bytes.
    pub(crate) fn cache_bytes(&self) -> usize {
        let _shares = self.shares();
        self.idle().map(|mut locker| locker.as_mut().map_or(0, |space| space.scratch.cache_bytes())).sum()
    }

    /// The next free locker from the one that this thread used last.
    #[cold]
    fn another_locker(&self) -> MutexGuard<'_, Option<Space>> {
        // While no thread goes through all lockers, a locked locker is in use.
        let _shares = self.shares();
        let blocks = successors(Some(&self.first), |block| Some(block.next.get_or_init(Box::default)));
        let lockers = blocks.flat_map(|block| &block.lockers).enumerate().skip(LATEST.get());
        let mut free = lockers.filter_map(|(index, locker)| Some((index, locker.lock()?)));
        let (index, locker) = free.next().expect("there is always another block");
        LATEST.set(index);
        locker
    }

    /// A space for a locker that the caller has locked.
    #[cold]
    fn new_space(&self) -> Space {
        let (share, epoch) = self.share_out(|_| ());
        Space { scratch: Box::new(Scratch::with_cache_limit(share)), epoch }
    }

    /// Applies a change, computes the shares, and makes all idle spaces follow. Returns the share and the epoch.
    #[cold]
    fn share_out(&self, change: impl FnOnce(&mut Shares)) -> (usize, usize) {
        let mut shares = self.shares();
        change(&mut shares);
        let is_cleared = |space: &Space| space.epoch < shares.cleared;
        self.idle().for_each(|mut locker| drop(locker.take_if(|space| is_cleared(space))));
        let num_spaces = self.lockers().filter(|locker| locker.lock().is_none_or(|space| space.is_some())).count();
        let share = shares.limit / num_spaces.max(LEAST_SHARES);
        shares.epoch = shares.cleared.max(shares.epoch + usize::from(share != shares.share));
        shares.share = share;
        self.epoch.store(shares.epoch, Ordering::SeqCst);
        for mut locker in self.idle() {
            if let Some(space) = &mut *locker {
                space.scratch.model.set_cache_limit(share);
                space.epoch = shares.epoch;
            }
        }
        (share, shares.epoch)
    }

    fn shares(&self) -> MutexGuard<'_, Shares> {
        // Nothing panics while it is locked.
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn lockers(&self) -> impl Iterator<Item = &Locker> {
        successors(Some(&self.first), |block| block.next.get().map(|next| &**next)).flat_map(|block| &block.lockers)
    }

    /// The lockers that no call has.
    fn idle(&self) -> impl Iterator<Item = MutexGuard<'_, Option<Space>>> {
        self.lockers().filter_map(Locker::lock)
    }
}

impl Locker {
    /// Locks the locker, unless it is locked.
    #[inline]
    fn lock(&self) -> Option<MutexGuard<'_, Option<Space>>> {
        match self.0.try_lock() {
            Ok(locker) => Some(locker),
            // A call unwound, and its space is gone.
            Err(TryLockError::Poisoned(locker)) => Some(locker.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::thread;

    use super::super::tests::tokenizer;
    use super::{BLOCK, LEAST_SHARES};
    use crate::{Encoder, Tokenizer};

    /// More than fit in a block.
    const NUM_THREADS: usize = BLOCK + 4;

    fn check(encoder: &mut Encoder<&Tokenizer>) {
        assert_eq!(encoder.encode("a b").expect("ids"), [1, 3, 1, 2]);
    }

    /// Makes a space for each of many threads, which are gone afterwards.
    fn meet(tokenizer: &Tokenizer) {
        let barrier = Barrier::new(NUM_THREADS);
        let call = || {
            tokenizer.with_encoder(|encoder| {
                barrier.wait();
                check(encoder);
            });
        };
        thread::scope(|scope| (0..NUM_THREADS).for_each(|_| drop(scope.spawn(call))));
    }

    #[test]
    fn a_short_text_fills_a_small_cache_that_later_calls_use() {
        let one = tokenizer();
        let encode = |text: &str| assert!(one.encode(text).is_ok());
        encode("a b");
        let bytes = one.cache_bytes();
        assert!((1..=1 << 13).contains(&bytes), "{bytes}");
        encode(&"a b c bb ".repeat(1000));
        assert_eq!(one.cache_bytes(), bytes);
    }

    #[test]
    fn threads_that_take_turns_share_a_space() {
        let one = tokenizer();
        for _ in 0..NUM_THREADS {
            thread::scope(|scope| drop(scope.spawn(|| one.with_encoder(check))));
        }
        let bytes = one.cache_bytes();
        assert!(bytes > 0);
        meet(&one);
        assert_eq!(one.cache_bytes(), NUM_THREADS * bytes);
    }

    #[test]
    fn calls_inside_calls_share_a_space() {
        let one = tokenizer();
        for _ in 0..2 * BLOCK {
            one.with_encoder(|encoder| {
                check(encoder);
                one.with_encoder(check);
            });
        }
        let bytes = one.cache_bytes();
        meet(&one);
        assert_eq!(one.cache_bytes(), NUM_THREADS * bytes / 2);
    }

    #[test]
    fn idle_spaces_follow_the_limit_and_are_cleared() {
        let one = tokenizer();
        for limit in [1 << 21, 1 << 16, 0, usize::MAX, NUM_THREADS << 16, 1 << 22] {
            meet(&one);
            one.set_cache_limit(limit);
            assert!(one.cache_bytes() <= limit);
            meet(&one);
            assert!(one.cache_bytes() <= limit && (one.cache_bytes() > 0) == (limit / NUM_THREADS >= 1 << 14));
            one.clear_cache();
            assert_eq!(one.cache_bytes(), 0);
            one.with_encoder(check);
            assert!(one.cache_bytes() <= limit / LEAST_SHARES);
        }
    }

    #[test]
    fn the_space_of_a_running_call_follows_at_its_end() {
        let one = tokenizer();
        for change in [Tokenizer::clear_cache, |one: &Tokenizer| one.set_cache_limit(0)] {
            one.set_cache_limit(Tokenizer::DEFAULT_CACHE_LIMIT);
            one.with_encoder(|encoder| {
                check(encoder);
                // A call inside a call has another space, which is idle when the change comes.
                one.with_encoder(check);
                assert!(one.cache_bytes() > 0);
                change(&one);
                assert_eq!(one.cache_bytes(), 0);
                check(encoder);
            });
            assert_eq!(one.cache_bytes(), 0);
            one.with_encoder(check);
        }
    }

    #[test]
    fn unwinding_drops_a_space_and_no_other() {
        let one = tokenizer();
        one.with_encoder(|encoder| {
            check(encoder);
            let unwound = AssertUnwindSafe(|| one.with_encoder(|_: &mut _| std::panic::resume_unwind(Box::new(()))));
            assert!(catch_unwind(unwound).is_err());
        });
        let bytes = one.cache_bytes();
        assert!(bytes > 0);
        for _ in 0..2 {
            meet(&one);
            assert_eq!(one.cache_bytes(), NUM_THREADS * bytes);
        }
    }
}
