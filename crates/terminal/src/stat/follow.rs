//! The table of live samples.

use super::StatTable;
use numakit_recording::Ring;
use numakit_recording::ring::{Pending, RingEntry};

/// Maximum sleep while the ring is empty, in ns.
const MAX_SLEEP: u64 = 3_600_000_000_000;

/// Writes the lines of all samples and labels of a ring as they arrive, until the ring
/// is closed or `count` samples were shown.
pub fn follow<E>(
    mut table: StatTable,
    ring: &Ring,
    count: Option<u64>,
    mut write: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let (mut left, mut values) = (count, vec![None; ring.columns()]);
    for pending in ring.views(1, usize::MAX, MAX_SLEEP) {
        let text = table.lines_of(&pending, &mut values, &mut left);
        pending.release();
        write(&text)?;
        if left == Some(0) {
            break;
        }
    }
    Ok(())
}

impl StatTable {
    /// The lines of the pending entries, up to the last of the samples that are left to show.
    fn lines_of(
        &mut self,
        pending: &Pending<'_>,
        values: &mut [Option<u64>],
        left: &mut Option<u64>,
    ) -> String {
        let mut text = String::new();
        for entry in pending.entries() {
            match entry {
                _ if *left == Some(0) => break,
                RingEntry::Label { time, index } => self.label(time, &pending.label_text(index), &mut text),
                RingEntry::Row(row) => {
                    row.values(values);
                    let shown = self.sample(row.time(), values, &mut text);
                    *left = left.map(|left| left - u64::from(shown));
                }
            }
        }
        text
    }
}
