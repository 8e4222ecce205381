//! The threads of a work with allocators, and what they share.

use crate::alloc::work::{AllocWork, WorkError, WorkRequest};
use numakit_model::CpuSet;
use numakit_sys::loops::HeapBlock;
use numakit_sys::{clock, sched};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

/// Sizes of blocks that are drawn from.
const SIZES: usize = 256;
/// Operations between two looks at the clock; blocks that are passed on together.
const BATCH: usize = 64;
/// Blocks that may wait for a thread.
const INBOX: usize = 32 * BATCH;
/// Live bytes that a thread counts alone before it adds them to the count of all threads.
const UNTOLD: u64 = 64 << 10;
/// Bytes between two writes to a block: each page of it becomes resident.
const STEP: usize = 4096;
/// When a thread's memory has shrunk, one in this number of its blocks is left.
const LEFT: usize = 10;
/// Before anything is timed: how often each block is replaced on average, and the number of waves.
const WARM_TIMES: usize = 4;
const WARM_WAVES: usize = 4;

/// A block, and the node of the thread that got it.
pub(crate) struct Held {
    pub block: HeapBlock,
    pub node: u32,
}

pub(crate) type Table = Vec<Option<Held>>;

/// What threads share.
pub(crate) struct Crew<'a> {
    pub request: &'a WorkRequest,
    /// The length of a table.
    pub slots: usize,
    /// The barrier for the threads and for the thread that measures.
    pub gate: Barrier,
    sizes: Vec<usize>,
    wave: Barrier,
    tables: Vec<Mutex<Table>>,
    inboxes: Vec<Mutex<Vec<Held>>>,
    /// When to end, and when the last thread did.
    end: AtomicU64,
    last: AtomicU64,
    over: AtomicBool,
    operations: AtomicU64,
    live: AtomicI64,
    most: AtomicI64,
    untold: i64,
    refused: Mutex<Option<WorkError>>,
}

impl<'a> Crew<'a> {
    pub fn new(request: &'a WorkRequest) -> Self {
        let threads = request.seats.len();
        let (least, most) = request.work.sizes();
        let (low, ratio) = (least as f64, most as f64 / least as f64);
        let size = |at: usize| (low * ratio.powf((at as f64 + 0.5) / SIZES as f64)) as usize;
        let sizes: Vec<usize> = (0..SIZES).map(size).collect();
        let mean = (sizes.iter().sum::<usize>() / SIZES) as u64;
        let inbox = || Mutex::new(Vec::with_capacity(INBOX));
        Self {
            request,
            slots: usize::try_from(request.bytes / mean).unwrap_or(usize::MAX).max(1),
            gate: Barrier::new(threads + 1),
            sizes,
            wave: Barrier::new(threads),
            tables: (0..threads).map(|_| Mutex::default()).collect(),
            inboxes: (0..threads).map(|_| inbox()).collect(),
            end: AtomicU64::new(0),
            last: AtomicU64::new(0),
            over: AtomicBool::new(false),
            operations: AtomicU64::new(0),
            live: AtomicI64::new(0),
            most: AtomicI64::new(0),
            untold: UNTOLD.min(request.bytes / 64) as i64,
            refused: Mutex::default(),
        }
    }

    /// The table of a thread; it has one user at a time.
    pub fn table(&self, of: usize) -> MutexGuard<'_, Table> {
        self.tables[of].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inbox(&self, of: usize) -> MutexGuard<'_, Vec<Held>> {
        self.inboxes[of].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets when to end, by the clock.
    pub fn end_at(&self, end: u64) {
        self.end.store(end, Ordering::Relaxed);
    }

    /// When the last thread ended.
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// The maximum of live bytes so far.
    pub fn live(&self) -> u64 {
        self.most.load(Ordering::Relaxed).unsigned_abs()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || clock::monotonic() >= self.end.load(Ordering::Relaxed)
    }

    fn refuse(&self, error: WorkError) {
        self.over.store(true, Ordering::Relaxed);
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Notes the reason if a thread ended with a panic.
    pub fn check(&self, joined: std::thread::Result<()>) {
        if joined.is_err() {
            self.refuse(WorkError::Failed);
        }
    }

    /// The first thing that was refused.
    pub fn refused(&self) -> Result<(), WorkError> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// A thread.
pub(crate) struct Member<'a> {
    pub crew: &'a Crew<'a>,
    /// The thread's number.
    pub me: usize,
    node: u32,
    random: u64,
    live: i64,
    operations: u64,
    /// Slots that have a block, in waves.
    used: usize,
}

impl<'a> Member<'a> {
    /// Binds the calling thread. A thread that cannot be bound takes part too, since the others wait for it.
    pub fn seated(crew: &'a Crew<'a>, me: usize) -> Self {
        let seat = crew.request.seats[me];
        if let Err(error) = sched::set_affinity(&CpuSet::range(seat.cpu, seat.cpu)) {
            crew.refuse(WorkError::Cpu { cpu: seat.cpu, why: error.to_string() });
        }
        let random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(me as u64 + 1);
        Self { crew, me, node: seat.node, random, live: 0, operations: 0, used: 0 }
    }

    /// Adds the thread's counts to those of all threads, and notes the reason if its work failed.
    pub fn leave(mut self, done: Result<(), WorkError>) {
        if let Err(error) = done {
            self.crew.refuse(error);
        }
        self.tell();
        self.crew.operations.fetch_add(self.operations, Ordering::Relaxed);
        self.crew.last.fetch_max(clock::monotonic(), Ordering::Relaxed);
    }

    /// A random number below this one (xorshift64*).
    fn below(&mut self, most: usize) -> usize {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        ((self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % most.max(1)
    }

    fn get(&mut self) -> Result<Held, WorkError> {
        let size = self.crew.sizes[self.below(SIZES)];
        let mut block = HeapBlock::new(size).map_err(|_| WorkError::NoBlock(size))?;
        block.touch(STEP);
        self.count(size as i64);
        Ok(Held { block, node: self.node })
    }

    fn free(&mut self, held: Option<Held>) {
        if let Some(held) = held {
            self.count(-(held.block.bytes() as i64));
        }
    }

    fn count(&mut self, bytes: i64) {
        self.live += bytes;
        if self.live.abs() > self.crew.untold {
            self.tell();
        }
    }

    fn tell(&mut self) {
        let live = std::mem::take(&mut self.live);
        let now = self.crew.live.fetch_add(live, Ordering::Relaxed) + live;
        self.crew.most.fetch_max(now, Ordering::Relaxed);
    }

    /// The part of the work that is not timed: it fills the table and replaces blocks, so that the allocator has come to
    /// rest, or does the first waves.
    pub fn warm_up(&mut self, table: &mut Table) -> Result<(), WorkError> {
        let mut done = Ok(());
        if self.crew.request.work == AllocWork::Waves {
            for number in 0..WARM_WAVES {
                if done.is_ok() {
                    done = self.wave(table, number);
                }
                self.crew.wave.wait();
            }
        } else {
            for slot in &mut *table {
                *slot = Some(self.get()?);
            }
            done = self.replace_some(table, WARM_TIMES * table.len());
        }
        self.operations = 0;
        done
    }

    /// Frees blocks, and gets others for them.
    pub fn replace(&mut self, table: &mut Table) -> Result<(), WorkError> {
        // A table of large blocks has only few of them, and replacing one takes longer than reading the clock.
        let batch = table.len().min(BATCH);
        loop {
            self.replace_some(table, batch)?;
            if self.crew.is_over() {
                return Ok(());
            }
        }
    }

    fn replace_some(&mut self, table: &mut Table, count: usize) -> Result<(), WorkError> {
        for _ in 0..count {
            let slot = self.below(table.len());
            let old = table[slot].take();
            self.free(old);
            table[slot] = Some(self.get()?);
        }
        self.operations += count as u64;
        Ok(())
    }

    /// Gets blocks for another thread, half of all threads away, and keeps those that it is given until its table is full.
    pub fn pass(&mut self, table: &mut Table) -> Result<(), WorkError> {
        let threads = self.crew.request.seats.len();
        let to = (self.me + threads / 2) % threads;
        let (mut batch, mut given) = (Vec::with_capacity(BATCH), Vec::with_capacity(INBOX));
        let mut next = 0;
        loop {
            while batch.len() < BATCH {
                batch.push(self.get()?);
            }
            loop {
                self.take(table, &mut next, &mut given);
                let mut inbox = self.crew.inbox(to);
                if inbox.len() + batch.len() <= INBOX {
                    inbox.append(&mut batch);
                    break;
                }
                drop(inbox);
                if self.crew.is_over() {
                    break;
                }
                std::thread::yield_now();
            }
            if self.crew.is_over() {
                break;
            }
        }
        batch.into_iter().for_each(|held| self.free(Some(held)));
        self.take(table, &mut next, &mut given);
        Ok(())
    }

    /// Puts blocks that other threads have passed on into the table, in place of the oldest blocks.
    fn take(&mut self, table: &mut Table, next: &mut usize, given: &mut Vec<Held>) {
        std::mem::swap(&mut *self.crew.inbox(self.me), given);
        for held in given.drain(..) {
            let old = table[*next].replace(held);
            self.free(old);
            *next = (*next + 1) % table.len();
            self.operations += 1;
        }
    }

    /// Fills and empties the table in turns with the other threads. All threads must take the same decision, since they wait
    /// for each other: so a thread that has failed before takes part too.
    pub fn waves(&mut self, table: &mut Table, before: Result<(), WorkError>) -> Result<(), WorkError> {
        let mut done = before;
        for number in WARM_WAVES.. {
            if done.is_ok() {
                done = self.wave(table, number);
            }
            // Each thread has freed blocks after two waves.
            let is_enough = number > WARM_WAVES && self.crew.is_over();
            if (self.crew.wave.wait().is_leader() && is_enough) || done.is_err() {
                self.crew.over.store(true, Ordering::Relaxed);
            }
            self.crew.wave.wait();
            if self.crew.over.load(Ordering::Relaxed) {
                break;
            }
        }
        done
    }

    /// Fills or empties the table, depending on the thread's number and that of the wave.
    fn wave(&mut self, table: &mut Table, number: usize) -> Result<(), WorkError> {
        if (self.me + number).is_multiple_of(2) {
            while self.used < table.len() {
                table[self.used] = Some(self.get()?);
                self.used += 1;
            }
            return Ok(());
        }
        while self.used > table.len() / LEFT {
            let slot = self.below(self.used);
            self.used -= 1;
            table.swap(slot, self.used);
            let old = table[self.used].take();
            self.free(old);
            self.operations += 1;
        }
        Ok(())
    }
}
