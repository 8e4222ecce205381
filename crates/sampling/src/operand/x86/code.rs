//! The observed process's instructions, cached by address.

use super::instruction::{Decoded, Flow, is_foreign};
use super::jumps::Jumps;
use crate::operand::AddressSpace;
use crate::operand::address_map::AddressMap;
use iced_x86::{Decoder as Disassembler, DecoderOptions, Instruction, InstructionInfoFactory};
use std::ops::Range;
use std::sync::Arc;

pub const PAGE: u64 = 4096;
const PAGE_BYTES: usize = PAGE as usize;
/// Bytes of the longest instruction.
pub const LONGEST: usize = 15;
/// Programs have no code from here on, so that addresses can be added to.
pub const END: u64 = 1 << 63;
/// Maximum number of instructions and of pages that are kept. When there are more, all are dropped.
const MAX_DECODED: usize = 200_000;
const MAX_PAGES: usize = 4096;
/// Instructions of a block, and blocks that are kept.
const MAX_BLOCK: usize = 32;
const MAX_BLOCKS: usize = 50_000;

/// What the jumps of a page and an entry of a map take in memory, about.
const JUMPS_BYTES: usize = 1024;
const ENTRY_BYTES: usize = 64;

/// Instructions in a straight line; only the last one may continue elsewhere.
pub type Block = Arc<[Arc<Decoded>]>;

/// Instructions by address.
pub struct Code {
    pages: AddressMap<Arc<[u8]>>,
    decoded: AddressMap<Arc<Decoded>>,
    blocks: AddressMap<Block>,
    jumps: AddressMap<Arc<Jumps>>,
    factory: InstructionInfoFactory,
}

impl Default for Code {
    fn default() -> Self {
        Self {
            pages: AddressMap::default(),
            decoded: AddressMap::default(),
            blocks: AddressMap::default(),
            jumps: AddressMap::default(),
            factory: InstructionInfoFactory::new(),
        }
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code")
            .field("pages", &self.pages.len())
            .field("decoded", &self.decoded.len())
            .finish()
    }
}

impl Code {
    /// The instruction at an address; `None` if there is none that a program executes.
    pub fn at(&mut self, at: u64, space: &dyn AddressSpace) -> Option<Arc<Decoded>> {
        if let Some(known) = self.decoded.get(&at) {
            return Some(known.clone());
        }
        let mut buffer = [0; LONGEST];
        let count = self.bytes(at, &mut buffer, space);
        let raw = decode(buffer.get(..count)?, at)?;
        let decoded = Arc::new(Decoded::new(raw, &mut self.factory));
        if self.decoded.len() >= MAX_DECODED {
            self.decoded.clear();
        }
        self.decoded.insert(at, decoded.clone());
        Some(decoded)
    }

    /// The instructions from an address on, up to one that may continue elsewhere; none if there is none that a program
    /// executes.
    pub fn block(&mut self, start: u64, space: &dyn AddressSpace) -> Block {
        if let Some(known) = self.blocks.get(&start) {
            return known.clone();
        }
        let (mut found, mut at) = (Vec::new(), start);
        while found.len() < MAX_BLOCK {
            let Some(insn) = self.at(at, space) else { break };
            at = insn.end();
            let ends = insn.flow != Flow::Next;
            found.push(insn);
            if ends {
                break;
            }
        }
        let block: Block = Arc::from(found);
        if self.blocks.len() >= MAX_BLOCKS {
            self.blocks.clear();
        }
        if !block.is_empty() {
            self.blocks.insert(start, block.clone());
        }
        block
    }

    /// Copies code from an address on; the number of bytes that are there.
    pub fn bytes(&mut self, at: u64, into: &mut [u8], space: &dyn AddressSpace) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(from) = at.checked_add(done as u64).filter(|from| *from < END) else { break };
            let page = self.page(from & !(PAGE - 1), space);
            let rest = page.get((from % PAGE) as usize..).unwrap_or_default();
            let count = rest.len().min(into.len() - done);
            if count == 0 {
                break;
            }
            into[done..done + count].copy_from_slice(&rest[..count]);
            done += count;
        }
        done
    }

    /// The bytes of a page, up to the end of its mapping. A page that is not there is asked for again the next time.
    fn page(&mut self, start: u64, space: &dyn AddressSpace) -> Arc<[u8]> {
        if let Some(page) = self.pages.get(&start) {
            return page.clone();
        }
        let mut buffer = [0; PAGE_BYTES];
        let count = space.code(start, &mut buffer).min(PAGE_BYTES);
        let page: Arc<[u8]> = Arc::from(&buffer[..count]);
        if count > 0 {
            if self.pages.len() >= MAX_PAGES {
                self.pages.clear();
                self.jumps.clear();
            }
            self.pages.insert(start, page.clone());
        }
        page
    }

    /// The jumps in a page.
    pub fn jumps(&mut self, start: u64, space: &dyn AddressSpace) -> Arc<Jumps> {
        if let Some(known) = self.jumps.get(&start) {
            return known.clone();
        }
        let found = Arc::new(Jumps::of_page(start, self, space));
        if self.pages.contains_key(&start) {
            self.jumps.insert(start, found.clone());
        }
        found
    }

    /// About how many bytes of memory this takes.
    pub fn size(&self) -> usize {
        let pages = self.pages.len() * PAGE_BYTES + self.jumps.len() * JUMPS_BYTES;
        pages + self.decoded.len() * (size_of::<Decoded>() + ENTRY_BYTES) + self.blocks.len() * ENTRY_BYTES
    }

    /// Whether the process's bytes in a range are those of the cache, as far as the cache has them.
    pub fn is_current(&self, range: Range<u64>, space: &dyn AddressSpace) -> bool {
        let mut at = range.start;
        while at < range.end {
            let start = at & !(PAGE - 1);
            let end = range.end.min(start.saturating_add(PAGE));
            let mut buffer = [0; 256];
            let count = ((end - at) as usize).min(buffer.len());
            if let Some(page) = self.pages.get(&start) {
                let there = space.code(at, &mut buffer[..count]).min(count);
                let from = (at % PAGE) as usize;
                if page.get(from..from + there) != Some(&buffer[..there]) {
                    return false;
                }
            }
            at += count as u64;
        }
        true
    }

    /// Drops instructions and pages in a range.
    pub fn forget(&mut self, range: &Range<u64>) {
        let from = (range.start & !(PAGE - 1)).saturating_sub(PAGE);
        let to = range.end.saturating_add(PAGE);
        self.pages.retain(|start, _| *start < from || *start >= to);
        self.jumps.retain(|start, _| *start < from || *start >= to);
        self.decoded.retain(|at, _| *at < from || *at >= to);
        let before = from.saturating_sub((MAX_BLOCK * LONGEST) as u64);
        self.blocks.retain(|at, _| *at < before || *at >= to);
    }
}

/// Decodes one instruction that a program may execute.
pub fn decode(bytes: &[u8], at: u64) -> Option<Instruction> {
    let mut disassembler = Disassembler::with_ip(64, bytes, at, DecoderOptions::NONE);
    let mut raw = Instruction::default();
    disassembler.decode_out(&mut raw);
    (!is_foreign(&raw)).then_some(raw)
}

/// The target of a decoded jump, without its other details.
pub fn target(raw: &Instruction) -> Option<Flow> {
    if raw.is_jcc_short_or_near() {
        Some(Flow::Conditional(raw.near_branch_target()))
    } else if raw.is_jmp_short_or_near() {
        Some(Flow::Jump(raw.near_branch_target()))
    } else if raw.is_jmp_near_indirect() {
        Some(Flow::JumpIndirect)
    } else {
        None
    }
}
