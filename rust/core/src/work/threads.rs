//! Work on several threads: two functions at once ([`join`]), or jobs that the calling thread hands out ([`share`]).

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::work::interrupt::{self, interruptible};
use crate::work::memory;

/// How often the calling thread checks for an interrupt while it waits for the others.
const POLL: Duration = Duration::from_millis(25);
/// Memory that must be free when a thread starts, in bytes. The process ends if one of the small allocations of its start
/// fails, and until then the other threads go on allocating.
const THREAD_ROOM: usize = 64 << 20;

/// Runs two functions at once and returns both results: the second one on its own thread, or after the first one if no
/// thread can be started. Then checks for an interrupt.
pub(crate) fn join<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
    if cfg!(not(feature = "threads")) {
        return (first(), second());
    }
    let results = thread::scope(|scope| {
        let thread = start(scope, &second);
        let first = first();
        match thread.map(thread::ScopedJoinHandle::join) {
            Some(Ok(second)) => (first, second),
            Some(Err(panic)) => resume_unwind(panic),
            None => (first, second()),
        }
    });
    interrupt::check();
    results
}

/// Calls `work` with the jobs that `produce` pushes: on at most `num_helpers` other threads, and in
/// [`Producer::finish`] on this one. It does jobs until there are no more. Returns what `produce` returns, and what the
/// calls of `work` return.
///
/// A push starts a helper if more jobs wait than threads, so few jobs start few threads. This thread alone checks for
/// an interrupt (see [`interruptible`]); the helpers stop when it leaves. If one panics, so does `finish`.
///
/// Jobs that are left when `produce` returns without `finish` are not done.
pub fn share<J: Send, S: Send, R>(
    num_helpers: usize,
    work: impl Fn(&Jobs<J>) -> S + Sync,
    produce: impl FnOnce(Producer<'_, J>) -> R,
) -> (R, Vec<S>) {
    let jobs = Jobs::new(if cfg!(feature = "threads") { num_helpers } else { 0 });
    let states = Mutex::new(Vec::new());
    let work = || {
        let state = work(&jobs);
        lock(&states).push(state);
    };
    let result = thread::scope(|scope| {
        let _guard = StopHelpers(&jobs);
        let start = || start(scope, || jobs.help(&work)).is_some();
        produce(Producer { jobs: &jobs, start: &start, work: &work })
    });
    (result, states.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Starts a thread, if there is memory for it and the system allows it.
fn start<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<thread::ScopedJoinHandle<'scope, T>> {
    if memory::has_room(THREAD_ROOM) { thread::Builder::new().spawn_scoped(scope, work).ok() } else { None }
}

/// Locks what threads share. A panic elsewhere leaves it intact, because no lock is held while other code runs.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands out jobs.
pub struct Producer<'a, J> {
    jobs: &'a Jobs<J>,
    /// Starts a helper, if a thread can be started.
    start: &'a (dyn Fn() -> bool + Sync),
    /// Does jobs until there are no more.
    work: &'a (dyn Fn() + Sync),
}

impl<J> Producer<'_, J> {
    /// Adds a job.
    pub fn push(&self, job: J) {
        let mut queue = self.jobs.lock();
        memory::push_back(&mut queue.waiting, job);
        // This thread takes jobs too.
        let wants_helper = queue.num_spare > 0 && queue.waiting.len() > queue.num_idle + 1;
        queue.num_spare -= usize::from(wants_helper);
        queue.num_helpers += usize::from(wants_helper);
        drop(queue);
        self.jobs.changed.notify_one();
        if wants_helper && !(self.start)() {
            // The other threads do its work.
            self.jobs.lock().num_helpers -= 1;
        }
    }

    /// Takes a job back, if one waits.
    pub fn pop(&self) -> Option<J> {
        self.jobs.lock().waiting.pop_front()
    }

    /// Works until all jobs are done. None may be added afterwards.
    ///
    /// # Panics
    /// If a helper did.
    pub fn finish(&self) {
        self.jobs.close();
        (self.work)();
        let mut queue = self.jobs.lock();
        while queue.num_helpers > 0 {
            let (locked, wait) = self.jobs.changed.wait_timeout(queue, POLL).unwrap_or_else(PoisonError::into_inner);
            queue = locked;
            if wait.timed_out() {
                drop(queue);
                interrupt::check();
                queue = self.jobs.lock();
            }
        }
        if let Some(panic) = queue.failure.take() {
            drop(queue);
            resume_unwind(panic);
        }
    }
}

/// Jobs that wait for a thread. Iterating takes them, and ends when there will be no more.
pub struct Jobs<J> {
    queue: Mutex<Queue<J>>,
    /// Notified when there is another job or none will come, and when a helper ends.
    changed: Condvar,
    is_stopped: Arc<AtomicBool>,
}

struct Queue<J> {
    waiting: VecDeque<J>,
    /// No job will be added.
    is_closed: bool,
    /// Threads that wait for a job.
    num_idle: usize,
    /// Helpers that have not ended.
    num_helpers: usize,
    /// Helpers that may still be started.
    num_spare: usize,
    /// The panic of a helper.
    failure: Option<Box<dyn Any + Send>>,
}

impl<J> Jobs<J> {
    fn new(num_spare: usize) -> Self {
        let queue =
            Queue { waiting: VecDeque::new(), is_closed: false, num_idle: 0, num_helpers: 0, num_spare, failure: None };
        Self { queue: Mutex::new(queue), changed: Condvar::new(), is_stopped: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<J>> {
        lock(&self.queue)
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Ends all work soon: no more jobs are done.
    fn stop(&self) {
        self.lock().waiting.clear();
        self.close();
    }

    /// What a helper does.
    fn help(&self, work: &(dyn Fn() + Sync)) {
        let is_stopped = Arc::clone(&self.is_stopped);
        let stop = move || is_stopped.load(Ordering::Relaxed);
        let result = catch_unwind(AssertUnwindSafe(|| interruptible(stop, work)));
        if result.is_err() {
            self.stop();
        }
        let mut queue = self.lock();
        queue.num_helpers -= 1;
        queue.failure = queue.failure.take().or(result.err());
        drop(queue);
        self.changed.notify_all();
    }
}

impl<J> Iterator for &Jobs<J> {
    type Item = J;

    /// Waits for the next job.
    fn next(&mut self) -> Option<J> {
        interrupt::check();
        let mut queue = self.lock();
        queue.num_idle += 1;
        while queue.waiting.is_empty() && !queue.is_closed {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.num_idle -= 1;
        queue.waiting.pop_front()
    }
}

/// Ends the helpers when the calling thread leaves. Unless it is unwinding, they have nothing left to do.
struct StopHelpers<'a, J>(&'a Jobs<J>);

impl<J> Drop for StopHelpers<'_, J> {
    fn drop(&mut self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashSet;
    use std::rc::Rc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::{Jobs, Producer, share};
    use crate::work::interrupt::{self, Interrupted, interruptible};

    /// Takes a step for each job.
    fn each(step: impl Fn(usize) + Sync) -> impl Fn(&Jobs<usize>) + Sync {
        move |jobs| jobs.for_each(&step)
    }

    /// Hands out jobs and takes part.
    fn hand_out(num_jobs: usize) -> impl FnOnce(Producer<'_, usize>) {
        move |producer| {
            (0..num_jobs).for_each(|job| producer.push(job));
            producer.finish();
        }
    }

    /// Works until it is stopped; counts its steps.
    fn endless(steps: &AtomicUsize) {
        loop {
            interrupt::check();
            steps.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
        }
    }

    #[test]
    fn every_job_is_done_once() {
        for num_helpers in [0, 1, 2, 7] {
            for num_jobs in [0, 1, 2, 3, 100] {
                let work = |jobs: &Jobs<usize>| (thread::current().id(), jobs.collect::<Vec<_>>());
                let ((), states) = share(num_helpers, work, hand_out(num_jobs));
                let mut done: Vec<usize> = states.iter().flat_map(|(_, jobs)| jobs.clone()).collect();
                done.sort_unstable();
                assert_eq!(done, (0..num_jobs).collect::<Vec<_>>());
                let threads: HashSet<_> = states.iter().map(|(thread, _)| thread).collect();
                assert_eq!(threads.len(), states.len());
                assert!(states.len() <= 1 + num_helpers.min(num_jobs.saturating_sub(1)), "{num_helpers} {num_jobs}");
            }
        }
    }

    #[test]
    fn helpers_work_while_jobs_are_handed_out() {
        let done = AtomicUsize::new(0);
        let work = each(|_| _ = done.fetch_add(1, Ordering::Relaxed));
        let produce = |producer: Producer<'_, usize>| {
            (0..3).for_each(|job| producer.push(job));
            while done.load(Ordering::Relaxed) < 3 {
                thread::yield_now();
            }
        };
        share(1, work, produce);
    }

    #[test]
    fn jobs_without_finish_are_dropped() {
        let produce = |producer: Producer<'_, usize>| (0..10).for_each(|job| producer.push(job));
        share(2, each(|_| endless(&AtomicUsize::new(0))), produce);
    }

    #[test]
    fn the_calling_thread_takes_single_jobs() {
        for num_helpers in [0, 1, 3] {
            let done = AtomicUsize::new(0);
            let work = each(|_| _ = done.fetch_add(1, Ordering::Relaxed));
            let produce = |producer: Producer<'_, usize>| {
                assert_eq!(producer.pop(), None);
                (0..1000).for_each(|job| producer.push(job));
                let num_own = (0..).take_while(|_| producer.pop().is_some()).count();
                producer.finish();
                num_own
            };
            let (num_own, _) = share(num_helpers, work, produce);
            assert_eq!(done.load(Ordering::Relaxed), 1000 - num_own);
            assert!(num_own == 1000 || num_helpers > 0);
        }
    }

    #[test]
    fn helpers_stop_with_the_calling_thread() {
        let steps = AtomicUsize::new(0);
        let asked = Cell::new(0);
        let stop = move || asked.replace(asked.get() + 1) == 100;
        let work = || share(3, each(|_| endless(&steps)), hand_out(4));
        assert_eq!(interruptible(stop, work), Err(Interrupted));
        assert!(steps.load(Ordering::Relaxed) >= 98);
    }

    #[test]
    fn the_calling_thread_asks_while_it_waits() {
        let steps = AtomicUsize::new(0);
        let caller = thread::current().id();
        let asked = Rc::new(Cell::new(0));
        let stop = {
            let asked = Rc::clone(&asked);
            move || asked.replace(asked.get() + 1) == 2
        };
        // The other thread has one of the jobs when this one takes its own.
        let work = each(|_| {
            if thread::current().id() == caller {
                (0..1000).for_each(|_| thread::yield_now());
            } else {
                endless(&steps);
            }
        });
        let produce = |producer: Producer<'_, usize>| {
            (0..2).for_each(|job| producer.push(job));
            while steps.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            producer.finish();
        };
        assert_eq!(interruptible(stop, || share(1, work, produce)), Err(Interrupted));
        assert_eq!(asked.get(), 3);
    }

    #[test]
    #[should_panic(expected = "a bug in a helper")]
    fn a_panic_of_a_helper_reaches_the_caller() {
        let caller = thread::current().id();
        let work = each(|_| {
            assert_eq!(thread::current().id(), caller, "a bug in a helper");
            thread::sleep(std::time::Duration::from_millis(1));
        });
        share(2, work, hand_out(1000));
    }
}
