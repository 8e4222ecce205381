//! Reads the banks: in the calling thread if all are in one package, otherwise in a thread per package.
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

/// Maximum wait for a reader. One that takes longer has no values in that tick.
pub const LONGEST_READ: Duration = Duration::from_secs(1);

/// Stack of a reader.
const STACK: usize = 128 << 10;

/// The banks of one package.
#[derive(Debug)]
pub struct PackageBanks {
    /// CPUs on which the reader may run; empty: any.
    pub cpus: CpuSet,
    /// The banks of its CPUs.
    pub banks: Vec<Bank>,
}

/// All banks and their readers.
#[derive(Debug)]
pub struct Readers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    counters: Arc<dyn Counters>,
    // A reader holds the lock of its banks while it reads, and no other thread then tries to lock
    // them, so no thread ever waits for a lock.
    all_banks: Vec<Mutex<PackageBanks>>,
    gate: Gate,
    woke: AtomicU64,
}

impl Readers {
    /// Starts threads if there are several packages.
    pub fn start(counters: Arc<dyn Counters>, all_banks: Vec<PackageBanks>) -> Self {
        let gate = Gate::new(all_banks.len());
        let all_banks = all_banks.into_iter().map(Mutex::new).collect();
        let shared = Arc::new(Shared { counters, all_banks, gate, woke: AtomicU64::new(0) });
        let mut readers = Self { shared, threads: Vec::new() };
        // Without threads, reading works too, but costs more.
        if readers.shared.all_banks.len() > 1 && readers.spawn().is_err() {
            readers.end();
        }
        readers
    }

    fn spawn(&mut self) -> io::Result<()> {
        let realtime = sched::is_realtime();
        for member in 0..self.shared.all_banks.len() {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name(format!("reader-{member}")).stack_size(STACK);
            self.threads.push(thread.spawn(move || shared.serve(member, realtime))?);
        }
        Ok(())
    }

    /// Reads everything.
    pub fn read(&self, woke: u64) {
        if self.threads.is_empty() {
            self.shared.all_banks.iter().for_each(|s| lock(s).read(&*self.shared.counters, woke));
        } else {
            self.shared.woke.store(woke, Ordering::Release);
            self.shared.gate.open(LONGEST_READ);
        }
    }

    /// The banks of each package after a read; `None` if its reader is late.
    pub fn all_banks(&self) -> impl Iterator<Item = Option<MutexGuard<'_, PackageBanks>>> {
        self.shared.all_banks.iter().enumerate().map(|(member, package_banks)| {
            let back = self.threads.is_empty() || self.shared.gate.is_back(member);
            if back { try_lock(package_banks) } else { None }
        })
    }

    fn end(&mut self) {
        self.shared.gate.close();
        for (member, thread) in self.threads.drain(..).enumerate() {
            // Do not wait for a reader that hangs in the kernel.
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
        let cpus = lock(&self.all_banks[member]).cpus.clone();
        // If this fails, reading is only slower.
        if !cpus.is_empty() {
            let _ = self.counters.pin_to(&cpus);
        }
        if realtime {
            let _ = sched::set_realtime();
        }
        while self.gate.pass(member) {
            let woke = self.woke.load(Ordering::Acquire);
            lock(&self.all_banks[member]).read(&*self.counters, woke);
            self.gate.back(member);
        }
    }
}

impl PackageBanks {
    /// Why values of the last read are missing.
    pub fn troubles(&self) -> impl Iterator<Item = Trouble> {
        self.banks.iter().flat_map(Bank::troubles)
    }

    fn read(&mut self, counters: &dyn Counters, woke: u64) {
        self.banks.iter_mut().for_each(|bank| bank.read(counters, woke));
    }
}

fn lock(package_banks: &Mutex<PackageBanks>) -> MutexGuard<'_, PackageBanks> {
    package_banks.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock(package_banks: &Mutex<PackageBanks>) -> Option<MutexGuard<'_, PackageBanks>> {
    match package_banks.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
