//! Which thread of the pool works next, and that each work is done.

use std::thread::ThreadId;

use super::super::flow::Closer;
use super::super::pool::Pool;
use super::*;

const THREADS: usize = 4;
/// More than there are threads.
const CALLERS: usize = 8;
const ROUNDS: usize = 1000;
/// The least message limit: nothing here has messages.
const LIMIT: usize = 0;

#[test]
fn the_thread_that_was_busy_last_works_next() {
    let threads = Threads::new();
    let [first, last] = [0; 2].map(|_| threads.begin());
    let (one, other) = (first.thread, last.thread);
    assert_ne!(one, other);
    first.end();
    threads.until_idle(THREADS - 1);
    last.end();
    threads.until_idle(THREADS);

    for _ in 0..2 * THREADS {
        let next = threads.begin();
        assert_eq!(next.thread, other);
        next.end();
        threads.until_idle(THREADS);
    }

    let both = [0; 2].map(|_| threads.begin());
    assert_eq!(both.each_ref().map(|busy| busy.thread), [other, one]);
    both.into_iter().for_each(Busy::end);
}

#[test]
fn no_work_is_lost_while_threads_begin_wait_and_panic() {
    let mut threads = Threads::new();
    give(&threads.pool, || panic!("at work"));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let pool = Arc::clone(&threads.pool);
            thread::spawn(move || {
                for _ in 0..ROUNDS {
                    let (done, told) = mpsc::channel();
                    give(&pool, move || done.send(()).unwrap());
                    pool.sweep();
                    told.recv_timeout(PATIENCE).unwrap();
                }
            })
        })
        .collect();
    for _ in 0..THREADS {
        threads.add();
    }

    for caller in callers {
        caller.join().unwrap();
    }
    threads.until_idle(2 * THREADS);
}

#[test]
fn a_pool_that_closes_ends_its_threads_behind_what_is_to_be_closed() {
    let mut threads = Threads::new();
    let busy = threads.begin();
    threads.until_idle(THREADS - 1);
    let (done, told) = mpsc::channel();
    let (before, after) = (done.clone(), done);

    give(&threads.pool, move || before.send(()).unwrap());
    threads.pool.close();
    give(&threads.pool, move || after.send(()).unwrap());
    busy.end();
    threads.join();

    assert_eq!(told.try_iter().count(), 2);
    assert_eq!(threads.pool.idle(), 0);
}

/// A pool and its threads, which end when it is dropped.
struct Threads {
    pool: Arc<Pool<Actor>>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Some that wait.
    fn new() -> Self {
        let mut threads = Self {
            pool: Pool::new(),
            threads: Vec::new(),
        };
        for _ in 0..THREADS {
            threads.add();
        }
        threads.until_idle(THREADS);
        threads
    }

    fn add(&mut self) {
        let pool = Arc::clone(&self.pool);
        self.threads.push(thread::spawn(move || {
            pool.work(&Actor(Arc::default()), LIMIT, &refusals());
        }));
    }

    fn until_idle(&self, count: usize) {
        eventually(|| self.pool.idle() == count);
    }

    /// Gives a thread work that goes on until it is ended.
    fn begin(&self) -> Busy {
        let ((begun, begins), (end, ended)) = (mpsc::channel(), mpsc::channel::<()>());
        give(&self.pool, move || {
            begun.send(thread::current().id()).unwrap();
            // It ends where the other side is dropped.
            let _ = ended.recv();
        });
        Busy {
            thread: begins.recv_timeout(PATIENCE).unwrap(),
            end,
        }
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.pool.close();
        self.join();
    }
}

struct Busy {
    thread: ThreadId,
    end: mpsc::Sender<()>,
}

impl Busy {
    fn end(self) {
        drop(self.end);
    }
}

/// Queues work: the closing of a source.
fn give(pool: &Arc<Pool<Actor>>, work: impl FnOnce() + Send + 'static) {
    Closer::close(&**pool, Box::new(Work(Some(work))));
}

struct Work<F>(Option<F>);

impl<F: FnOnce() + Send> Source for Work<F> {
    fn next(&mut self) -> Next {
        Next::End
    }

    fn close(&mut self) {
        self.0.take().unwrap()();
    }
}
