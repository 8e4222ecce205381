//! Neighbouring pages that the same nodes use: samples in the order of pages, merged from the bottom up as long as a
//! likelihood test finds no difference.
//!
//! From the bottom up, since files are often striped: each of many matrices is divided among the same threads. Seen from
//! above, all halves of such a file look alike.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// Two neighbouring segments stay apart if one distribution for both is this much less likely than two, as a logarithm. The
/// logarithm of the number of samples is added: there are as many places at which the two could differ by chance.
const APART: f64 = 2.0;
/// Pages without samples are no part of a segment if there are more of them than this, in mean distances of samples. The
/// logarithm of the number of samples is added here too.
const GAP: f64 = 5.0;
/// A segment with fewer samples than this says nothing of its own.
pub const MIN_SAMPLES: u64 = 4;

/// Consecutive sampled pages.
#[derive(Debug, Clone)]
struct Segment {
    /// The segment's pages, as positions among the sampled ones.
    pages: Range<usize>,
    /// Samples by node.
    samples: BTreeMap<u32, u64>,
    /// How often the segment was merged, so that a loss that was computed before is not taken for the present one.
    version: u32,
    previous: Option<usize>,
    next: Option<usize>,
}

/// Pages of a file, and the samples by node of the segment that they belong to; none for pages that were not used.
pub type UsedRange = (Range<u64>, Option<BTreeMap<u32, u64>>);

/// All segments of a file.
#[derive(Debug)]
pub struct Segments {
    /// The sampled pages, in order.
    pages: Vec<u64>,
    segments: Vec<Segment>,
    /// The logarithm of the number of samples.
    chances: f64,
}

/// The loss of a merge, as an ordered number; the left segment and the versions of both.
type Merge = Reverse<(u64, usize, u32, usize, u32)>;

impl Segments {
    /// One segment for each sampled page, from samples by page and node.
    pub fn of(by_page: &BTreeMap<u64, BTreeMap<u32, u64>>) -> Self {
        let pages: Vec<u64> = by_page.keys().copied().collect();
        let all: u64 = by_page.values().flat_map(BTreeMap::values).sum();
        let count = pages.len();
        let segment = |(at, samples): (usize, &BTreeMap<u32, u64>)| Segment {
            pages: at..at + 1,
            samples: samples.clone(),
            version: 0,
            previous: at.checked_sub(1),
            next: Some(at + 1).filter(|next| *next < count),
        };
        let segments = by_page.values().enumerate().map(segment).collect();
        let mut found = Self { pages, segments, chances: (all.max(1) as f64).ln() };
        found.merge();
        found
    }

    fn merge(&mut self) {
        let mut merges: BinaryHeap<Merge> =
            (0..self.segments.len()).filter_map(|at| self.merge_with_next(at)).collect();
        while let Some(Reverse((_, left, left_version, right, right_version))) = merges.pop() {
            let is_current = |at: usize, version: u32| {
                let segment: &Segment = &self.segments[at];
                segment.version == version && !segment.pages.is_empty()
            };
            if !is_current(left, left_version) || !is_current(right, right_version) {
                continue;
            }
            let taken = std::mem::replace(&mut self.segments[right].pages, 0..0);
            let (samples, next) = (self.segments[right].samples.clone(), self.segments[right].next);
            let merged = &mut self.segments[left];
            merged.pages.end = taken.end;
            merged.version += 1;
            merged.next = next;
            samples.iter().for_each(|(node, count)| *merged.samples.entry(*node).or_default() += count);
            let previous = merged.previous;
            next.into_iter().for_each(|next| self.segments[next].previous = Some(left));
            merges.extend(self.merge_with_next(left));
            merges.extend(previous.and_then(|previous| self.merge_with_next(previous)));
        }
    }

    /// The loss if a segment is merged with the next one; `None` if the nodes that use the two differ.
    fn merge_with_next(&self, left: usize) -> Option<Merge> {
        let one = &self.segments[left];
        let right = one.next?;
        let other = &self.segments[right];
        let mut both = one.samples.clone();
        other.samples.iter().for_each(|(node, count)| *both.entry(*node).or_default() += count);
        let loss = (unlikely(&both) - unlikely(&one.samples) - unlikely(&other.samples)).max(0.0);
        let fewest = [one, other].map(|segment| segment.samples.values().sum::<u64>()).into_iter().min();
        let is_alike = loss < self.chances + APART || fewest < Some(MIN_SAMPLES);
        // Numbers that are not negative are in the order of their bits.
        is_alike.then(|| Reverse((loss.to_bits(), left, one.version, right, other.version)))
    }

    /// All pages of a file with this number of pages. A range of a segment has the segment's samples by node; the ranges
    /// between segments were not used, and have none.
    pub fn ranges(&self, pages: u64) -> Vec<UsedRange> {
        let mut ranges = Vec::new();
        let mut at = 0;
        let alive: Vec<&Segment> = self.segments.iter().filter(|segment| !segment.pages.is_empty()).collect();
        for (number, segment) in alive.iter().enumerate() {
            let sampled = &self.pages[segment.pages.clone()];
            let reach = mean_distance(sampled);
            // A gap without samples that is longer than this is no chance.
            let gap = (reach as f64 * (self.chances + GAP)) as u64;
            for (place, page) in sampled.iter().enumerate() {
                if page.saturating_sub(at) > gap {
                    ranges.push((at..page - reach, None));
                    at = page - reach;
                }
                let is_last = place + 1 == sampled.len();
                let next = match (is_last, alive.get(number + 1)) {
                    (false, _) => sampled[place + 1],
                    (true, Some(next)) => self.pages[next.pages.start],
                    (true, None) => pages,
                };
                let end = match next - page {
                    distance if distance > gap => page + reach,
                    // Between two segments, half of the pages belong to each.
                    distance if is_last && next < pages => page + distance.div_ceil(2),
                    distance => page + distance,
                };
                let end = end.clamp(page + 1, pages);
                ranges.push((at..end, Some(segment.samples.clone())));
                at = end;
            }
        }
        if at < pages {
            ranges.push((at..pages, None));
        }
        ranges
    }
}

/// The mean distance of sampled pages, without the largest gaps: half of the distances are at most the median, and the mean
/// is 1.44 times that if samples come by chance.
fn mean_distance(sampled: &[u64]) -> u64 {
    let mut distances: Vec<u64> = sampled.windows(2).map(|pair| pair[1] - pair[0]).collect();
    distances.sort_unstable();
    distances.get(distances.len() / 2).map_or(1, |median| (*median as f64 * 1.44).ceil() as u64)
}

/// How unlikely these samples are, as a logarithm, if their own shares are the probabilities.
fn unlikely(samples: &BTreeMap<u32, u64>) -> f64 {
    let term = |count: u64| if count == 0 { 0.0 } else { count as f64 * (count as f64).ln() };
    term(samples.values().sum()) - samples.values().map(|count| term(*count)).sum::<f64>()
}
