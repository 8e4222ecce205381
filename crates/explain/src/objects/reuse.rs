//! Who allocated the blocks of an object, and whose memory the allocator gave them.

use super::{LAYERS, ObjectTimeline, Piece};
use crate::object_use::NodeShare;
use std::collections::BTreeMap;

/// Pieces that had an address before and are looked at.
const MAX_EARLIER: usize = 64;
/// Threads that are kept.
const MAX_THREADS: usize = 64;

/// A thread that allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllocatingThread {
    /// The kernel's number of the thread.
    pub thread: u32,
    /// The node of its CPU at that time.
    pub node: u32,
}

/// The blocks of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockOrigins {
    /// Whether the blocks are small. Which thread had the addresses of a small block before is not known.
    pub are_small: bool,
    /// The bytes of these blocks by thread, for blocks whose thread is known.
    threads: BTreeMap<AllocatingThread, u64>,
    /// The bytes of all of these blocks.
    bytes: u64,
    /// The bytes of blocks at addresses that threads of another node had before, by that node.
    handed: BTreeMap<u32, u64>,
}

impl BlockOrigins {
    /// Adds a block; `earlier` is the node of the threads that first had its address.
    pub fn add(&mut self, by: AllocatingThread, bytes: u64, earlier: Option<u32>) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.threads.len() < MAX_THREADS || self.threads.contains_key(&by) {
            *self.threads.entry(by).or_default() += bytes;
        }
        if let Some(node) = earlier.filter(|node| *node != by.node) {
            *self.handed.entry(node).or_default() += bytes;
        }
    }

    /// Adds the blocks that another process has of the same object.
    pub fn add_all(&mut self, other: &Self) {
        self.are_small |= other.are_small;
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (by, bytes) in &other.threads {
            if self.threads.len() < MAX_THREADS || self.threads.contains_key(by) {
                *self.threads.entry(*by).or_default() += bytes;
            }
        }
        other.handed.iter().for_each(|(node, bytes)| *self.handed.entry(*node).or_default() += bytes);
    }

    fn part(&self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes.max(1) as f64
    }

    /// The nodes whose threads allocated them.
    pub fn allocated_on(&self) -> Vec<NodeShare> {
        let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
        self.threads.iter().for_each(|(by, bytes)| *nodes.entry(by.node).or_default() += bytes);
        nodes.into_iter().map(|(node, bytes)| NodeShare { node, share: self.part(bytes) }).collect()
    }

    /// The nodes whose threads had the addresses before, where threads of another node allocated them again.
    pub fn handed_from(&self) -> Vec<NodeShare> {
        self.handed.iter().map(|(node, bytes)| NodeShare { node: *node, share: self.part(*bytes) }).collect()
    }

    /// The thread that allocated at least this part of them; `None` if no thread did.
    pub fn most(&self, part: f64) -> Option<AllocatingThread> {
        let (by, bytes) = self.threads.iter().max_by_key(|(_, bytes)| **bytes)?;
        (self.part(*bytes) >= part).then_some(*by)
    }
}

impl ObjectTimeline {
    /// Of the earlier blocks that contained an address, the one that ended last. Only the last blocks that begin near the
    /// address are searched.
    pub(super) fn earlier_block(&self, address: u64) -> Option<&Piece> {
        let layer = &self.layers[LAYERS - 1];
        let ended = layer.classes.iter().enumerate().flat_map(|(class, pieces)| {
            let lowest = Self::lowest(address, class);
            let here = pieces.range((lowest, 0)..=(address, u64::MAX)).rev().take(MAX_EARLIER);
            here.map(|(_, piece)| piece).filter(|piece| address < piece.end && piece.until.is_some())
        });
        ended.max_by_key(|piece| piece.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{ObjectId, ObjectOrigin};

    fn by(thread: u32, node: u32) -> Option<AllocatingThread> {
        Some(AllocatingThread { thread, node })
    }

    fn share(node: u32, share: f64) -> Vec<NodeShare> {
        vec![NodeShare { node, share }]
    }

    fn blocks(timeline: &ObjectTimeline, object: Option<ObjectId>) -> &BlockOrigins {
        &timeline.row(object.unwrap()).unwrap().blocks
    }

    #[test]
    fn blocks_that_were_of_another_node_before_are_known() {
        let mut timeline = ObjectTimeline::new(100);
        let site = |site| ObjectOrigin::Allocated { by: "malloc", site, callers: None };
        let first = timeline.add_by(0x1000..0x9000, 1, &site(1), by(7, 0));
        timeline.free(0x1000, 2);
        // A thread of the same node, then one of another: the pages are those of the first life.
        timeline.add_by(0x1000..0x9000, 3, &site(1), by(8, 0));
        timeline.free(0x1000, 4);
        let second = timeline.add_by(0x2000..0x6000, 5, &site(2), by(9, 1));
        timeline.free(0x2000, 6);
        let third = timeline.add_by(0x2000..0x6000, 7, &site(3), by(7, 0));
        assert_eq!(
            (blocks(&timeline, first).handed_from(), blocks(&timeline, third).handed_from()),
            (vec![], vec![])
        );
        let second = blocks(&timeline, second);
        assert_eq!((second.handed_from(), second.allocated_on()), (share(0, 1.0), share(1, 1.0)));
        assert_eq!((second.most(0.9), blocks(&timeline, first).most(0.9)), (by(9, 1), None));
        // Beside it, nobody had memory before.
        let fresh = timeline.add_by(0x9_0000..0x9_8000, 8, &site(4), by(9, 1));
        assert_eq!(blocks(&timeline, fresh).handed_from(), []);
    }
}
