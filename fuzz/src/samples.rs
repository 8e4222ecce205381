//! Samples of running programs.

use numakit_findings::comparison::explained::{compare, saved::SavedResult};
use numakit_sampling::calibration;
use numakit_sys::perf::record::{PerfRecord, PerfRecords, SampleLayout};
use numakit_sys::registers::PERF_MASK;
use std::path::Path;

/// Records of performance events. The first 8 bytes are the fields of samples.
pub fn perf_records(input: &[u8]) -> bool {
    let Some((fields, bytes)) = input.split_first_chunk() else { return false };
    let fields = u64::from_ne_bytes(*fields);
    let mut accepted = false;
    for registers in [PERF_MASK, fields] {
        let layout = SampleLayout { fields, registers };
        let mut records = PerfRecords::new(bytes, layout);
        let mut count = 0;
        for record in records.by_ref() {
            count += 1;
            if let PerfRecord::Sample(sample) = record {
                accepted = true;
                assert!(sample.stack.len() < bytes.len());
                assert!(fields & !SampleLayout::KNOWN == 0);
            }
        }
        // Each record has a header.
        assert!(count * 8 + records.rest() <= bytes.len());
    }
    accepted
}

/// Lines of the cache of calibrations.
pub fn landing(input: &[u8]) -> bool {
    let mut accepted = false;
    for line in String::from_utf8_lossy(input).lines() {
        if let Some(kept) = calibration::parse(line) {
            accepted = true;
            let counts = kept.calibration.counts;
            assert_eq!(counts.landing().is_none(), counts.total() < 8);
        }
    }
    accepted
}

/// Results of `numa explain`, compared with themselves, and as text.
pub fn explain_result(input: &[u8]) -> bool {
    let Ok(result) = SavedResult::parse(Path::new("result"), input) else { return false };
    let comparison = compare(&result, &result);
    assert!(comparison.unlike.len() <= 1, "all is alike, but it may be incomplete");
    assert!(!numakit_terminal::compare::text(&comparison, 20).is_empty());
    true
}
