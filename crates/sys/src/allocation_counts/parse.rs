//! The words of the memory file as counts. Programs may have overwritten them: any words give some counts.

use super::layout::*;

/// What a program's processes counted together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AllocationCounts {
    /// All processes that loaded the library, in the order in which they started. Processes beyond the 1,023rd are left out.
    pub processes: Vec<CountedProcess>,
    /// The number of processes that loaded the library, including those that are left out.
    pub process_count: u64,
    /// Threads that called the allocator.
    pub threads: u64,
    /// The sums.
    pub totals: CountTotals,
    /// Allocations by their requested size; only sizes that occurred.
    pub sizes: Vec<SizeCount>,
    /// Lives of sampled blocks, by the time from malloc to free in ns; only those that occurred.
    pub by_time: Vec<LifeCount>,
    /// Freed blocks by the length of their life, as the bytes that the process allocated meanwhile.
    pub by_bytes: Vec<LifeCount>,
    /// The call chains of sampled blocks.
    pub sites: Vec<CountedSite>,
    /// The files with their code.
    pub modules: Vec<CountedModule>,
    /// Sampled blocks without a life, for want of room.
    pub lost_lives: u64,
    /// Sampled blocks without a call chain, for want of room.
    pub lost_sites: u64,
    /// Processes without an unwinder: chains are the caller of malloc only.
    pub without_unwinder: u64,
    /// Processes whose live memory is not known.
    pub without_live: u64,
    /// Page faults of the library's own memory.
    pub own_faults: u64,
}

/// A process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountedProcess {
    /// Its ID, in its own namespace.
    pub pid: u32,
    /// The place of the process that forked it; `None` for a program that was executed.
    pub parent: Option<usize>,
    /// Bytes of live blocks.
    pub live: u64,
    /// The maximum of `live`.
    pub peak: u64,
    /// Bytes of all its blocks.
    pub allocated: u64,
    /// Memory of the library itself.
    pub own_bytes: u64,
}

/// Sums over all processes and threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountTotals {
    /// Allocated blocks, including those that realloc made of other blocks.
    pub allocations: u64,
    /// Bytes that were asked for.
    pub requested: u64,
    /// Bytes of these blocks as the allocator rounds them.
    pub usable: u64,
    /// Freed blocks, including those of which realloc made other blocks.
    pub frees: u64,
    /// Allocations by realloc of a block.
    pub reallocs: u64,
    /// Allocations by calloc.
    pub zeroed: u64,
    /// Allocations with an alignment.
    pub aligned: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Time in the allocator for allocations, in ns.
    pub taking_ns: u64,
    /// Time in the allocator for frees, in ns.
    pub giving_ns: u64,
    /// Time that counting took.
    pub counting_ns: u64,
}

/// Allocations of some sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeCount {
    /// The least size.
    pub from: u64,
    /// The largest size.
    pub to: u64,
    /// How many.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Freed blocks whose life had a length from `from` to below `to`; estimated from samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LifeCount {
    /// The least length.
    pub from: u64,
    /// The length behind.
    pub to: u64,
    /// How many.
    pub blocks: f64,
    /// Their bytes.
    pub bytes: u64,
}

/// A call chain that allocates; numbers are estimated from samples.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedSite {
    /// The place of the process that executed the program.
    pub image: usize,
    /// Addresses behind calls, innermost first.
    pub frames: Vec<u64>,
    /// Sampled blocks.
    pub samples: u64,
    /// Blocks that it allocated.
    pub blocks: f64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks among these that were freed.
    pub freed_blocks: f64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// The sum of their lives, in seconds.
    pub life: f64,
}

/// A mapped file with code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedModule {
    /// The place of the process that executed the program.
    pub image: usize,
    /// The first address.
    pub from: u64,
    /// The address behind.
    pub to: u64,
    /// The offset of the first address in the file.
    pub offset: u64,
    /// The path.
    pub path: String,
}

/// A weight of one block.
const WEIGHT_ONE: f64 = 1024.0;

/// Why there are no counts in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountsError {
    /// The file has a different size.
    #[error("the file of counts has {0} words and not {WORDS}")]
    Size(usize),
    /// The beginning of the file was overwritten.
    #[error("the program has overwritten its counts")]
    Damaged,
}

impl AllocationCounts {
    /// Parses the words of the file.
    pub fn parse(words: &[u64]) -> Result<Self, CountsError> {
        if words.len() != WORDS {
            return Err(CountsError::Size(words.len()));
        }
        if (words[header::MAGIC], words[header::VERSION]) != (MAGIC, VERSION) {
            return Err(CountsError::Damaged);
        }
        let rows = |at: usize, count: usize, size: usize| words[at..at + count * size].chunks_exact(size);
        Ok(Self {
            processes: rows(PROCESSES_AT, PROCESSES, PROCESS_WORDS).filter_map(process).collect(),
            process_count: words[header::PROCESSES],
            threads: words[header::THREADS],
            totals: totals(words),
            sizes: sizes(words),
            by_time: lives(&words[BY_TIME_AT..BY_BYTES_AT]),
            by_bytes: lives(&words[BY_BYTES_AT..SITES_AT]),
            sites: rows(SITES_AT, SITES, SITE_WORDS).filter_map(site).collect(),
            modules: rows(MODULES_AT, MODULES, MODULE_WORDS).filter_map(module).collect(),
            lost_lives: words[header::LOST_LIVES],
            lost_sites: words[header::LOST_SITES],
            without_unwinder: words[header::NO_UNWINDER],
            without_live: words[header::NO_USABLE],
            own_faults: words[header::OWN_FAULTS],
        })
    }
}

/// A word that also falls: blocks that were allocated before counting began make it negative.
fn level(word: u64) -> u64 {
    if word > i64::MAX as u64 { 0 } else { word }
}

fn place(word: u64) -> usize {
    usize::try_from(word).unwrap_or(usize::MAX)
}

pub(super) fn process(words: &[u64]) -> Option<CountedProcess> {
    let pid = u32::try_from(words[0]).ok().filter(|pid| *pid != 0)?;
    let parent = words[1].checked_sub(1).map(place);
    let [live, peak, allocated, own_bytes] = [level(words[3]), level(words[4]), words[5], words[6]];
    Some(CountedProcess { pid, parent, live, peak, allocated, own_bytes })
}

fn totals(words: &[u64]) -> CountTotals {
    let shards = words[SHARDS_AT..BY_TIME_AT].chunks_exact(SHARD_WORDS);
    let sum = |word: usize| shards.clone().fold(0u64, |sum, shard| sum.saturating_add(shard[word]));
    let of_sizes =
        |word: usize| (0..SIZES).map(|step| sum(SHARD_HEAD + 2 * step + word)).fold(0, u64::saturating_add);
    let scale = u128::from(words[header::NS_PER_TICK]);
    let ns = |ticks: u64| u64::try_from((u128::from(ticks) * scale) >> 32).unwrap_or(u64::MAX);
    let (allocations, frees, reallocs, failed) = (of_sizes(0), sum(1), sum(2), sum(5));
    // Two readings of the clock take time too, some of which is between them.
    let pair = words[header::PAIR_TICKS];
    let taken = allocations.saturating_add(failed);
    let between = |calls: u64| calls.saturating_mul(pair);
    let given = frees.saturating_sub(reallocs);
    let outside =
        taken.saturating_add(given).saturating_mul(words[header::OUTSIDE_TICKS].saturating_add(pair));
    CountTotals {
        allocations,
        requested: of_sizes(1),
        usable: sum(0),
        frees,
        reallocs,
        zeroed: sum(3),
        aligned: sum(4),
        failed,
        taking_ns: ns(sum(6).saturating_sub(between(taken))),
        giving_ns: ns(sum(7).saturating_sub(between(given))),
        counting_ns: ns(sum(8).saturating_add(outside)),
    }
}

/// The sizes of a step: four steps for each power of two.
fn sizes_of_step(step: usize) -> Option<(u64, u64)> {
    let from = |step: u64| match step {
        0..4 => Some(step),
        _ => {
            let log = step / 4 + 1;
            (log < 64).then(|| (4 + step % 4) << (log - 2))
        }
    };
    let step = step as u64;
    Some((from(step)?, from(step + 1).map_or(u64::MAX, |next| next - 1)))
}

fn sizes(words: &[u64]) -> Vec<SizeCount> {
    let shards = words[SHARDS_AT..BY_TIME_AT].chunks_exact(SHARD_WORDS);
    let sum = |word: usize| shards.clone().fold(0u64, |sum, shard| sum.saturating_add(shard[word]));
    let step = |step: usize| {
        let (from, to) = sizes_of_step(step)?;
        let blocks = sum(SHARD_HEAD + 2 * step);
        (blocks > 0).then(|| SizeCount { from, to, blocks, bytes: sum(SHARD_HEAD + 2 * step + 1) })
    };
    (0..SIZES).filter_map(step).collect()
}

fn lives(words: &[u64]) -> Vec<LifeCount> {
    let life = |(log, words): (usize, &[u64])| {
        let from = if log == 0 { 0 } else { 1u64 << log };
        let to = 1u64.checked_shl(log as u32 + 1).unwrap_or(u64::MAX);
        LifeCount { from, to, blocks: words[0] as f64 / WEIGHT_ONE, bytes: words[1] }
    };
    words.chunks_exact(2).enumerate().map(life).filter(|life| life.blocks > 0.0).collect()
}

fn site(words: &[u64]) -> Option<CountedSite> {
    let count = usize::try_from(words[3]).ok().filter(|count| (1..=FRAMES).contains(count))?;
    Some(CountedSite {
        image: place(words[2]),
        frames: words[SITE_HEAD..SITE_HEAD + count].to_vec(),
        samples: words[1],
        blocks: words[4] as f64 / WEIGHT_ONE,
        bytes: words[5],
        freed_blocks: words[6] as f64 / WEIGHT_ONE,
        freed_bytes: words[7],
        life: words[8] as f64 / 1e6,
    })
    .filter(|site| words[0] != 0 && site.samples > 0)
}

fn module(words: &[u64]) -> Option<CountedModule> {
    let image = place(words[0].checked_sub(1)?);
    let bytes: Vec<u8> = words[MODULE_HEAD..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let path = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let path = String::from_utf8_lossy(path).into_owned();
    (words[1] < words[2]).then_some(CountedModule {
        image,
        from: words[1],
        to: words[2],
        offset: words[3],
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_sizes_follow_each_other() {
        let steps: Vec<_> = (0..SIZES).filter_map(sizes_of_step).collect();
        assert_eq!(&steps[..7], &[(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6)]);
        assert_eq!(steps[8..10], [(8, 9), (10, 11)]);
        assert_eq!(steps.last().map(|step| step.1), Some(u64::MAX));
        assert!(steps.windows(2).all(|two| two[0].1 + 1 == two[1].0));
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(AllocationCounts::parse(&[1; 7]), Err(CountsError::Size(7)));
        assert_eq!(AllocationCounts::parse(&vec![0; WORDS]), Err(CountsError::Damaged));
    }
}
