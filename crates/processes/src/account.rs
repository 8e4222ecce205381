//! The total counts of a process tree, including exited processes.
//!
//! When a parent waits for a child, the kernel adds the child's counts to the parent's counts of
//! waited-for children. So the counts of an exited member become a debt of its nearest ancestor in the
//! tree; the growth of the ancestor's counts pays it, and nothing counts twice. What is not paid by the
//! second scan after the exit, because no process of the tree waited, is added to separate counts.

use numakit_sys::proc::Counts;

/// The counts of one member, and its debt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    own: Counts,
    waited: Counts,
    /// Counts of exited descendants that were not waited for at the last scan.
    owed: Counts,
    /// The same, of those that exited since the last scan.
    fresh: Counts,
    gained: Counts,
}

impl Account {
    /// Sets the current counts. Parents must be scanned before their children: then a child that
    /// still exists is not part of its parent's counts yet.
    pub fn update(&mut self, own: Counts, waited: Counts) {
        for at in 0..own.len() {
            self.own[at] = self.own[at].max(own[at]);
            self.gained[at] = waited[at].saturating_sub(self.waited[at]);
            self.waited[at] = self.waited[at].max(waited[at]);
        }
    }

    /// Adds the debt for an exited descendant.
    pub fn inherit(&mut self, exited: &Self) {
        add(&mut self.fresh, &exited.total());
    }

    /// Settles the debt after a scan; what remains unpaid goes to `lost`.
    pub fn settle(&mut self, lost: &mut Counts) {
        for (at, lost) in lost.iter_mut().enumerate() {
            let paid = self.owed[at].min(self.gained[at]);
            *lost = lost.saturating_add(self.owed[at] - paid);
            self.owed[at] = self.fresh[at].saturating_sub(self.gained[at] - paid);
        }
        (self.fresh, self.gained) = Default::default();
    }

    /// Its total, with the debt.
    pub fn total(&self) -> Counts {
        let mut sum = self.own;
        [&self.waited, &self.owed, &self.fresh].into_iter().for_each(|more| add(&mut sum, more));
        sum
    }
}

/// Adds counts, saturating.
pub fn add(sum: &mut Counts, more: &Counts) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(accounts: &[&Account], lost: &Counts) -> u64 {
        accounts.iter().map(|a| a.total()[0]).sum::<u64>() + lost[0]
    }

    #[test]
    fn a_child_that_was_waited_for_counts_once() {
        let (mut parent, mut child, mut lost) = (Account::default(), Account::default(), [0; 3]);
        parent.update([10, 0, 0], [0; 3]);
        child.update([7, 0, 0], [2, 0, 0]);
        assert_eq!(sum(&[&parent, &child], &lost), 19);
        // It did 3 more before it exited.
        parent.update([11, 0, 0], [12, 0, 0]);
        parent.inherit(&child);
        parent.settle(&mut lost);
        assert_eq!((sum(&[&parent], &lost), lost[0]), (23, 0));
    }

    #[test]
    fn a_child_that_is_reaped_between_the_scans_of_parent_and_child_counts_once() {
        let (mut parent, mut child, mut lost) = (Account::default(), Account::default(), [0; 3]);
        child.update([7, 0, 0], [0; 3]);
        parent.update([10, 0, 0], [0; 3]);
        parent.inherit(&child);
        parent.settle(&mut lost);
        assert_eq!(sum(&[&parent], &lost), 17);
        parent.update([10, 0, 0], [7, 0, 0]);
        parent.settle(&mut lost);
        assert_eq!((sum(&[&parent], &lost), lost[0]), (17, 0));
    }

    #[test]
    fn a_child_without_a_waiting_parent_is_kept() {
        let (mut parent, mut child, mut lost) = (Account::default(), Account::default(), [0; 3]);
        child.update([7, 0, 0], [0; 3]);
        parent.inherit(&child);
        for _ in 0..3 {
            parent.settle(&mut lost);
            parent.update([10, 0, 0], [0; 3]);
            assert_eq!(sum(&[&parent], &lost), 17);
        }
        assert_eq!(lost[0], 7);
    }

    proptest! {
        /// Children start, work, exit and are waited for or not, a scan earlier or later.
        #[test]
        fn the_sum_never_decreases_and_waited_children_count_once(
            steps in prop::collection::vec((0u64..50, 0u64..50, 0u8..3), 1..40)
        ) {
            let (mut parent, mut lost) = (Account::default(), [0; 3]);
            let (mut waited, mut late, mut true_sum, mut last) = (0, 0, 0, 0);
            let mut unwaited = false;
            for (seen, unseen, fate) in steps {
                waited += std::mem::take(&mut late);
                let mut child = Account::default();
                child.update([seen, 0, 0], [0; 3]);
                true_sum += seen + unseen;
                match fate {
                    0 => waited += seen + unseen,
                    1 => late = seen + unseen,
                    _ => { unwaited = true; true_sum -= unseen; }
                }
                parent.update([0; 3], [waited, 0, 0]);
                parent.inherit(&child);
                parent.settle(&mut lost);
                let now = sum(&[&parent], &lost);
                prop_assert!(now >= last);
                prop_assert!(now <= true_sum);
                last = now;
            }
            parent.update([0; 3], [waited + late, 0, 0]);
            parent.settle(&mut lost);
            if !unwaited {
                prop_assert_eq!(sum(&[&parent], &lost), true_sum);
            }
        }
    }
}
