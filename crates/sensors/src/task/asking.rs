//! Where the pages of a large process are, without holding it up: which pages are in memory is
//! looked up in small pieces, and of those every one or, beyond a bound, one in so many is asked
//! for its node.
//!
//! The pages are drawn by a sequence that is the same at every look, so that a level that stands
//! still is shown to stand still.

use super::mappings::{Mapping, Mappings, pool_mounts};
use super::numa_maps::MemoryByUse;
use super::walk::WalkTarget;
use numakit_sys::pages::{MAX_ASKED, PageRun, Pages, Present};
use numakit_sys::proc::TaskDir;
use numakit_sys::{ReadError, SysRoot};
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// So many pages of a process are asked for their nodes at most, with one more for each mapping.
/// The shares of the nodes have a standard error of half a percent at most: 0.5 / sqrt(8192).
pub const MAX_PAGES: u64 = 16_384;

/// Pages of a mapping looked at in one go where nothing tells which of them are in memory.
const BLIND_PIECE: u64 = 65_536;

/// How large a process is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Memory that it has, with that from huge page pools, in bytes.
    pub resident: u64,
    /// Of it, from huge page pools.
    pub pools: u64,
    /// Addresses that it has mapped, in bytes.
    pub mapped: u64,
    /// Page tables, in bytes.
    pub tables: u64,
}

impl Size {
    /// That of a process, from its status, which the kernel tells without any lock of its memory.
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

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Memory by node and use.
    pub memory: MemoryByUse,
    /// Bytes in huge pages, where the kernel tells.
    pub huge_pages: Option<u64>,
    /// Square of the standard error of the bytes of a node, of the node where it is largest.
    pub variance: f64,
}

/// A process that is being looked at.
#[derive(Debug)]
pub struct Asking {
    pid: u32,
    pages: Arc<dyn Pages>,
    /// What tells which pages are in memory; without it all of a mapping are asked about.
    present: Option<Box<dyn Present>>,
    mappings: Mappings,
    stride: u64,
    /// With one node, and where the kernel does not tell nodes, all is on it.
    tells_nodes: bool,
    part: Option<Part>,
    memory: MemoryByUse,
    huge_pages: Option<u64>,
    variance: Vec<f64>,
}

/// A mapping so far.
#[derive(Debug)]
struct Part {
    mapping: Mapping,
    at: u64,
    /// Pages in memory.
    pages: u64,
    /// Which of them is asked next, and the sequence that it is drawn from.
    next: u64,
    draw: Draw,
    asked: u64,
    on: Vec<u64>,
}

/// A sequence of numbers without a pattern (xorshift).
#[derive(Debug)]
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }
}

impl Asking {
    /// Opens what tells of a process of this size.
    pub fn open(
        place: &WalkTarget<'_>,
        pages: &Arc<dyn Pages>,
        pid: u32,
        size: Size,
    ) -> Result<Self, ReadError> {
        let mut pools = Vec::new();
        if size.pools > 0 {
            pools = pages.pools();
            let mounts = TaskDir::of(place.root, pid).text("mountinfo").unwrap_or_default();
            pools.extend(pool_mounts(&mounts));
        }
        let mappings = Mappings::open(place.root, pid, pools)?;
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
            stride: (candidates / place.page_size).div_ceil(MAX_PAGES).max(1),
            tells_nodes: true,
            part: None,
            memory: MemoryByUse::none(place.nodes.count()),
            variance: vec![0.0; place.nodes.count()],
        })
    }

    /// Looks at the next piece. False at the end. An error of the kind `Unsupported` is that the
    /// kernel does not tell the nodes of pages.
    pub fn advance(&mut self, place: &WalkTarget<'_>) -> Result<bool, ReadError> {
        let mut part = match self.part.take() {
            Some(part) => part,
            None => match self.mappings.next()? {
                Some(mapping) => Part::of(mapping, place.nodes.count()),
                None => return Ok(false),
            },
        };
        let mut runs = Vec::new();
        part.at = self.look(&part, place, &mut runs)?;
        let mut chosen = Vec::new();
        for run in &runs {
            part.choose(run, self.stride, place.page_size, &mut chosen);
            self.huge_pages = match run.huge {
                Some(huge) => self.huge_pages.map(|sum| sum + if huge { run.end - run.start } else { 0 }),
                None => None,
            };
        }
        for pages in chosen.chunks(MAX_ASKED) {
            self.ask(&mut part, pages, place)?;
        }
        if part.at < part.mapping.end {
            self.part = Some(part);
        } else {
            self.add(&part, place.page_size);
        }
        Ok(true)
    }

    fn look(&self, part: &Part, place: &WalkTarget<'_>, runs: &mut Vec<PageRun>) -> Result<u64, ReadError> {
        let Some(present) = &self.present else {
            let end = part.mapping.end.min(part.at.saturating_add(BLIND_PIECE * place.page_size));
            runs.push(PageRun { start: part.at, end, huge: None });
            return Ok(end);
        };
        let end = present.runs(part.at, part.mapping.end, runs);
        let end = end.map_err(|error| failed(place, self.pid, "pagemap", &error))?;
        // Whatever it says, it goes on.
        Ok(end.max(part.at.saturating_add(place.page_size)))
    }

    fn ask(&mut self, part: &mut Part, pages: &[u64], place: &WalkTarget<'_>) -> Result<(), ReadError> {
        let nodes = place.nodes;
        part.asked += pages.len() as u64;
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
                    let path = TaskDir::of(place.root, self.pid).path("maps");
                    return Err(ReadError { path, reason, kind: ErrorKind::Unsupported });
                }
            }
        }
        part.on[0] += pages.len() as u64;
        Ok(())
    }

    /// Adds a mapping that is complete.
    fn add(&mut self, part: &Part, page_size: u64) {
        let (pages, asked) = (part.pages as f64, part.asked as f64);
        for (place, &on) in part.on.iter().enumerate().filter(|(_, on)| **on > 0) {
            let share = u128::from(part.pages) * u128::from(on) / u128::from(part.asked);
            let bytes = u64::try_from(share).unwrap_or(u64::MAX).saturating_mul(page_size);
            let sum = &mut self.memory.0[place][part.mapping.usage as usize];
            *sum = sum.saturating_add(bytes);
            let share = on as f64 / asked;
            let rest = 1.0 - asked / pages;
            let error = pages * page_size as f64;
            self.variance[place] += error * error * share * (1.0 - share) / asked * rest;
        }
    }

    /// What was found.
    pub fn found(self) -> Asked {
        let variance = self.variance.into_iter().fold(0.0, f64::max);
        Asked { memory: self.memory, huge_pages: self.huge_pages, variance }
    }
}

impl Part {
    fn of(mapping: Mapping, nodes: usize) -> Self {
        // Never 0, where the sequence would stand still.
        let draw = Draw(mapping.start | 1);
        Self { mapping, at: mapping.start, pages: 0, next: 0, draw, asked: 0, on: vec![0; nodes] }
    }

    /// Which pages of a run are asked: the mapping's first, and one of every `stride` after it.
    fn choose(&mut self, run: &PageRun, stride: u64, page_size: u64, chosen: &mut Vec<u64>) {
        let pages = run.end.saturating_sub(run.start) / page_size;
        while self.next < self.pages + pages {
            chosen.push(run.start + (self.next - self.pages) * page_size);
            self.next = (self.next / stride + 1) * stride + self.draw.below(stride);
        }
        self.pages += pages;
    }
}

fn failed(place: &WalkTarget<'_>, pid: u32, file: &str, error: &io::Error) -> ReadError {
    let path = TaskDir::of(place.root, pid).path(file);
    ReadError { path, reason: error.to_string(), kind: error.kind() }
}

#[cfg(test)]
mod tests;
