//! Text at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most labels that are kept; beyond, the oldest go.
const MAX: usize = 10_000;

/// A text that belongs to a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Its number, never used again.
    pub id: u64,
    /// ns since 1970.
    pub time_ns: u64,
    /// What was noted.
    pub text: String,
}

/// All labels, in the order of their times.
#[derive(Debug, Default)]
pub struct Labels(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    labels: Vec<Label>,
    next: u64,
    version: u64,
}

impl Labels {
    pub(crate) fn push(&self, time_ns: u64, text: &str) -> u64 {
        let mut kept = self.lock();
        let id = kept.next;
        kept.next += 1;
        kept.version += 1;
        let at = kept.labels.partition_point(|l| l.time_ns <= time_ns);
        kept.labels.insert(at, Label { id, time_ns, text: text.to_owned() });
        if kept.labels.len() > MAX {
            kept.labels.remove(0);
        }
        id
    }

    pub(crate) fn edit(&self, id: u64, text: &str) -> bool {
        let mut kept = self.lock();
        let Some(label) = kept.labels.iter_mut().find(|l| l.id == id) else { return false };
        text.clone_into(&mut label.text);
        kept.version += 1;
        true
    }

    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut kept = self.lock();
        let before = kept.labels.len();
        kept.labels.retain(|l| l.id != id);
        let found = kept.labels.len() < before;
        kept.version += u64::from(found);
        found
    }

    pub(crate) fn all(&self) -> Vec<Label> {
        self.lock().labels.clone()
    }

    pub(crate) fn version(&self) -> u64 {
        self.lock().version
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lock().labels.iter().map(|l| size_of::<Label>() + l.text.len()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_the_order_of_time() {
        let labels = Labels::default();
        let late = labels.push(20, "late");
        let early = labels.push(10, "early");
        let texts = || labels.all().into_iter().map(|l| l.text).collect::<Vec<_>>();
        assert_eq!(texts(), ["early", "late"]);
        let version = labels.version();
        assert!(labels.edit(late, "later") && labels.version() > version);
        assert_eq!(texts(), ["early", "later"]);
        assert!(labels.remove(early) && !labels.remove(early) && !labels.edit(early, "x"));
        assert_eq!(texts(), ["later"]);
        assert_ne!(labels.push(5, "new"), early);
    }

    #[test]
    fn the_oldest_go() {
        let labels = Labels::default();
        (0..MAX as u64 + 3).for_each(|time| _ = labels.push(time, ""));
        assert_eq!((labels.all().len(), labels.all()[0].time_ns), (MAX, 3));
    }
}
