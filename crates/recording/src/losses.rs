//! The parts of a recording that could not be read, in words.

use crate::batch::Batch;
use crate::stream::Damage;
use numakit_model::time::utc_exact;

/// Number of damaged places that are listed one by one.
const MAX_LISTED: usize = 5;

/// The damaged places of a recording, in order.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// The time of the last row, or of the start.
    last: u64,
    list: Vec<Loss>,
}

#[derive(Debug)]
struct Loss {
    damage: Damage,
    after: u64,
    /// The time of the first row after it.
    before: Option<u64>,
}

impl Losses {
    /// For a recording that began then.
    pub fn since(started: u64) -> Self {
        Self { last: started, ..Self::default() }
    }

    /// Notes rows that were read.
    pub fn read(&mut self, batch: &Batch) {
        let (Some(first), Some(last)) = (batch.time.first(), batch.time.last()) else { return };
        if let Some(open) = self.list.last_mut() {
            open.before.get_or_insert(*first);
        }
        self.last = *last;
    }

    /// Notes bytes that could not be read.
    pub fn add(&mut self, damage: Damage) {
        self.list.push(Loss { damage, after: self.last, before: None });
    }

    /// Forgets the bytes after the last row: their rows were read from the tail file.
    pub fn forget_last(&mut self) {
        if self.list.last().is_some_and(|loss| loss.before.is_none()) {
            self.list.pop();
        }
    }

    /// All of them; `None` if nothing was lost.
    pub fn text(&self, length: u64) -> Option<String> {
        let mut messages: Vec<String> =
            self.list.iter().take(MAX_LISTED).map(|loss| loss.text(length)).collect();
        let more = self.list.get(MAX_LISTED..).unwrap_or_default();
        if !more.is_empty() {
            let bytes: u64 = more.iter().map(|loss| loss.damage.at.end - loss.damage.at.start).sum();
            messages.push(format!("{} more places of {bytes} bytes could not be read", more.len()));
        }
        (!messages.is_empty()).then(|| messages.join("; "))
    }
}

impl Loss {
    fn text(&self, length: u64) -> String {
        let Damage { at, rows, why } = &self.damage;
        let bytes = at.end - at.start;
        if *rows == Some(0) && at.start == 0 {
            return format!(
                "its first {bytes} bytes could not be read: {why}; the copy of them in a batch was used"
            );
        }
        let after = utc_exact(self.after);
        let samples = match rows {
            Some(1) => "1 sample".to_owned(),
            Some(rows) => format!("{rows} samples"),
            None => "samples".to_owned(),
        };
        match self.before {
            Some(before) => format!(
                "{samples} between {after} and {} could not be read ({bytes} bytes: {why})",
                utc_exact(before)
            ),
            None => format!("the last {bytes} of {length} bytes, after {after}, could not be read: {why}"),
        }
    }
}
