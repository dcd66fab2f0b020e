//! Work on several threads: two tasks at once ([`join`]), or jobs that the calling thread hands out ([`share`]).

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

use crate::work::interrupt::{self, interruptible};

/// How often the calling thread checks for an interrupt while it waits for the others.
const POLL: Duration = Duration::from_millis(25);

/// Runs two tasks at once and returns both results: the second one on its own thread, or after the first one if no
/// thread can be started. Then checks for an interrupt.
pub(crate) fn join<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
    if cfg!(not(feature = "threads")) {
        return (first(), second());
    }
    let results = thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, &second);
        let first = first();
        match thread.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(second)) => (first, second),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => (first, second()),
        }
    });
    interrupt::check();
    results
}

/// Calls `step` with every job that `lead` pushes, on this thread and on at most `num_helpers` others, each with its
/// own state. Returns what `lead` returns, and the states.
///
/// A helper starts when two jobs wait, and starts the next one if more do, so few jobs start few threads and many threads
/// start quickly. While `lead` pushes, only the helpers work; in [`Lead::finish`], this thread does too. It alone checks
/// for an interrupt (see [`interruptible`]); the helpers stop when it leaves. If one panics, so does `finish`.
///
/// Jobs that are left when `lead` returns without `finish` are not done.
pub fn share<J: Send, S: Send, R>(
    num_helpers: usize,
    state: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, J) + Sync,
    lead: impl FnOnce(Lead<'_, J>) -> R,
) -> (R, Vec<S>) {
    let jobs = Jobs {
        waiting: VecDeque::new(),
        is_closed: false,
        num_spare: if cfg!(feature = "threads") { num_helpers } else { 0 },
        num_running: 1,
        num_busy: 0,
        states: Vec::new(),
        failure: None,
    };
    let shared = Shared { state, step, jobs: Mutex::new(jobs), changed: Condvar::new(), is_stopped: Arc::default() };
    let result = thread::scope(|scope| {
        let _guard = StopHelpers(&shared);
        let start = || shared.start_helper(scope);
        let work_once = || shared.work_once(&start);
        lead(Lead { push: &|job| shared.push(job, &start), work_once: &work_once, finish: &|| shared.finish(&start) })
    });
    (result, shared.jobs.into_inner().unwrap_or_else(PoisonError::into_inner).states)
}

/// Hands out jobs.
pub struct Lead<'a, J> {
    push: &'a (dyn Fn(J) + Sync),
    work_once: &'a (dyn Fn() -> bool + Sync),
    finish: &'a (dyn Fn() + Sync),
}

impl<J> Lead<'_, J> {
    /// Adds a job.
    pub fn push(&self, job: J) {
        (self.push)(job);
    }

    /// Does a job that waits, with a state that is dropped. Returns false if none waits.
    pub fn work_once(&self) -> bool {
        (self.work_once)()
    }

    /// Works until all jobs are done. None may be added afterwards.
    ///
    /// # Panics
    /// If a helper did.
    pub fn finish(&self) {
        (self.finish)();
    }
}

/// What the threads share.
struct Shared<J, S, N, W> {
    state: N,
    step: W,
    jobs: Mutex<Jobs<J, S>>,
    /// Notified when there is another job or none will come, and when a helper ends.
    changed: Condvar,
    is_stopped: Arc<AtomicBool>,
}

struct Jobs<J, S> {
    waiting: VecDeque<J>,
    /// No job will be added.
    is_closed: bool,
    /// Helpers that may still be started.
    num_spare: usize,
    /// Threads that take jobs, or will. This one counts from the start.
    num_running: usize,
    /// Those that have a job.
    num_busy: usize,
    /// Of the threads that have ended their work.
    states: Vec<S>,
    /// The panic of a helper.
    failure: Option<Box<dyn Any + Send>>,
}

impl<J, S> Jobs<J, S> {
    /// Whether one more helper is to be started: more jobs wait than threads are about to take one. It counts as
    /// running.
    fn wants_helper(&mut self) -> bool {
        let wants = self.num_spare > 0 && self.waiting.len() > self.num_running - self.num_busy;
        self.num_spare -= usize::from(wants);
        self.num_running += usize::from(wants);
        wants
    }
}

impl<J: Send, S: Send, N: Fn() -> S + Sync, W: Fn(&mut S, J) + Sync> Shared<J, S, N, W> {
    fn lock(&self) -> MutexGuard<'_, Jobs<J, S>> {
        // The lock is never held while other code runs, so a panic elsewhere leaves the jobs intact.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If the thread cannot be started, the others do its work.
    fn start_helper<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let helper = move || self.help(&|| self.start_helper(scope));
        if thread::Builder::new().spawn_scoped(scope, helper).is_err() {
            self.lock().num_running -= 1;
        }
    }

    fn help(&self, start: &dyn Fn()) {
        let is_stopped = Arc::clone(&self.is_stopped);
        let work = || interruptible(move || is_stopped.load(Ordering::Relaxed), || self.work(start));
        let result = catch_unwind(AssertUnwindSafe(work));
        let mut jobs = self.lock();
        jobs.num_running -= 1;
        match result {
            Ok(state) => jobs.states.extend(state),
            Err(panic) => jobs.failure = Some(panic),
        }
        self.changed.notify_all();
    }

    /// Does jobs until none will come.
    fn work(&self, start: &dyn Fn()) -> S {
        let mut state = (self.state)();
        let mut next = self.take(false, start);
        while let Some(job) = next {
            interrupt::check();
            (self.step)(&mut state, job);
            next = self.take(true, start);
        }
        state
    }

    /// Does a job, if one waits.
    fn work_once(&self, start: &dyn Fn()) -> bool {
        let mut jobs = self.lock();
        let Some(job) = jobs.waiting.pop_front().filter(|_| jobs.failure.is_none()) else { return false };
        jobs.num_busy += 1;
        let wants_helper = jobs.wants_helper();
        drop(jobs);
        if wants_helper {
            start();
        }
        interrupt::check();
        (self.step)(&mut (self.state)(), job);
        self.lock().num_busy -= 1;
        true
    }

    /// Waits for the next job. `was_busy` says whether this thread has just finished one.
    fn take(&self, was_busy: bool, start: &dyn Fn()) -> Option<J> {
        let mut jobs = self.lock();
        jobs.num_busy -= usize::from(was_busy);
        while jobs.waiting.is_empty() && !jobs.is_closed {
            jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
        let job = jobs.waiting.pop_front().filter(|_| jobs.failure.is_none())?;
        jobs.num_busy += 1;
        let wants_helper = jobs.wants_helper();
        drop(jobs);
        if wants_helper {
            start();
        }
        Some(job)
    }

    fn push(&self, job: J, start: &dyn Fn()) {
        let mut jobs = self.lock();
        jobs.waiting.push_back(job);
        // A helper that is about to take a job starts the next one.
        let wants_helper = jobs.num_running == jobs.num_busy + 1 && jobs.wants_helper();
        drop(jobs);
        if wants_helper {
            start();
        }
        self.changed.notify_one();
    }

    fn finish(&self, start: &dyn Fn()) {
        self.close();
        let state = self.work(start);
        let mut jobs = self.lock();
        jobs.num_running -= 1;
        jobs.states.push(state);
        loop {
            if let Some(panic) = jobs.failure.take() {
                drop(jobs);
                resume_unwind(panic);
            }
            if jobs.num_running == 0 {
                return;
            }
            let (locked, wait) = self.changed.wait_timeout(jobs, POLL).unwrap_or_else(PoisonError::into_inner);
            jobs = locked;
            if wait.timed_out() {
                drop(jobs);
                interrupt::check();
                jobs = self.lock();
            }
        }
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

/// Ends the helpers when the calling thread leaves. Unless it is unwinding, they have nothing left to do.
struct StopHelpers<'a, J: Send, S: Send, N: Fn() -> S + Sync, W: Fn(&mut S, J) + Sync>(&'a Shared<J, S, N, W>);

impl<J: Send, S: Send, N: Fn() -> S + Sync, W: Fn(&mut S, J) + Sync> Drop for StopHelpers<'_, J, S, N, W> {
    fn drop(&mut self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
        self.0.lock().waiting.clear();
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashSet;
    use std::rc::Rc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::{Lead, share};
    use crate::work::interrupt::{self, Interrupted, interruptible};

    /// Hands out jobs and takes part.
    fn hand_out(num_jobs: usize) -> impl FnOnce(Lead<'_, usize>) {
        move |lead| {
            (0..num_jobs).for_each(|job| lead.push(job));
            lead.finish();
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
                let state = || (thread::current().id(), Vec::new());
                let ((), states) = share(num_helpers, state, |(_, jobs), job| jobs.push(job), hand_out(num_jobs));
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
        let step = |(): &mut (), _| _ = done.fetch_add(1, Ordering::Relaxed);
        let lead = |lead: Lead<'_, usize>| {
            (0..3).for_each(|job| lead.push(job));
            while done.load(Ordering::Relaxed) < 3 {
                thread::yield_now();
            }
        };
        share(1, || (), step, lead);
    }

    #[test]
    fn jobs_without_finish_are_dropped() {
        let lead = |lead: Lead<'_, usize>| (0..10).for_each(|job| lead.push(job));
        share(2, || (), |(), _| endless(&AtomicUsize::new(0)), lead);
    }

    #[test]
    fn the_calling_thread_does_single_jobs() {
        for num_helpers in [0, 1, 3] {
            let done = AtomicUsize::new(0);
            let step = |(): &mut (), _| _ = done.fetch_add(1, Ordering::Relaxed);
            let lead = |lead: Lead<'_, usize>| {
                assert!(!lead.work_once());
                (0..1000).for_each(|job| lead.push(job));
                let num_own = (0..).take_while(|_| lead.work_once()).count();
                assert!(num_own <= done.load(Ordering::Relaxed));
                lead.finish();
                num_own
            };
            let (num_own, _) = share(num_helpers, || (), step, lead);
            assert_eq!(done.load(Ordering::Relaxed), 1000);
            assert!(num_own == 1000 || num_helpers > 0);
        }
    }

    #[test]
    fn helpers_stop_with_the_calling_thread() {
        let steps = AtomicUsize::new(0);
        let asked = Cell::new(0);
        let stop = move || asked.replace(asked.get() + 1) == 100;
        let work = || share(3, || (), |(), _| endless(&steps), hand_out(4));
        assert_eq!(interruptible(stop, work), Err(Interrupted));
        assert!(steps.load(Ordering::Relaxed) >= 98);
    }

    #[test]
    fn the_calling_thread_asks_while_it_waits() {
        let (steps, caller) = (AtomicUsize::new(0), thread::current().id());
        let asked = Rc::new(Cell::new(0));
        let stop = {
            let asked = Rc::clone(&asked);
            move || asked.replace(asked.get() + 1) == 2
        };
        // The other thread has one of the jobs when this one takes its own.
        let step = |(): &mut (), _| match thread::current().id() == caller {
            true => (0..1000).for_each(|_| thread::yield_now()),
            false => endless(&steps),
        };
        let lead = |lead: Lead<'_, usize>| {
            (0..2).for_each(|job| lead.push(job));
            while steps.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            lead.finish();
        };
        assert_eq!(interruptible(stop, || share(1, || (), step, lead)), Err(Interrupted));
        assert_eq!(asked.get(), 3);
    }

    #[test]
    #[should_panic(expected = "a bug in a helper")]
    fn a_panic_of_a_helper_reaches_the_caller() {
        let caller = thread::current().id();
        let step = |(): &mut (), _| match thread::current().id() == caller {
            true => thread::sleep(std::time::Duration::from_millis(1)),
            false => panic!("a bug in a helper"),
        };
        share(2, || (), step, hand_out(1000));
    }
}
