//! Who reads: the calling thread where all is in one package, else a thread in each package.
//! A read from another package interrupts a CPU there, which costs four times as much.

use super::bank::{Bank, Trouble};
use numakit_model::CpuSet;
use numakit_sys::gate::Gate;
use numakit_sys::perf::Counters;
use numakit_sys::sched;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a reader is waited for. One that takes longer has nothing to say in that tick.
pub const LONGEST_READ: Duration = Duration::from_secs(1);

/// A reader needs little stack, and there may be many.
const STACK: usize = 128 << 10;

/// The banks of one package.
#[derive(Debug)]
pub struct Shelf {
    /// Where to read them from; empty: anywhere.
    pub cpus: CpuSet,
    /// Those on its CPUs.
    pub banks: Vec<Bank>,
}

/// All banks, with those who read them.
#[derive(Debug)]
pub struct Readers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    counters: Arc<dyn Counters>,
    // A reader holds the lock of its own shelf while it is out, and nobody else then tries to
    // get it; so nobody ever waits for a lock.
    shelves: Vec<Mutex<Shelf>>,
    gate: Gate,
    woke: AtomicU64,
}

impl Readers {
    /// Starts threads if there are several shelves.
    pub fn start(counters: Arc<dyn Counters>, shelves: Vec<Shelf>) -> Self {
        let gate = Gate::new(shelves.len());
        let shelves = shelves.into_iter().map(Mutex::new).collect();
        let shared = Arc::new(Shared { counters, shelves, gate, woke: AtomicU64::new(0) });
        let mut readers = Self { shared, threads: Vec::new() };
        // Without threads everything is read all the same, only at a higher price.
        if readers.shared.shelves.len() > 1 && readers.spawn().is_err() {
            readers.end();
        }
        readers
    }

    fn spawn(&mut self) -> io::Result<()> {
        let realtime = sched::is_realtime();
        for member in 0..self.shared.shelves.len() {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name(format!("reader-{member}")).stack_size(STACK);
            self.threads.push(thread.spawn(move || shared.serve(member, realtime))?);
        }
        Ok(())
    }

    /// Reads everything.
    pub fn read(&self, woke: u64) {
        if self.threads.is_empty() {
            self.shared.shelves.iter().for_each(|s| lock(s).read(&*self.shared.counters, woke));
        } else {
            self.shared.woke.store(woke, Ordering::Release);
            self.shared.gate.open(LONGEST_READ);
        }
    }

    /// Each shelf after a read; `None` for one whose reader is late.
    pub fn shelves(&self) -> impl Iterator<Item = Option<MutexGuard<'_, Shelf>>> {
        self.shared.shelves.iter().enumerate().map(|(member, shelf)| {
            let back = self.threads.is_empty() || self.shared.gate.is_back(member);
            if back { try_lock(shelf) } else { None }
        })
    }

    fn end(&mut self) {
        self.shared.gate.close();
        for (member, thread) in self.threads.drain(..).enumerate() {
            // One that hangs in the kernel would hold up the end of the program.
            if self.shared.gate.is_back(member) {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn serve(&self, member: usize, realtime: bool) {
        let cpus = lock(&self.shelves[member]).cpus.clone();
        // What is refused here costs time and nothing else.
        if !cpus.is_empty() {
            let _ = self.counters.stay_on(&cpus);
        }
        if realtime {
            let _ = sched::set_realtime();
        }
        while self.gate.pass(member) {
            let woke = self.woke.load(Ordering::Acquire);
            lock(&self.shelves[member]).read(&*self.counters, woke);
            self.gate.back(member);
        }
    }
}

impl Shelf {
    /// Why values of the last read are missing.
    pub fn troubles(&self) -> impl Iterator<Item = Trouble> {
        self.banks.iter().flat_map(Bank::troubles)
    }

    fn read(&mut self, counters: &dyn Counters, woke: u64) {
        self.banks.iter_mut().for_each(|bank| bank.read(counters, woke));
    }
}

fn lock(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock(shelf: &Mutex<Shelf>) -> Option<MutexGuard<'_, Shelf>> {
    match shelf.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
