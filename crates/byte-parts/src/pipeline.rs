use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};
use std::vec::Vec;

/// Bounds of [`in_order`]: threads, and jobs and bytes in flight.
///
/// A job is in flight from the moment it is taken from its iterator until its result is handed out.
#[derive(Debug)]
pub struct Bounds {
    threads: usize,
    jobs: usize,
    bytes: u64,
    stack_size: Option<usize>,
}

impl Bounds {
    /// Allows `threads` threads, the calling one included, and 16 jobs in flight for each of them.
    pub fn new(threads: NonZeroUsize) -> Self {
        let threads = threads.get();
        // As many as there can be, if that is too many for a number.
        Bounds { threads, jobs: threads.saturating_mul(16), bytes: u64::MAX, stack_size: None }
    }

    /// Sets the number of jobs in flight; 0 is 1.
    #[must_use]
    pub fn with_jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs.max(1);
        self
    }

    /// Limits the total size of jobs in flight to `bytes`, including the result that was handed out last. A larger
    /// job is in flight alone. Default: no bound.
    #[must_use]
    pub fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the stack size of started threads. Default: the standard library's.
    #[must_use]
    pub fn with_stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }
}

/// Runs jobs on several threads, and returns their results in the order of the jobs.
///
/// Each job comes with the bytes that it and its result hold, for [`Bounds::with_bytes`]. `worker` makes the function that
/// runs jobs: one for each thread, so that it can have a state of its own. The jobs are taken from their iterator on the
/// calling thread, which works itself while it waits for a result. Threads start with the second job; one that the system
/// refuses is not missed. Dropping the results drops the jobs that have not begun.
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::thread;
///
/// use byte_parts::{Bounds, in_order};
///
/// let bounds = Bounds::new(NonZeroUsize::new(4).unwrap()).with_bytes(1 << 20);
/// let texts = ["one", "three", "fifteen"];
/// let jobs = texts.iter().map(|text| (text, 1000));
/// let sizes: Vec<usize> =
///     thread::scope(|scope| in_order(scope, bounds, jobs, || |text: &&str| text.len()).collect());
/// assert_eq!(sizes, [3, 5, 7]);
/// ```
///
/// # Panics
///
/// A panic of a worker is passed on by the iterator, or by the scope where the results are dropped before.
pub fn in_order<'scope, J, R, W>(
    scope: &'scope Scope<'scope, '_>,
    bounds: Bounds,
    jobs: impl IntoIterator<Item = (J, u64)>,
    worker: impl FnMut() -> W,
) -> impl Iterator<Item = R>
where
    J: Send + 'scope,
    R: Send + 'scope,
    W: FnMut(J) -> R + Send + 'scope,
{
    Results {
        bounds,
        jobs: jobs.into_iter().fuse(),
        waiting: None,
        worker,
        own: None,
        scope,
        threads: Vec::new(),
        shared: Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() }),
        held: VecDeque::new(),
        bytes: 0,
        last: 0,
        begun: 0,
        done: 0,
    }
}

/// Results that come in order.
struct Results<'scope, 'env, I, J, F, W, R> {
    bounds: Bounds,
    jobs: I,
    /// A job for which there is no room yet.
    waiting: Option<(J, u64)>,
    worker: F,
    /// The function of this thread, made when it is needed.
    own: Option<W>,
    scope: &'scope Scope<'scope, 'env>,
    threads: Vec<ScopedJoinHandle<'scope, ()>>,
    shared: Arc<Shared<J, R>>,
    /// Bytes of each job in flight, and of all of them.
    held: VecDeque<u64>,
    bytes: u128,
    /// Bytes of the result that was handed out last.
    last: u64,
    /// Number of jobs that were ever in flight, and of results that were handed out.
    begun: usize,
    done: usize,
}

/// State that the threads share.
struct Shared<J, R> {
    state: Mutex<State<J, R>>,
    changed: Condvar,
}

struct State<J, R> {
    queue: VecDeque<(usize, J)>,
    results: BTreeMap<usize, R>,
    stopped: bool,
}

impl<J, R> Default for State<J, R> {
    fn default() -> Self {
        State { queue: VecDeque::new(), results: BTreeMap::new(), stopped: false }
    }
}

impl<J, R> Shared<J, R> {
    fn lock(&self) -> MutexGuard<'_, State<J, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State<J, R>>) -> MutexGuard<'s, State<J, R>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State<J, R>)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.change(|state| {
            state.stopped = true;
            state.queue.clear();
        });
    }

    /// Waits for a job; `None` when there are no more.
    fn job(&self) -> Option<(usize, J)> {
        let mut state = self.lock();
        loop {
            match state.queue.pop_front() {
                None if !state.stopped => state = self.wait(state),
                job => return job,
            }
        }
    }

    fn work(&self, mut worker: impl FnMut(J) -> R) {
        let _stop = StopOnPanic(self);
        while let Some((number, job)) = self.job() {
            let result = worker(job);
            self.change(|state| drop(state.results.insert(number, result)));
        }
    }
}

/// Stops all threads where one of them panics.
struct StopOnPanic<'s, J, R>(&'s Shared<J, R>);

impl<J, R> Drop for StopOnPanic<'_, J, R> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

/// Next step of the calling thread.
enum Step<J, R> {
    HandOut(R),
    Work(usize, J),
    PassOn,
}

impl<'scope, I, J, F, W, R> Results<'scope, '_, I, J, F, W, R>
where
    I: Iterator<Item = (J, u64)>,
    J: Send + 'scope,
    R: Send + 'scope,
    F: FnMut() -> W,
    W: FnMut(J) -> R + Send + 'scope,
{
    /// Queues the jobs that there is room for.
    fn fill(&mut self) {
        while self.held.len() < self.bounds.jobs
            && let Some((job, bytes)) = self.waiting.take().or_else(|| self.jobs.next())
        {
            let total = self.bytes + u128::from(self.last) + u128::from(bytes);
            if total > self.bounds.bytes.into() && (self.bytes > 0 || self.last > 0) {
                self.waiting = Some((job, bytes));
                return;
            }
            let number = self.begun;
            self.begun = number + 1;
            self.held.push_back(bytes);
            self.bytes += u128::from(bytes);
            self.shared.change(|state| state.queue.push_back((number, job)));
            let helpers = self.threads.len() + 1;
            if helpers < self.bounds.threads && helpers < self.begun {
                self.start();
            }
        }
    }

    /// Starts a thread.
    fn start(&mut self) {
        let (shared, worker) = (Arc::clone(&self.shared), (self.worker)());
        let mut builder = Builder::new();
        if let Some(size) = self.bounds.stack_size {
            builder = builder.stack_size(size);
        }
        match builder.spawn_scoped(self.scope, move || shared.work(worker)) {
            Ok(thread) => self.threads.push(thread),
            // The others do it.
            Err(_) => self.bounds.threads = 0,
        }
    }

    fn step(&self) -> Step<J, R> {
        let mut state = self.shared.lock();
        loop {
            if state.stopped {
                return Step::PassOn;
            }
            if let Some(result) = state.results.remove(&self.done) {
                return Step::HandOut(result);
            }
            if let Some((number, job)) = state.queue.pop_front() {
                return Step::Work(number, job);
            }
            state = self.shared.wait(state);
        }
    }

    /// Passes the panic of a thread on.
    fn pass_on(&mut self) {
        for thread in self.threads.drain(..) {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    }
}

impl<'scope, I, J, F, W, R> Iterator for Results<'scope, '_, I, J, F, W, R>
where
    I: Iterator<Item = (J, u64)>,
    J: Send + 'scope,
    R: Send + 'scope,
    F: FnMut() -> W,
    W: FnMut(J) -> R + Send + 'scope,
{
    type Item = R;

    fn next(&mut self) -> Option<R> {
        self.last = 0;
        self.fill();
        let bytes = self.held.pop_front()?;
        loop {
            match self.step() {
                Step::HandOut(result) => {
                    self.done += 1;
                    self.bytes -= u128::from(bytes);
                    self.last = bytes;
                    self.fill();
                    return Some(result);
                }
                Step::Work(number, job) => {
                    let result = self.own.get_or_insert_with(&mut self.worker)(job);
                    self.shared.change(|state| drop(state.results.insert(number, result)));
                }
                Step::PassOn => {
                    self.pass_on();
                    return None;
                }
            }
        }
    }
}

impl<I, J, F, W, R> Drop for Results<'_, '_, I, J, F, W, R> {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
