//! Labels and their store.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Labels that are stored; the oldest are dropped first.
const MAX: usize = 10_000;

/// A text at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Its number, unique.
    pub id: u64,
    /// ns since 1970.
    pub time_ns: u64,
    /// Its text.
    pub text: String,
}

/// All labels, in the order of their times.
#[derive(Debug, Default)]
pub struct Labels(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    labels: Vec<Label>,
    next: u64,
    version: u64,
}

impl Labels {
    pub(crate) fn push(&self, time_ns: u64, text: &str) -> u64 {
        let mut list = self.lock();
        let id = list.next;
        list.next += 1;
        list.version += 1;
        let at = list.labels.partition_point(|l| l.time_ns <= time_ns);
        list.labels.insert(at, Label { id, time_ns, text: text.to_owned() });
        if list.labels.len() > MAX {
            list.labels.remove(0);
        }
        id
    }

    pub(crate) fn edit(&self, id: u64, text: &str) -> bool {
        let mut list = self.lock();
        let Some(label) = list.labels.iter_mut().find(|l| l.id == id) else { return false };
        text.clone_into(&mut label.text);
        list.version += 1;
        true
    }

    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut list = self.lock();
        let before = list.labels.len();
        list.labels.retain(|l| l.id != id);
        let found = list.labels.len() < before;
        list.version += u64::from(found);
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

    fn lock(&self) -> MutexGuard<'_, List> {
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
    fn the_oldest_are_dropped() {
        let labels = Labels::default();
        (0..MAX as u64 + 3).for_each(|time| _ = labels.push(time, ""));
        assert_eq!((labels.all().len(), labels.all()[0].time_ns), (MAX, 3));
    }
}
