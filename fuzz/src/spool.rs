//! What waits for an engine, in files that may be damaged.

use numakit_push::spool::SpoolFile;

/// A file of a spool: the rows of its records are in order, and as wide as the description says.
pub fn file(input: &[u8]) -> bool {
    let Ok(segment) = SpoolFile::parse(input.to_vec()) else { return false };
    assert!(segment.damaged <= input.len());
    assert!(segment.records.windows(2).all(|two| two[0].end() <= two[1].sequence));
    let rows = segment.records.iter().filter_map(|record| segment.rows(record));
    rows.filter(|batch| batch.columns.len() == segment.header.series.len()).count() > 0
}
