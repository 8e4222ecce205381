//! Barriers of several kinds. A thread that waits looks at a cache line of its own or at a shared one. After many looks it
//! gives up its CPU for a moment.

use numakit_sys::loops::{OpenMp, PthreadBarrier};
use std::sync::atomic::{AtomicU32, Ordering};

/// Looks at a line before another program may have the CPU.
const LOOKS: u32 = 10_000;
/// Children of a thread in a tree.
const FAN_IN: usize = 4;

/// A place where all threads wait for each other.
pub(crate) trait Barrier: Sync {
    /// Waits until all threads have called this. `me` is the number of the thread, from 0; `turn` is 1 for the first
    /// barrier, and one more for each further one.
    fn wait(&self, me: usize, turn: u32);
}

impl Barrier for PthreadBarrier {
    fn wait(&self, _: usize, _: u32) {
        Self::wait(self);
    }
}

impl Barrier for OpenMp {
    fn wait(&self, _: usize, _: u32) {
        self.barrier();
    }
}

/// A number that has a cache line of its own; two lines, since some CPUs fetch pairs.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU32);

impl Line {
    /// Waits until the number is at least this one.
    fn reaches(&self, number: u32) {
        let mut looks = 0;
        while (self.0.load(Ordering::Acquire).wrapping_sub(number) as i32) < 0 {
            looks += 1;
            if looks >= LOOKS {
                std::thread::yield_now();
            }
        }
    }

    fn set(&self, number: u32) {
        self.0.store(number, Ordering::Release);
    }

    /// Counts a thread that arrives. Returns whether it is the last of `members`; the count is then 0 again.
    fn is_last_of(&self, members: u32) -> bool {
        let is_last = self.0.fetch_add(1, Ordering::AcqRel) + 1 == members;
        if is_last {
            self.0.store(0, Ordering::Relaxed);
        }
        is_last
    }
}

/// Threads count themselves on one line and wait at another one, which contains the number of the turn. So a late thread
/// never takes the old turn for the new one.
#[derive(Default)]
pub(crate) struct Central {
    members: u32,
    arrived: Line,
    go: Line,
}

impl Central {
    pub fn new(members: usize) -> Self {
        Self { members: members as u32, ..Self::default() }
    }
}

impl Barrier for Central {
    fn wait(&self, _: usize, turn: u32) {
        match self.arrived.is_last_of(self.members) {
            true => self.go.set(turn),
            false => self.go.reaches(turn),
        }
    }
}

/// Each thread waits for its children and then tells its parent. When the first thread has heard of all, the word goes down
/// the tree again.
pub(crate) struct Tree {
    arrived: Vec<Line>,
    go: Vec<Line>,
}

impl Tree {
    pub fn new(members: usize) -> Self {
        let lines = || (0..members).map(|_| Line::default()).collect();
        Self { arrived: lines(), go: lines() }
    }
}

impl Barrier for Tree {
    fn wait(&self, me: usize, turn: u32) {
        let children = FAN_IN * me + 1..(FAN_IN * me + FAN_IN + 1).min(self.go.len());
        self.arrived[me].reaches((children.len() as u32).wrapping_mul(turn));
        if me > 0 {
            self.arrived[(me - 1) / FAN_IN].0.fetch_add(1, Ordering::AcqRel);
            self.go[me].reaches(turn);
        }
        children.for_each(|child| self.go[child].set(turn));
    }
}

/// In each round a thread tells another one that is twice as far away, until all threads have heard of all.
pub(crate) struct Dissemination {
    /// For each thread, a line for each round.
    heard: Vec<Vec<Line>>,
}

impl Dissemination {
    pub fn new(members: usize) -> Self {
        let rounds = members.next_power_of_two().trailing_zeros();
        let lines = || (0..rounds).map(|_| Line::default()).collect();
        Self { heard: (0..members).map(|_| lines()).collect() }
    }
}

impl Barrier for Dissemination {
    fn wait(&self, me: usize, turn: u32) {
        for (round, line) in self.heard[me].iter().enumerate() {
            self.heard[(me + (1 << round)) % self.heard.len()][round].set(turn);
            line.reaches(turn);
        }
    }
}

/// Threads of a node wait at a line of that node. The last one to arrive on each node waits for the other nodes.
pub(crate) struct NodeAware {
    nodes: Vec<Central>,
    /// The place in `nodes` of each thread's.
    of: Vec<usize>,
    between: Central,
}

impl NodeAware {
    /// A barrier for threads on these nodes, one entry for each thread.
    pub fn new(on: &[u32]) -> Self {
        let mut nodes = on.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        let count = |node: &u32| on.iter().filter(|other| *other == node).count();
        let of = on.iter().map(|node| nodes.partition_point(|other| other < node)).collect();
        let central = nodes.iter().map(|node| Central::new(count(node))).collect();
        Self { between: Central::new(nodes.len()), nodes: central, of }
    }
}

impl Barrier for NodeAware {
    fn wait(&self, me: usize, turn: u32) {
        let node = &self.nodes[self.of[me]];
        if node.arrived.is_last_of(node.members) {
            self.between.wait(me, turn);
            node.go.set(turn);
        } else {
            node.go.reaches(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// How often threads wait for each other.
    fn turns() -> usize {
        numakit_skips::rounds(20, 200)
    }

    /// Every thread counts, waits, and then finds that all have counted; more threads than this machine may have CPUs.
    fn holds(barrier: &dyn Barrier, members: usize) {
        let (counter, early) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for me in 0..members {
                let (counter, early) = (&counter, &early);
                scope.spawn(move || {
                    for turn in 1..=turns() {
                        counter.fetch_add(1, Ordering::Relaxed);
                        barrier.wait(me, turn as u32);
                        let all = turn * members..(turn + 1) * members;
                        // A panic here would let the others wait permanently.
                        let is_early = !all.contains(&counter.load(Ordering::Relaxed));
                        early.fetch_add(usize::from(is_early), Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!((counter.into_inner(), early.into_inner()), (turns() * members, 0));
    }

    #[test]
    fn nobody_passes_before_all_have_come() {
        for members in [1, 2, 3, 6] {
            holds(&Central::new(members), members);
            holds(&Tree::new(members), members);
            holds(&Dissemination::new(members), members);
            holds(&PthreadBarrier::new(members as u32).unwrap(), members);
            let on: Vec<u32> = (0..members as u32).map(|me| 5 - me % 2 * 3).collect();
            holds(&NodeAware::new(&on), members);
        }
    }

    #[test]
    fn threads_are_counted_on_their_node() {
        let barrier = NodeAware::new(&[7, 2, 2, 7, 2]);
        let members: Vec<u32> = barrier.nodes.iter().map(|node| node.members).collect();
        assert_eq!(
            (members, barrier.of.clone(), barrier.between.members),
            (vec![3, 2], vec![1, 0, 0, 1, 0], 2)
        );
    }

    #[test]
    fn turns_may_overflow() {
        let line = Line(AtomicU32::new(2));
        line.reaches(u32::MAX);
        assert_eq!(line.0.load(Ordering::Relaxed), 2);
    }
}
