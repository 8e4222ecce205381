//! Counts of allocations that observed programs write, or overwrite.

use numakit_sys::allocation_counts::{AllocationCounts, COUNTS_MAGIC, COUNTS_VERSION, COUNTS_WORDS};

/// A file of counts into which a program writes anything: twelve bytes are a place and a value.
pub fn words(input: &[u8]) -> bool {
    let mut words = vec![0; COUNTS_WORDS];
    (words[0], words[1]) = (COUNTS_MAGIC, COUNTS_VERSION);
    for write in input.chunks_exact(12) {
        let (place, value) = write.split_at(4);
        let (Ok(place), Ok(value)) = (place.try_into(), value.try_into()) else { return false };
        words[u32::from_le_bytes(place) as usize % COUNTS_WORDS] = u64::from_le_bytes(value);
    }
    let Ok(counts) = AllocationCounts::parse(&words) else { return false };
    assert!(counts.processes.len() <= 1024 && counts.sites.iter().all(|site| !site.frames.is_empty()));
    assert!(counts.modules.iter().all(|module| module.from < module.to));
    assert!(
        counts.by_time.iter().chain(&counts.by_bytes).all(|life| life.from < life.to && life.blocks > 0.0)
    );
    true
}
