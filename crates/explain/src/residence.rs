//! Which memory of the observed processes is resident: where it is, and who touched it first.

use crate::call_tree::NO_CHAIN;
use crate::first_touch::FaultingThread;
use crate::flame::{ChainValues, FlamePart};
use crate::memory_policies::MemoryBinding;
use crate::object_use::NodeShare;
use crate::touched_pages::TouchedPages;
use numakit_sys::pages::{MAX_QUERY, PageRun, Pages, Present};
use numakit_sys::proc::{TaskDir, maps};
use numakit_sys::{SysRoot, clock, sched};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of pieces that are distinguished: pieces are larger where there is more memory.
const MAX_PIECES: u64 = 1 << 14;
/// Memory is looked at again when one in this many bytes of it is new.
const GROWN: u64 = 200;
/// Memory on several nodes is looked at again after this time, in ns: pages may have moved meanwhile.
const EACH: u64 = 10_000_000_000;
/// Looking takes at most one in this many parts of the time.
const SHARE: u64 = 20;

/// A piece of resident memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResidentPiece {
    /// The process.
    pub process: u32,
    /// An address in it.
    pub address: u64,
    /// Its bytes that are in memory.
    pub bytes: u64,
    /// The node of one of its pages; `None` if the kernel does not say.
    pub node: Option<u32>,
    /// Who touched it first, if that was seen.
    pub by: Option<FaultingThread>,
}

/// The memory of all processes at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResidentMemory {
    /// In ns.
    pub time: u64,
    /// Its pieces.
    pub pieces: Vec<ResidentPiece>,
}

impl ResidentMemory {
    /// All of it.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }

    /// Bytes by the chain that touched them first and by node.
    pub fn by_chain(&self) -> ChainValues {
        let mut values = ChainValues::new();
        for piece in &self.pieces {
            let chain = piece.by.map_or(0, |by| by.chain);
            let part = piece.node.map_or(FlamePart::UnknownNode, FlamePart::Node);
            *values.entry((chain, part)).or_default() += piece.bytes;
        }
        values
    }

    /// The nodes of each object, whose place `object` finds; where the kernel says so.
    pub fn homes(
        &self,
        mut object: impl FnMut(&ResidentPiece) -> Option<u32>,
    ) -> BTreeMap<u32, Vec<NodeShare>> {
        let mut objects: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
        for piece in &self.pieces {
            if let Some((node, object)) = piece.node.and_then(|node| Some((node, object(piece)?))) {
                *objects.entry(object).or_default().entry(node).or_default() += piece.bytes;
            }
        }
        let shares = |nodes: BTreeMap<u32, u64>| {
            let all = nodes.values().sum::<u64>().max(1) as f64;
            nodes.into_iter().map(|(node, bytes)| NodeShare { node, share: bytes as f64 / all }).collect()
        };
        objects.into_iter().map(|(object, nodes)| (object, shares(nodes))).collect()
    }

    /// The mean of a share over the memory of each object. `object` finds the place of a piece's object, and `share` the
    /// share of a piece, if it is known.
    pub fn means(
        &self,
        mut object: impl FnMut(&ResidentPiece) -> Option<u32>,
        share: impl Fn(&ResidentPiece) -> Option<f64>,
    ) -> BTreeMap<u32, f64> {
        let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for piece in &self.pieces {
            if let Some((share, object)) = share(piece).and_then(|share| Some((share, object(piece)?))) {
                let (sum, bytes) = sums.entry(object).or_default();
                *sum += share * piece.bytes as f64;
                *bytes += piece.bytes as f64;
            }
        }
        sums.into_iter().map(|(object, (sum, bytes))| (object, sum / bytes.max(1.0))).collect()
    }

    /// The objects most of whose memory has one binding, with that binding. `object` finds the place of a piece's object,
    /// and `binding` the binding of a piece.
    pub fn bound<'a>(
        &self,
        mut object: impl FnMut(&ResidentPiece) -> Option<u32>,
        binding: impl Fn(&ResidentPiece) -> Option<&'a MemoryBinding>,
    ) -> BTreeMap<u32, MemoryBinding> {
        let mut objects: BTreeMap<u32, Vec<(Option<&MemoryBinding>, u64)>> = BTreeMap::new();
        for piece in &self.pieces {
            let Some(object) = object(piece) else { continue };
            let (found, bindings) = (binding(piece), objects.entry(object).or_default());
            match bindings.iter_mut().find(|(known, _)| *known == found) {
                Some((_, bytes)) => *bytes += piece.bytes,
                None => bindings.push((found, piece.bytes)),
            }
        }
        let most = |bindings: Vec<(Option<&MemoryBinding>, u64)>| {
            let all: u64 = bindings.iter().map(|(_, bytes)| bytes).sum();
            let (found, _) = bindings.into_iter().find(|(_, bytes)| *bytes > all / 2)?;
            found.cloned()
        };
        objects.into_iter().filter_map(|(object, bindings)| Some((object, most(bindings)?))).collect()
    }
}

/// Looks at the memory of the observed processes from time to time, and keeps what it saw.
#[derive(Debug)]
pub struct Residence {
    root: SysRoot,
    pages: Option<Arc<dyn Pages>>,
    /// Whether there are several nodes, between which memory may move.
    has_nodes: bool,
    /// Who touched each page first.
    pub touched: TouchedPages,
    /// The memory at the look that found most of it.
    peak: ResidentMemory,
    latest: ResidentMemory,
    /// Bytes in memory by the kernel's count, when it was looked at for the peak.
    counted: u64,
    next: u64,
}

impl Residence {
    /// `has_nodes` says whether the machine has several nodes.
    pub fn new(root: &SysRoot, has_nodes: bool) -> Self {
        Self {
            root: root.clone(),
            pages: root.pages().cloned(),
            has_nodes,
            touched: TouchedPages::default(),
            peak: ResidentMemory::default(),
            latest: ResidentMemory::default(),
            counted: 0,
            next: 0,
        }
    }

    /// Looks at these processes if it is time: if their memory has grown, or may have moved.
    pub fn visit(&mut self, processes: &[u32], now: u64) {
        if now < self.next {
            return;
        }
        let counted: u64 = processes.iter().filter_map(|process| resident(&self.root, *process)).sum();
        let has_grown = counted > self.counted + self.counted / GROWN;
        let may_have_moved = self.has_nodes && counted > 0 && now >= self.latest.time + EACH;
        if !has_grown && !may_have_moved {
            return;
        }
        let seen = self.look(processes, counted, now);
        let end = clock::monotonic();
        self.next = end + end.saturating_sub(now) * SHARE;
        if has_grown && !seen.pieces.is_empty() {
            (self.peak, self.counted) = (seen.clone(), counted);
        }
        if !seen.pieces.is_empty() {
            self.latest = seen;
        }
    }

    fn look(&self, processes: &[u32], counted: u64, time: u64) -> ResidentMemory {
        let page = sched::page_size();
        let piece = (counted / MAX_PIECES).max(page).next_power_of_two();
        let mut seen = ResidentMemory { time, pieces: Vec::new() };
        let Some(pages) = &self.pages else { return seen };
        for &process in processes {
            let Ok(mut present) = pages.open(process) else { continue };
            let text = TaskDir::of(&self.root, process).text("maps").unwrap_or_default();
            let first = seen.pieces.len();
            for range in text.lines().filter_map(maps::addresses) {
                for run in runs(present.as_mut(), &range) {
                    seen.pieces.extend(split(&run, piece, page).map(|(address, bytes)| ResidentPiece {
                        process,
                        address,
                        bytes,
                        node: None,
                        by: self.touched.toucher(process, address),
                    }));
                }
            }
            locate(pages.as_ref(), process, &mut seen.pieces, first);
        }
        seen
    }

    /// The memory at the look that found most of it. Who touched pages that were new then may be known only now: their faults are
    /// read later.
    pub fn peak(&mut self) -> &ResidentMemory {
        let Self { peak, touched, .. } = self;
        let is_unknown = |piece: &&mut ResidentPiece| piece.by.is_none_or(|by| by.chain == NO_CHAIN);
        for piece in peak.pieces.iter_mut().filter(is_unknown) {
            piece.by = touched.toucher(piece.process, piece.address).or(piece.by);
        }
        peak
    }

    /// The memory at the last look.
    pub fn latest(&self) -> &ResidentMemory {
        &self.latest
    }
}

/// The bytes of a process in memory.
pub(crate) fn resident(root: &SysRoot, process: u32) -> Option<u64> {
    let text = TaskDir::of(root, process).text("statm").ok()?;
    Some(text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? * sched::page_size())
}

/// The pages of a mapping that are in memory. Of a process that ends meanwhile there are less.
pub(crate) fn runs(present: &mut dyn Present, range: &Range<u64>) -> Vec<PageRun> {
    let (mut found, mut at) = (Vec::new(), range.start);
    while at < range.end {
        match present.runs(at, range.end, &mut found) {
            Ok(reached) if reached > at => at = reached,
            _ => break,
        }
    }
    found
}

/// Pieces of a run that do not cross multiples of a size: an address in the middle of each, and its bytes.
fn split(run: &PageRun, size: u64, page: u64) -> impl Iterator<Item = (u64, u64)> {
    let PageRun { start, end, .. } = *run;
    let mut at = start;
    std::iter::from_fn(move || {
        let next = (at / size + 1).saturating_mul(size).min(end);
        let piece = (at < end).then(|| (at + (next - at) / 2 / page * page, next - at));
        at = next;
        piece
    })
}

/// Fills in the nodes of the pieces from number `first` on. A piece in the zero page takes no memory, and is dropped.
fn locate(pages: &dyn Pages, process: u32, pieces: &mut Vec<ResidentPiece>, first: usize) {
    let mut is_known = true;
    for batch in pieces[first..].chunks_mut(MAX_QUERY) {
        let addresses: Vec<u64> = batch.iter().map(|piece| piece.address).collect();
        match pages.nodes(process, &addresses) {
            Ok(nodes) => batch.iter_mut().zip(nodes).for_each(|(piece, node)| piece.node = node),
            Err(_) => is_known = false,
        }
    }
    if is_known {
        let mut at = 0;
        pieces.retain(|piece| {
            at += 1;
            at <= first || piece.node.is_some()
        });
    }
}

#[cfg(test)]
mod tests;
