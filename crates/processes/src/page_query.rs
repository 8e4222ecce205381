//! Finds the nodes of the pages of a large process without stopping it: looks up in small pieces
//! which pages are in memory, and queries the node of each page or, beyond a limit, of one in N.
//!
//! The sample of pages is the same in every scan, so that a constant level is shown as constant.

use crate::allocator::{AllocatorSpace, RegionPages};
use crate::mappings::{Mapping, Mappings, pool_mounts};
use crate::numa_maps::MemoryByUse;
use crate::search::Located;
use crate::walk::WalkedMachine;
use numakit_sys::pages::{MAX_QUERY, PageRun, Pages, Present};
use numakit_sys::proc::TaskDir;
use numakit_sys::{ReadError, SysRoot};
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Maximum number of pages of a process whose nodes are queried, plus one per mapping. The shares of
/// the nodes have a standard error of at most half a percent: 0.5 / sqrt(8192).
pub const MAX_PAGES: u64 = 16_384;

/// Pages per piece of a mapping if it is unknown which of them are in memory.
const BLIND_PIECE: u64 = 65_536;

/// The size of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessSize {
    /// Resident memory, including huge page pools, in bytes.
    pub resident: u64,
    /// The part from huge page pools.
    pub pools: u64,
    /// Mapped addresses, in bytes.
    pub mapped: u64,
    /// Page tables, in bytes.
    pub tables: u64,
}

impl ProcessSize {
    /// The size of a process, from its status, which the kernel prints without a lock of its memory.
    pub fn of(root: &SysRoot, pid: u32) -> Self {
        let status = TaskDir::of(root, pid).status().unwrap_or_default();
        let bytes = |name: &str| status.bytes(name).unwrap_or(0);
        let pools = bytes("HugetlbPages");
        Self {
            resident: bytes("VmRSS").saturating_add(pools),
            pools,
            mapped: bytes("VmSize"),
            tables: bytes("VmPTE"),
        }
    }
}

/// A running query of a process.
#[derive(Debug)]
pub struct PageQuery {
    pid: u32,
    pages: Arc<dyn Pages>,
    /// Which pages are in memory; without it, all pages of a mapping are queried.
    present: Option<Box<dyn Present>>,
    mappings: Mappings,
    /// A mapping without access that is larger has no pages: it only keeps addresses.
    resident: u64,
    stride: u64,
    /// With one node, all memory is on it.
    tells_nodes: bool,
    part: Option<Part>,
    memory: MemoryByUse,
    huge_pages: Option<u64>,
    regions: Option<(AllocatorSpace, Vec<RegionPages>)>,
    variance: Vec<f64>,
}

/// A partly queried mapping.
#[derive(Debug)]
struct Part {
    mapping: Mapping,
    at: u64,
    /// Pages in memory.
    pages: u64,
    /// The page that is queried next, and its random sequence.
    next: u64,
    random: RandomSequence,
    queried: u64,
    on: Vec<u64>,
}

/// A pseudorandom sequence (xorshift).
#[derive(Debug)]
struct RandomSequence(u64);

impl RandomSequence {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }
}

impl PageQuery {
    /// Opens the files of a process of this size.
    pub fn open(
        place: &WalkedMachine,
        pages: &Arc<dyn Pages>,
        pid: u32,
        size: ProcessSize,
        space: Option<AllocatorSpace>,
    ) -> Result<Self, ReadError> {
        let mut pools = Vec::new();
        if size.pools > 0 {
            pools = pages.pools();
            let mounts = TaskDir::of(&place.root, pid).text("mountinfo").unwrap_or_default();
            pools.extend(pool_mounts(&mounts));
        }
        let mappings = Mappings::open(&place.root, pid, pools)?;
        let present = match pages.open(pid) {
            Ok(present) => Some(present),
            // A kernel without CONFIG_PROC_PAGE_MONITOR.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(place, pid, "pagemap", &error)),
        };
        let candidates = if present.is_some() { size.resident } else { size.mapped.max(size.resident) };
        Ok(Self {
            pid,
            pages: Arc::clone(pages),
            huge_pages: present.is_some().then_some(0),
            present,
            mappings,
            resident: size.resident,
            stride: (candidates / place.page_size).div_ceil(MAX_PAGES).max(1),
            tells_nodes: true,
            part: None,
            memory: MemoryByUse::none(place.nodes.count()),
            regions: space.map(|space| (space, space.no_pages())),
            variance: vec![0.0; place.nodes.count()],
        })
    }

    /// Queries the next piece. False at the end. The error `Unsupported` means that the kernel does
    /// not return the nodes of pages.
    pub fn advance(&mut self, place: &WalkedMachine) -> Result<bool, ReadError> {
        let mut part = match self.part.take() {
            Some(part) => part,
            None => match self.mappings.next()? {
                Some(mapping) if self.is_reservation(&mapping) => return Ok(true),
                Some(mapping) => Part::of(mapping, place.nodes.count()),
                None => return Ok(false),
            },
        };
        let mut runs = Vec::new();
        part.at = self.present_runs(&part, place, &mut runs)?;
        let mut selected = Vec::new();
        for run in &runs {
            part.select(run, self.stride, place.page_size, &mut selected);
            self.huge_pages = match run.huge {
                Some(huge) => self.huge_pages.map(|sum| sum + if huge { run.end - run.start } else { 0 }),
                None => None,
            };
        }
        for pages in selected.chunks(MAX_QUERY) {
            self.query(&mut part, pages, place)?;
        }
        if part.at < part.mapping.end {
            self.part = Some(part);
        } else {
            self.add(&part, place);
        }
        Ok(true)
    }

    fn is_reservation(&self, mapping: &Mapping) -> bool {
        !mapping.accessible && mapping.end - mapping.start > self.resident
    }

    fn present_runs(
        &self,
        part: &Part,
        place: &WalkedMachine,
        runs: &mut Vec<PageRun>,
    ) -> Result<u64, ReadError> {
        let Some(present) = &self.present else {
            let end = part.mapping.end.min(part.at.saturating_add(BLIND_PIECE * place.page_size));
            runs.push(PageRun { start: part.at, end, huge: None });
            return Ok(end);
        };
        let end = present.runs(part.at, part.mapping.end, runs);
        let end = end.map_err(|error| failed(place, self.pid, "pagemap", &error))?;
        // Always advance, whatever the kernel returns.
        Ok(end.max(part.at.saturating_add(place.page_size)))
    }

    fn query(&mut self, part: &mut Part, pages: &[u64], place: &WalkedMachine) -> Result<(), ReadError> {
        let nodes = &place.nodes;
        part.queried += pages.len() as u64;
        if self.tells_nodes {
            match self.pages.nodes(self.pid, pages) {
                Ok(answers) => {
                    let places = answers.iter().filter_map(|node| nodes.place((*node)?));
                    places.for_each(|place| part.on[place] += 1);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(failed(place, self.pid, "maps", &error));
                }
                Err(_) if nodes.count() == 1 && self.present.is_some() => self.tells_nodes = false,
                Err(error) => {
                    let reason = format!("move_pages: {error}");
                    let path = TaskDir::of(&place.root, self.pid).path("maps");
                    return Err(ReadError { path, reason, kind: ErrorKind::Unsupported });
                }
            }
        }
        part.on[0] += pages.len() as u64;
        Ok(())
    }

    /// Adds a complete mapping.
    fn add(&mut self, part: &Part, at: &WalkedMachine) {
        let page_size = at.page_size;
        let (pages, queried) = (part.pages as f64, part.queried as f64);
        for (place, &on) in part.on.iter().enumerate().filter(|(_, on)| **on > 0) {
            let share = u128::from(part.pages) * u128::from(on) / u128::from(part.queried);
            let bytes = u64::try_from(share).unwrap_or(u64::MAX).saturating_mul(page_size);
            let sum = &mut self.memory.0[place][part.mapping.usage as usize];
            *sum = sum.saturating_add(bytes);
            if let Some((space, pages)) = &mut self.regions {
                space.add(pages, part.mapping.start, at.nodes.ids()[place], bytes);
            }
            let share = on as f64 / queried;
            let rest = 1.0 - queried / pages;
            let error = pages * page_size as f64;
            self.variance[place] += error * error * share * (1.0 - share) / queried * rest;
        }
    }

    /// The memory of a process.
    pub fn found(self) -> Located {
        let variance = self.variance.into_iter().fold(0.0, f64::max);
        let regions = self.regions.map(|(_, pages)| pages).unwrap_or_default();
        Located { memory: self.memory, huge_pages: self.huge_pages, regions, variance, held: false }
    }
}

impl Part {
    fn of(mapping: Mapping, nodes: usize) -> Self {
        // 0 would make the sequence constant.
        let random = RandomSequence(mapping.start | 1);
        Self { mapping, at: mapping.start, pages: 0, next: 0, random, queried: 0, on: vec![0; nodes] }
    }

    /// Selects pages of a run: the first of the mapping, and one of every `stride` after it.
    fn select(&mut self, run: &PageRun, stride: u64, page_size: u64, selected: &mut Vec<u64>) {
        let pages = run.end.saturating_sub(run.start) / page_size;
        while self.next < self.pages + pages {
            selected.push(run.start + (self.next - self.pages) * page_size);
            self.next = (self.next / stride + 1) * stride + self.random.below(stride);
        }
        self.pages += pages;
    }
}

fn failed(place: &WalkedMachine, pid: u32, file: &str, error: &io::Error) -> ReadError {
    let path = TaskDir::of(&place.root, pid).path(file);
    ReadError { path, reason: error.to_string(), kind: error.kind() }
}

#[cfg(test)]
mod tests;
