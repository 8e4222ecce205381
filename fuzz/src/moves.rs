//! Files that tell how a move is undone.

use numakit_mover::MoveRecord;

/// A record: what is accepted is in order, and reads the same when it is written again.
pub fn record(input: &[u8]) -> bool {
    let Ok(record) = MoveRecord::parse(&String::from_utf8_lossy(input)) else { return false };
    assert!(record.pages.iter().all(|pages| pages.start < pages.end));
    assert!(record.pages.windows(2).all(|pair| pair[0].end <= pair[1].start));
    assert!(!record.command.chars().any(char::is_control));
    let text = serde_json::to_string(&record).unwrap_or_default();
    assert_eq!(MoveRecord::parse(&text).ok(), Some(record));
    true
}
