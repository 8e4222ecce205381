//! What all methods of taking samples have in common.

use crate::faults::{FaultSample, PageTouch};
use crate::landing::Landing;
use crate::sample::Sample;
use numakit_sys::perf::sampling::SamplingError;
use std::{fmt, io};
use thiserror::Error;

/// A method of taking samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MethodKind {
    /// Performance events of the kernel.
    Perf,
    /// A library in the program, with timers of CPU time.
    InProcess,
    /// Stopping running threads by ptrace.
    Ptrace,
}

impl MethodKind {
    /// All methods, the best first.
    pub const ALL: [Self; 3] = [Self::Perf, Self::InProcess, Self::Ptrace];

    /// The word for the method in result files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Perf => "perf",
            Self::InProcess => "in-process",
            Self::Ptrace => "ptrace",
        }
    }
}

impl fmt::Display for MethodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Perf => "performance events",
            Self::InProcess => "timers in the program",
            Self::Ptrace => "ptrace",
        })
    }
}

/// What a method delivers.
#[derive(Debug)]
pub enum MethodEvent<'a> {
    /// A sample; it is valid during the call.
    Sample(&'a Sample),
    /// A page fault; it is valid during the call.
    Fault(&'a FaultSample),
    /// A thread touched a page first, with settings that ask for every touch; some of them are delivered as faults too.
    Touched(PageTouch),
    /// A thread or process started.
    Started {
        /// The process.
        process: u32,
        /// The thread.
        thread: u32,
    },
    /// A process executed another program, which replaced all of its memory.
    Executed {
        /// The process.
        process: u32,
        /// When, monotonic ns; before the program begins.
        time: u64,
    },
    /// A process mapped code.
    Mapped {
        /// The process.
        process: u32,
    },
    /// A thread ended, with its process if both numbers are the same and no other thread runs.
    Ended {
        /// The process.
        process: u32,
        /// The thread.
        thread: u32,
    },
}

/// What a method could not deliver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Records that found no room.
    pub overflowed: u64,
    /// Times that the kernel stopped sampling for a while.
    pub throttled: u64,
    /// Samples that had no registers, such as those of 32-bit programs.
    pub without_registers: u64,
    /// Bytes or records that could not be read.
    pub damaged: u64,
    /// Page faults that found no room.
    pub faults: u64,
    /// Time in which page faults were left out, since there were too many, in ns.
    pub without_faults: u64,
}

impl Losses {
    /// Samples that are missing.
    pub fn total(&self) -> u64 {
        self.overflowed.saturating_add(self.without_registers).saturating_add(self.damaged)
    }
}

/// Why a method is closed.
#[derive(Debug, Error)]
pub enum MethodError {
    /// Performance events.
    #[error("samples by performance events")]
    Perf(#[from] SamplingError),
    /// ptrace.
    #[error("samples by ptrace")]
    Ptrace(#[source] io::Error),
    /// The program could not be started.
    #[error("cannot start the program")]
    Start(#[source] io::Error),
    /// Timers in the program.
    #[error("samples by timers in the program")]
    InProcess(#[source] io::Error),
    /// A process that runs may not be observed.
    #[error("process {0} may not be observed by this user")]
    Refused(u32),
    /// What is known of the machine could not be read.
    #[error(transparent)]
    Read(#[from] numakit_sys::ReadError),
}

/// An open method. Samples are taken from when it is opened until it is dropped.
pub trait Method: fmt::Debug + Send {
    /// Which of the methods this is.
    fn kind(&self) -> MethodKind;

    /// Delivers what came since the last call, and returns the number of samples. It never waits. Call it every few
    /// milliseconds: the registers of a sample and the memory of its process match for a moment only.
    fn drain(&mut self, take: &mut dyn FnMut(MethodEvent<'_>)) -> Result<u64, MethodError>;

    /// Also takes samples of these processes, which run already, and of their descendants. Returns those of them that were not
    /// sampled before; what has ended is left out. Only performance events can do that: other methods add none.
    fn attach(&mut self, _processes: &[u32]) -> Result<Vec<u32>, MethodError> {
        Ok(Vec::new())
    }

    /// What was lost so far.
    fn losses(&self) -> Losses;

    /// Where the method's samples land.
    fn landing(&self) -> Landing;
}
