//! Where the pages of a file should be, by the nodes whose threads were seen to use them.
//!
//! Samples are sparse: one in many pages has one. So neighbouring pages are taken together as long as the same nodes use
//! them, as far as the samples can tell.

mod segments;

use self::segments::{MIN_SAMPLES, Segments};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// A node that has this share of the samples of a range gets the range.
const DOMINANT: f64 = 0.6;
/// A range without a dominant node is spread over the nodes that have at least this part of what the first has.
const READER: f64 = 0.2;

/// A page of a file as threads of a node were seen to use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageUse {
    /// The page: its number in the file.
    pub page: u64,
    /// The node of the threads.
    pub node: u32,
    /// The node of the page at that time, if the kernel told it.
    pub home: Option<u32>,
}

/// Where a range of pages is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RangeTarget {
    /// It goes to the node whose threads use it.
    Node(u32),
    /// It goes page by page to these nodes in turn, whose threads all use it.
    Shared(Vec<u32>),
    /// It stays: no thread was seen to use it.
    Unused,
    /// The range stays, since it has too few samples.
    Unclear,
}

/// A range of pages with one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRange {
    /// The pages.
    pub pages: Range<u64>,
    /// Where these pages are to be.
    pub target: RangeTarget,
    /// Samples by node of the threads.
    pub samples: BTreeMap<u32, u64>,
}

/// A target for each page of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsePlan {
    /// From the first page of the file to the last, without gaps.
    pub ranges: Vec<PlannedRange>,
}

/// Samples of a file whose page was on another node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct FarSamples {
    /// All samples of the file.
    pub samples: u64,
    /// Samples for which the kernel told the node of the page.
    pub placed: u64,
    /// Of the `placed` samples, those that were far.
    pub before: u64,
    /// Of the `placed` samples, those that will be far, if threads do the same again.
    pub after: f64,
}

impl UsePlan {
    /// A plan for a file with this number of pages, by numbers of samples.
    pub fn new(uses: &BTreeMap<PageUse, u64>, pages: u64) -> Self {
        let mut by_page: BTreeMap<u64, BTreeMap<u32, u64>> = BTreeMap::new();
        for (used, count) in uses.iter().filter(|(used, _)| used.page < pages) {
            *by_page.entry(used.page).or_default().entry(used.node).or_default() += count;
        }
        let mut ranges: Vec<PlannedRange> = Vec::new();
        for (range, of_segment) in Segments::of(&by_page).ranges(pages) {
            let target = of_segment.map_or(RangeTarget::Unused, |samples| target(&samples));
            match ranges.last_mut().filter(|last| last.target == target && last.pages.end == range.start) {
                Some(last) => last.pages.end = range.end,
                None => ranges.push(PlannedRange { pages: range, target, samples: BTreeMap::new() }),
            }
        }
        for range in &mut ranges {
            for (_, nodes) in by_page.range(range.pages.clone()) {
                nodes.iter().for_each(|(node, count)| *range.samples.entry(*node).or_default() += count);
            }
        }
        Self { ranges }
    }

    /// The range of a page.
    fn range(&self, page: u64) -> Option<&PlannedRange> {
        let at = self.ranges.partition_point(|range| range.pages.end <= page);
        self.ranges.get(at).filter(|range| range.pages.contains(&page))
    }

    /// The node where a page is to be; `None` if it is to stay. `block` pages together have one node.
    pub fn node(&self, page: u64, block: u64) -> Option<u32> {
        let block = block.max(1);
        let number = page / block;
        match &self.range(number * block + block / 2).or_else(|| self.range(page))?.target {
            RangeTarget::Node(node) => Some(*node),
            RangeTarget::Shared(nodes) => nodes.get((number % (nodes.len() as u64).max(1)) as usize).copied(),
            RangeTarget::Unused | RangeTarget::Unclear => None,
        }
    }

    /// The number of pages of the file; none for ranges that are not in order without gaps, as in a plan that was changed.
    pub fn pages(&self) -> Option<u64> {
        let next = |at: u64, range: &PlannedRange| {
            let is_shared_by_none = matches!(&range.target, RangeTarget::Shared(nodes) if nodes.is_empty());
            let is_next = range.pages.start == at && range.pages.end > at && !is_shared_by_none;
            is_next.then_some(range.pages.end)
        };
        self.ranges.iter().try_fold(0, next)
    }

    /// All nodes to which pages go.
    pub fn nodes(&self) -> Vec<u32> {
        let of = |range: &PlannedRange| match &range.target {
            RangeTarget::Node(node) => vec![*node],
            RangeTarget::Shared(nodes) => nodes.clone(),
            RangeTarget::Unused | RangeTarget::Unclear => Vec::new(),
        };
        let mut nodes: Vec<u32> = self.ranges.iter().flat_map(of).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// How many samples were far, and how many of the same samples will be far after the plan.
    pub fn far(&self, uses: &BTreeMap<PageUse, u64>) -> FarSamples {
        let mut far = FarSamples::default();
        for (used, count) in uses {
            far.samples += count;
            let Some(home) = used.home else { continue };
            far.placed += count;
            far.before += if home == used.node { 0 } else { *count };
            let near = match self.range(used.page).map(|range| &range.target) {
                Some(RangeTarget::Node(node)) => f64::from(u8::from(*node == used.node)),
                Some(RangeTarget::Shared(nodes)) if nodes.contains(&used.node) => 1.0 / nodes.len() as f64,
                Some(RangeTarget::Shared(_)) => 0.0,
                _ => f64::from(u8::from(home == used.node)),
            };
            far.after += *count as f64 * (1.0 - near);
        }
        far
    }
}

/// Where pages are to be that nodes use as often as these samples say.
fn target(samples: &BTreeMap<u32, u64>) -> RangeTarget {
    let all: u64 = samples.values().sum();
    if all < MIN_SAMPLES {
        return RangeTarget::Unclear;
    }
    let (node, most) = samples.iter().fold(
        (0, 0),
        |best, (node, count)| {
            if *count > best.1 { (*node, *count) } else { best }
        },
    );
    if most as f64 >= DOMINANT * all as f64 {
        return RangeTarget::Node(node);
    }
    let reads = |count: u64| count as f64 >= READER * most as f64;
    RangeTarget::Shared(samples.iter().filter(|(_, count)| reads(**count)).map(|(node, _)| *node).collect())
}

#[cfg(test)]
mod tests;
