//! x86-64.

mod address;
mod aes;
mod alignment;
mod code;
mod evaluate;
mod evidence;
mod flags;
mod forward;
mod instruction;
mod jumps;
mod last;
mod parts;
mod recover;
mod site;
mod slice;
mod spin;
mod state;
mod undo;
mod vectors;

use crate::operand::address_map::AddressMap;
use crate::operand::{AddressSpace, Ahead, Landing, MemoryAccess, Operand, Reach, X86Registers};
use code::{Code, END, PAGE};
use recover::Recovery;
use site::Site;
use state::State;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of addresses whose surroundings are kept. When there are more, all are dropped.
const MAX_SITES: usize = 65_536;
/// What is kept of the surroundings of an address takes about this.
const SITE_BYTES: usize = 768;
/// Bytes around a sample that are compared where code changes.
const COMPARED: u64 = 64;
/// Bytes around changed code within which nothing that is kept holds.
const REACH: u64 = 4 * PAGE;

/// Finds the memory operands of x86-64 instructions. One for each observed address space: it keeps decoded code
/// by address.
#[derive(Debug, Default)]
pub struct Decoder {
    code: Code,
    sites: AddressMap<Arc<Site>>,
    accesses: Vec<MemoryAccess>,
}

impl Decoder {
    /// The operand that the thread waited for when it was interrupted.
    pub fn recover(
        &mut self,
        registers: &X86Registers,
        space: &dyn AddressSpace,
        landing: Landing,
    ) -> Operand {
        let ip = registers.ip;
        if ip >= END {
            return Operand::Unknown { instruction: ip, kind: None };
        }
        self.renew(ip, space);
        let site = site(&mut self.sites, ip, &mut self.code, space);
        let sites = &mut self.sites;
        let mut recovery = Recovery { code: &mut self.code, space, sampled: State::of(registers), ip };
        match landing {
            Landing::Behind => recovery.behind(&site),
            Landing::OneFurther => {
                recovery.one_further(&site, &mut |address, code| self::site(sites, address, code, space))
            }
            Landing::BlockStart | Landing::Other => Operand::Unknown { instruction: ip, kind: None },
        }
    }

    /// The operands with known addresses of the instructions that the thread executes next, as far as it is known which
    /// these are, and as far as `reach` allows.
    pub fn ahead(&mut self, registers: &X86Registers, space: &dyn AddressSpace, reach: Reach) -> Ahead<'_> {
        self.renew(registers.ip, space);
        self.accesses.clear();
        let state = State::of(registers);
        let instructions =
            forward::ahead(registers.ip, &state, reach, &mut self.code, space, &mut self.accesses);
        Ahead { accesses: &self.accesses, instructions }
    }

    /// Whether the instruction is part of a loop in which the thread waits for others: a loop that pauses the processor,
    /// stores nothing and calls nothing.
    pub fn is_spinning(&mut self, instruction: u64, space: &dyn AddressSpace) -> bool {
        spin::is_spinning(instruction, &mut self.code, space)
    }

    /// About how many bytes of memory this takes.
    pub fn size(&self) -> usize {
        self.code.size() + self.sites.len() * SITE_BYTES
    }

    /// Drops what is kept of code that was unmapped or rewritten.
    pub fn forget(&mut self, range: Range<u64>) {
        self.code.forget(&range);
        let (from, to) = (range.start.saturating_sub(REACH), range.end.saturating_add(REACH));
        self.sites.retain(|at, _| *at < from || *at >= to);
    }

    /// Compares code that may change with what is kept of it, and drops what differs.
    fn renew(&mut self, ip: u64, space: &dyn AddressSpace) {
        if space.changes(ip) {
            let range = ip.saturating_sub(COMPARED)..ip.saturating_add(COMPARED);
            if !self.code.is_current(range.clone(), space) {
                self.forget(range);
            }
        }
    }
}

fn site(sites: &mut AddressMap<Arc<Site>>, at: u64, code: &mut Code, space: &dyn AddressSpace) -> Arc<Site> {
    if let Some(known) = sites.get(&at) {
        return known.clone();
    }
    let found = Arc::new(Site::new(at, code, space));
    if sites.len() >= MAX_SITES {
        sites.clear();
    }
    if found.at.is_some() {
        sites.insert(at, found.clone());
    }
    found
}
