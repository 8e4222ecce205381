//! `numa mark`.

use crate::Global;
use anyhow::Context;
use clap::{Args, ValueEnum};
use numakit_sys::clock::{self, Alarm};
use numakit_sys::mark::{self, Mark as Instruction};
use std::process::ExitCode;

/// Tell a simulator when to look: from 'begin' to 'end'
///
/// Executes one instruction that does nothing on a processor; the simulated machine of 'cargo
/// xtask guest --sim' counts what happens between the two. Programs in C have the same in
/// native/include/numakit-mark.h. Nothing is printed.
#[derive(Debug, Args)]
pub struct Mark {
    /// What the mark says
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// What follows is to be observed
    Begin,
    /// It is over
    End,
}

/// The simulator sees the mark at once, but goes on with code that it has translated without
/// counting until its CPUs come around to translate again.
const UNTIL_IT_COUNTS: u64 = 20_000_000;

impl Mark {
    /// Marks.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        global.only_here("a mark is an instruction of this processor")?;
        let instruction = match self.what {
            What::Begin => Instruction::Begin,
            What::End => Instruction::End,
        };
        mark::mark(instruction)
            .context("this processor has no such mark; run it in a simulated machine of x86-64")?;
        if self.what == What::Begin {
            Alarm::new().sleep_until(clock::monotonic() + UNTIL_IT_COUNTS);
        }
        Ok(ExitCode::SUCCESS)
    }
}
