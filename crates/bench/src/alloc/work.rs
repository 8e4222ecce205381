//! What a child of the benchmark of allocators does: threads that get and free blocks, as programs do.
//!
//! Blocks of a thread are in its table. Some works put blocks into tables of other threads.

use crate::alloc::crew::{Crew, Member};
use numakit_sys::loops::nodes_of_blocks;
use numakit_sys::{clock, executable, resident};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many threads of [`AllocWork::Servers`] run one after the other on each CPU.
const GENERATIONS: u32 = 10;
/// Maximum number of blocks whose nodes are asked for.
const LOOKED_AT: usize = 4096;

/// What threads do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AllocWork {
    /// Small blocks, by each thread alone.
    Small,
    /// Small blocks that another thread frees.
    Passed,
    /// Threads that end, and whose blocks their successors free.
    Servers,
    /// Large blocks.
    Large,
    /// Threads whose memory grows and shrinks in turn.
    Waves,
}

impl AllocWork {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 5] = [Self::Small, Self::Passed, Self::Servers, Self::Large, Self::Waves];

    /// The word for the work in results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Passed => "passed",
            Self::Servers => "servers",
            Self::Large => "large",
            Self::Waves => "waves",
        }
    }

    /// What an operation of the work is, in words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Small => "each thread frees a block of its own and gets one of 16 bytes to 1 KiB",
            Self::Passed => {
                "each thread gets blocks of 16 bytes to 1 KiB for another one, which is on another node if there are several, and frees \
                 those that it was given"
            }
            Self::Servers => {
                "as small, but each thread ends after a tenth of the time, and another one on the next CPU has its blocks"
            }
            Self::Large => {
                "each thread frees a block of its own, gets one of 64 KiB to 4 MiB and writes to each page"
            }
            Self::Waves => {
                "half of the threads get blocks of 16 bytes to 64 KiB while the others free nine of ten, and then the other way round"
            }
        }
    }

    /// The least and the largest block; each order of magnitude in between has as many.
    pub(crate) fn sizes(self) -> (usize, usize) {
        match self {
            Self::Small | Self::Passed | Self::Servers => (16, 1 << 10),
            Self::Large => (64 << 10, 4 << 20),
            Self::Waves => (16, 64 << 10),
        }
    }

    /// Live bytes of a thread, unless the user asked for others.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Small | Self::Passed | Self::Servers => 4 << 20,
            Self::Large | Self::Waves => 16 << 20,
        }
    }

    /// Why the work cannot be done with this number of threads; `None` if it can.
    pub(crate) fn lacks(self, threads: usize) -> Option<&'static str> {
        (self == Self::Passed && threads < 2)
            .then_some("only one core can be used, and the two threads would take turns")
    }
}

/// Where a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkSeat {
    /// The kernel's number of the CPU.
    pub cpu: u32,
    /// Its node.
    pub node: u32,
}

/// The request to a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkRequest {
    /// What threads do.
    pub work: AllocWork,
    /// One for each thread.
    pub seats: Vec<WorkSeat>,
    /// How long.
    pub time: Duration,
    /// Live bytes of a thread.
    pub bytes: u64,
    /// Whether the nodes of blocks are to be asked for.
    pub asks_nodes: bool,
}

/// What a child has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkDone {
    /// The file of the allocator; null if the program is statically linked.
    pub allocator: Option<String>,
    /// Blocks that were got and freed.
    pub operations: u64,
    /// The time of all threads together, in ns.
    pub wall: u64,
    /// The CPU time of the process during `wall`, in ns.
    pub cpu: u64,
    /// Resident bytes that came with the blocks, at the peak; null if the kernel does not say.
    pub resident: Option<u64>,
    /// Live bytes at their peak.
    pub live: u64,
    /// Blocks that begin on the node of the thread that got them, and blocks that were looked at; null if nobody asked.
    pub near: Option<(u64, u64)>,
    /// Why the kernel does not tell the nodes of blocks.
    pub near_refused: Option<String>,
}

/// Why a work was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// A thread has no CPU.
    #[error("a thread cannot be bound to CPU {cpu}: {why}")]
    Cpu {
        /// The kernel's number.
        cpu: u32,
        /// The system's reason.
        why: String,
    },
    /// The allocator gave nothing.
    #[error("malloc gave no block of {0} bytes")]
    NoBlock(usize),
    /// A thread ended early.
    #[error("a thread failed")]
    Failed,
}

impl WorkRequest {
    /// Does the work in this process.
    pub fn run(&self) -> Result<WorkDone, WorkError> {
        let crew = Crew::new(self);
        let (mut before, mut begin, mut cpu) = (None, 0, 0);
        std::thread::scope(|scope| {
            let first: Vec<_> =
                (0..self.seats.len()).map(|me| scope.spawn(move_into(&crew, me, Self::first))).collect();
            crew.gate.wait();
            resident::begin_peak();
            before = resident::now();
            crew.gate.wait();
            crew.gate.wait();
            (begin, cpu) = (clock::monotonic(), clock::process_cpu());
            crew.end_at(begin + self.share(1));
            crew.gate.wait();
            first.into_iter().for_each(|member| crew.check(member.join()));
        });
        for generation in 1..self.generations() {
            crew.end_at(begin + self.share(generation + 1));
            std::thread::scope(|scope| {
                let next =
                    |me| scope.spawn(move_into(&crew, me, move |member| Self::next(member, generation)));
                let next: Vec<_> = (0..self.seats.len()).map(next).collect();
                next.into_iter().for_each(|member| crew.check(member.join()));
            });
        }
        let (wall, cpu) = (crew.last().saturating_sub(begin).max(1), clock::process_cpu() - cpu);
        crew.refused()?;
        let after = resident::peak().max(resident::now());
        let (near, near_refused) = self.near(&crew);
        Ok(WorkDone {
            allocator: executable::allocator().map(|file| file.display().to_string()),
            operations: crew.operations(),
            wall,
            cpu,
            resident: before.zip(after).map(|(before, after)| after.saturating_sub(before)),
            live: crew.live(),
            near,
            near_refused,
        })
    }

    fn generations(&self) -> u32 {
        if self.work == AllocWork::Servers { GENERATIONS } else { 1 }
    }

    /// The time until the end of a generation, in ns.
    fn share(&self, generations: u32) -> u64 {
        self.time.as_nanos() as u64 / u64::from(self.generations()) * u64::from(generations)
    }

    /// A thread of the first generation: makes its table, warms up, and works.
    fn first(member: &mut Member<'_>) -> Result<(), WorkError> {
        let gate = &member.crew.gate;
        let mut table = member.crew.table(member.me);
        table.resize_with(member.crew.slots, || None);
        gate.wait();
        gate.wait();
        let warm = member.warm_up(&mut table);
        gate.wait();
        gate.wait();
        match member.crew.request.work {
            AllocWork::Small | AllocWork::Servers | AllocWork::Large => {
                warm.and_then(|()| member.replace(&mut table))
            }
            AllocWork::Passed => warm.and_then(|()| member.pass(&mut table)),
            AllocWork::Waves => member.waves(&mut table, warm),
        }
    }

    /// A thread of a later generation: has the blocks of a thread on another CPU.
    fn next(member: &mut Member<'_>, generation: u32) -> Result<(), WorkError> {
        let of = (member.me + generation as usize) % member.crew.request.seats.len();
        let mut table = member.crew.table(of);
        member.replace(&mut table)
    }

    /// How many of the live blocks are on the node of the thread that got them.
    fn near(&self, crew: &Crew<'_>) -> (Option<(u64, u64)>, Option<String>) {
        if !self.asks_nodes {
            return (None, None);
        }
        let tables: Vec<_> = (0..self.seats.len()).map(|me| crew.table(me)).collect();
        let held: Vec<_> = tables.iter().flat_map(|table| table.iter().flatten()).collect();
        let some: Vec<_> = held.iter().step_by(held.len().div_ceil(LOOKED_AT).max(1)).collect();
        match nodes_of_blocks(&some.iter().map(|held| &held.block).collect::<Vec<_>>()) {
            Ok(nodes) => {
                let near = nodes.iter().zip(&some).filter(|(node, held)| **node == Some(held.node)).count();
                (Some((near as u64, some.len() as u64)), None)
            }
            Err(error) => (None, Some(format!("the kernel does not tell the nodes of pages: {error}"))),
        }
    }
}

/// What a thread runs: bound to its CPU, a part of the work.
fn move_into<'a>(
    crew: &'a Crew<'a>,
    me: usize,
    part: impl FnOnce(&mut Member<'a>) -> Result<(), WorkError> + Send + 'a,
) -> impl FnOnce() + Send + 'a {
    move || {
        let mut member = Member::seated(crew, me);
        let done = part(&mut member);
        member.leave(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::sched;

    fn request(work: AllocWork, threads: usize) -> WorkRequest {
        let cpus: Vec<u32> = sched::affinity().unwrap().iter().collect();
        let seats = (0..threads).map(|at| WorkSeat { cpu: cpus[at % cpus.len()], node: 0 }).collect();
        WorkRequest { work, seats, time: Duration::from_millis(5), bytes: 1 << 20, asks_nodes: true }
    }

    #[test]
    fn every_work_counts_its_blocks_and_its_memory() {
        for (work, threads) in AllocWork::ALL.into_iter().flat_map(|work| [(work, 1), (work, 2), (work, 3)]) {
            if work.lacks(threads).is_some() {
                continue;
            }
            let done = request(work, threads).run().unwrap();
            assert!(done.operations > 0 && done.wall > 0 && done.cpu > 0, "{work:?} {done:?}");
            // Tables are full in the end, but for waves, whose threads take turns.
            let full = threads as u64 * (1 << 20);
            assert!((full / 4..2 * full + (8 << 20)).contains(&done.live), "{work:?} {threads} {done:?}");
            assert!(done.allocator.is_some(), "{done:?}");
            match done.near {
                Some((near, looked)) => assert!(near <= looked && looked > 0, "{work:?} {done:?}"),
                None => assert!(done.near_refused.is_some(), "{done:?}"),
            }
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        for work in AllocWork::ALL {
            let mut request = request(work, 2);
            request.seats[1].cpu = 9999;
            let refused = request.run().unwrap_err();
            assert!(matches!(refused, WorkError::Cpu { cpu: 9999, .. }), "{work:?} {refused}");
        }
    }

    #[test]
    fn a_request_is_read_back() {
        let request = request(AllocWork::Passed, 2);
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<WorkRequest>(&text).unwrap(), request);
    }
}
