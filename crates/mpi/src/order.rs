//! The order of ranks that brings those together that send to each other.

use crate::Talk;
use numakit_cure::{SharingThreads, together};
use serde::{Deserialize, Serialize};

/// What crosses between nodes must shrink by this part of all bytes before another order is worth a mention.
const WORTH: f64 = 0.05;

/// Which rank runs in which place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankOrder {
    /// For each place, in the order in which the launcher has them, the rank that runs there.
    pub ranks: Vec<u32>,
    /// The part of all bytes between different nodes with rank 0 in the first place, and so on; from 0 to 1.
    pub crossing_before: f64,
    /// The same in this order.
    pub crossing: f64,
}

/// The order for places on these nodes, one for each rank; `None` if no order has much less between nodes, and for more than 1,024
/// ranks.
pub fn arranged(talk: &[Talk], nodes: &[u32]) -> Option<RankOrder> {
    let ranks: Vec<u32> = (0..nodes.len() as u32).collect();
    let between = |talk: &&Talk| talk.from != talk.to && talk.bytes > 0;
    let all: f64 = talk.iter().filter(between).map(|talk| talk.bytes as f64).sum();
    let share =
        |talk: &Talk| SharingThreads { threads: [talk.from, talk.to], share: talk.bytes as f64 / all };
    let pairs: Vec<SharingThreads> = talk.iter().filter(between).map(share).collect();
    if pairs.is_empty() || ranks.len() > together::MAX_THREADS {
        return None;
    }
    let node_of = together::arranged(&pairs, &ranks, nodes);
    let [before, within] =
        [nodes, &node_of].map(|nodes| together::within(&pairs, &ranks, nodes).clamp(0.0, 1.0));
    // A rank that may stay keeps its place, and the others take those that are left of their nodes.
    let mut order: Vec<Option<u32>> = nodes
        .iter()
        .zip(&node_of)
        .zip(&ranks)
        .map(|((here, to), rank)| (here == to).then_some(*rank))
        .collect();
    for (rank, to) in ranks.iter().zip(&node_of).filter(|(rank, to)| nodes[**rank as usize] != **to) {
        let free = (0..order.len()).find(|place| order[*place].is_none() && nodes[*place] == *to)?;
        order[free] = Some(*rank);
    }
    let ranks = order.into_iter().collect::<Option<Vec<u32>>>()?;
    let found = RankOrder { ranks, crossing_before: 1.0 - before, crossing: 1.0 - within };
    (found.crossing + WORTH <= found.crossing_before).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(pairs: &[(u32, u32)]) -> Vec<Talk> {
        pairs.iter().map(|&(from, to)| Talk { from, to, messages: 1, bytes: 100 }).collect()
    }

    #[test]
    fn talkers_come_together_and_the_others_stay() {
        let found = arranged(&talk(&[(0, 2), (2, 0), (1, 3)]), &[0, 0, 1, 1]).unwrap();
        assert_eq!((found.crossing_before, found.crossing), (1.0, 0.0));
        let node = |rank: u32| found.ranks.iter().position(|at| *at == rank).unwrap() / 2;
        assert_eq!((node(0), node(1)), (node(2), node(3)));
        let mut sorted = found.ranks.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3]);
    }

    #[test]
    fn a_good_order_and_one_node_need_none() {
        assert_eq!(arranged(&talk(&[(0, 1), (2, 3)]), &[0, 0, 1, 1]), None);
        assert_eq!(arranged(&talk(&[(0, 2)]), &[0, 0, 0, 0]), None);
        assert_eq!(arranged(&[], &[0, 1]), None);
        assert_eq!(arranged(&talk(&[(0, 9)]), &[0, 1]), None);
    }
}
