//! Threads that share data on one node: which thread belongs on which node.

use crate::SharingThreads;

/// Of more threads no order is made: the table of all pairs would be large.
pub const MAX_THREADS: usize = 1024;
/// Exchanges of two threads are tried in this many rounds, at most; most end after two.
const ROUNDS: usize = 16;
/// What gains less is rounding.
const GAIN: f64 = 1e-9;

/// How much each pair of threads shares. Threads have their places in a list.
struct Matrix {
    count: usize,
    shares: Vec<f64>,
}

impl Matrix {
    fn new(pairs: &[SharingThreads], threads: &[u32]) -> Self {
        let count = threads.len();
        let mut shares = vec![0.0; count * count];
        for SharingThreads { threads: pair, share } in pairs {
            if let [Ok(one), Ok(other)] = pair.map(|thread| threads.binary_search(&thread)) {
                shares[one * count + other] += share;
                shares[other * count + one] += share;
            }
        }
        Self { count, shares }
    }

    fn share(&self, one: usize, other: usize) -> f64 {
        self.shares[one * self.count + other]
    }

    /// What a thread shares with those that are chosen.
    fn with(&self, thread: usize, is_chosen: impl Fn(usize) -> bool) -> f64 {
        (0..self.count).filter(|other| is_chosen(*other)).map(|other| self.share(thread, other)).sum()
    }

    /// What is shared by threads of one node.
    fn within(&self, nodes: &[u32]) -> f64 {
        let near = |thread: usize| self.with(thread, |other| other < thread && nodes[other] == nodes[thread]);
        (0..self.count).map(near).sum()
    }

    /// Fills one node after the other: with a thread that shares most with those without a node, and then each time with the one that
    /// shares most with the node.
    fn filled(&self, nodes: &[u32]) -> Vec<u32> {
        let mut order = nodes.to_vec();
        order.sort_by_key(|node| nodes.iter().position(|of| of == node));
        let mut placed: Vec<Option<u32>> = vec![None; self.count];
        let mut free: Vec<f64> = (0..self.count).map(|thread| self.with(thread, |_| true)).collect();
        let mut near: Vec<f64> = vec![0.0; self.count];
        let mut last = None;
        for node in order {
            if last != Some(node) {
                near.fill(0.0);
                last = Some(node);
            }
            let better = |one: &usize, other: &usize| {
                let by_node = near[*one].total_cmp(&near[*other]);
                by_node.then(free[*one].total_cmp(&free[*other])).then(other.cmp(one))
            };
            let Some(next) = (0..self.count).filter(|thread| placed[*thread].is_none()).max_by(better) else {
                break;
            };
            placed[next] = Some(node);
            for other in 0..self.count {
                near[other] += self.share(next, other);
                free[other] -= self.share(next, other);
            }
        }
        placed.into_iter().zip(nodes).map(|(placed, node)| placed.unwrap_or(*node)).collect()
    }

    /// Exchanges two threads as long as that brings sharers together.
    fn refine(&self, nodes: &mut [u32]) {
        let mut names = nodes.to_vec();
        names.sort_unstable();
        names.dedup();
        let mut places: Vec<usize> =
            nodes.iter().map(|node| names.partition_point(|name| name < node)).collect();
        // What each thread shares with the threads of each node.
        let mut near: Vec<Vec<f64>> = (0..self.count)
            .map(|thread| {
                (0..names.len()).map(|place| self.with(thread, |other| places[other] == place)).collect()
            })
            .collect();
        for _ in 0..ROUNDS {
            let mut has_changed = false;
            for one in 0..self.count {
                let here = places[one];
                let gain = |other: usize| {
                    let there = places[other];
                    let gained = near[one][there] + near[other][here] - 2.0 * self.share(one, other);
                    gained - near[one][here] - near[other][there]
                };
                let others = (0..self.count).filter(|other| places[*other] != here);
                let best = others.map(|other| (other, gain(other))).max_by(|a, b| a.1.total_cmp(&b.1));
                if let Some((other, _)) = best.filter(|(_, gain)| *gain > GAIN) {
                    let there = places[other];
                    for (thread, near) in near.iter_mut().enumerate() {
                        let moved = self.share(thread, one) - self.share(thread, other);
                        near[there] += moved;
                        near[here] -= moved;
                    }
                    places.swap(one, other);
                    has_changed = true;
                }
            }
            if !has_changed {
                break;
            }
        }
        nodes.iter_mut().zip(places).for_each(|(node, place)| *node = names[place]);
    }
}

/// The part of all uses that threads of one node share. `nodes` has the node of each thread, in the order of `threads`, which is
/// ascending; 0 for more than [`MAX_THREADS`].
pub fn within(pairs: &[SharingThreads], threads: &[u32], nodes: &[u32]) -> f64 {
    let can_tell = threads.len() <= MAX_THREADS && threads.len() == nodes.len();
    if can_tell { Matrix::new(pairs, threads).within(nodes) } else { 0.0 }
}

/// The nodes of threads that would be on `nodes` in the order of their creation, so that those which share data are together. Each node
/// has as many threads as before, and never less is shared within nodes. Where nothing is gained, and of more than
/// [`MAX_THREADS`] threads, all stay where they are.
pub fn arranged(pairs: &[SharingThreads], threads: &[u32], nodes: &[u32]) -> Vec<u32> {
    if threads.len() > MAX_THREADS || threads.len() != nodes.len() {
        return nodes.to_vec();
    }
    let matrix = Matrix::new(pairs, threads);
    let mut kept = nodes.to_vec();
    matrix.refine(&mut kept);
    let mut filled = matrix.filled(nodes);
    matrix.refine(&mut filled);
    let [before, kept_within, filled_within] = [nodes, &kept, &filled].map(|nodes| matrix.within(nodes));
    match filled_within.max(kept_within) > before + GAIN {
        false => nodes.to_vec(),
        true if kept_within > filled_within + GAIN => kept,
        true => filled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(all: &[(u32, u32)]) -> Vec<SharingThreads> {
        let share = 1.0 / all.len() as f64;
        all.iter().map(|(one, other)| SharingThreads { threads: [*one, *other], share }).collect()
    }

    const EIGHT: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
    /// Each thread shares with the fourth one after it.
    const FOURTH: [(u32, u32); 4] = [(0, 4), (1, 5), (2, 6), (3, 7)];

    #[test]
    fn pairs_come_together_on_nodes_of_any_size() {
        let sharing = pairs(&FOURTH);
        let two = [0, 0, 1, 1, 2, 2, 3, 3];
        assert_eq!(arranged(&sharing, &EIGHT, &two), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(within(&sharing, &EIGHT, &two), 0.0);
        for nodes in [[5, 5, 5, 5, 2, 2, 2, 2], [0, 1, 2, 3, 3, 2, 1, 0], [0, 0, 0, 0, 0, 0, 1, 1]] {
            let found = arranged(&sharing, &EIGHT, &nodes);
            assert!((within(&sharing, &EIGHT, &found) - 1.0).abs() < 1e-9, "{nodes:?}: {found:?}");
        }
    }

    #[test]
    fn a_good_order_stays() {
        let nodes = [0, 1, 2, 3, 0, 1, 2, 3];
        assert_eq!(arranged(&pairs(&FOURTH), &EIGHT, &nodes), nodes);
        assert_eq!(arranged(&[], &EIGHT, &[1, 0, 1, 0, 1, 0, 1, 0]), [1, 0, 1, 0, 1, 0, 1, 0]);
        let all: Vec<(u32, u32)> =
            EIGHT.iter().flat_map(|one| (one + 1..8).map(move |other| (*one, other))).collect();
        assert_eq!(arranged(&pairs(&all), &EIGHT, &[0, 0, 0, 1, 1, 1, 2, 2]), [0, 0, 0, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn heavier_pairs_come_first_and_unknown_threads_count_nothing() {
        let mut sharing = pairs(&[(1, 2), (2, 3), (3, 9)]);
        sharing[1].share = 0.9;
        assert_eq!(arranged(&sharing, &[1, 2, 3, 4], &[0, 0, 1, 1]), [1, 0, 0, 1]);
    }

    #[test]
    fn too_many_threads_stay_where_they_are() {
        let many: Vec<u32> = (0..=MAX_THREADS as u32).collect();
        let nodes = vec![0; many.len()];
        assert_eq!(arranged(&pairs(&FOURTH), &many, &nodes), nodes);
        assert_eq!([within(&[], &many, &nodes), within(&[], &EIGHT, &[0])], [0.0; 2]);
    }

    proptest! {
        #[test]
        fn nodes_keep_their_numbers_of_threads_and_nothing_is_lost(
            shares in proptest::collection::vec((0u32..24, 0u32..24, 0.0f64..1.0), 0..80),
            nodes in proptest::collection::vec(0u32..5, 24),
        ) {
            let pairs: Vec<SharingThreads> = shares
                .iter()
                .filter(|(one, other, _)| one < other)
                .map(|(one, other, share)| SharingThreads { threads: [*one, *other], share: *share })
                .collect();
            let threads: Vec<u32> = (0..24).collect();
            let found = arranged(&pairs, &threads, &nodes);
            let sorted = |nodes: &[u32]| { let mut all = nodes.to_vec(); all.sort_unstable(); all };
            prop_assert_eq!(sorted(&found), sorted(&nodes));
            prop_assert!(within(&pairs, &threads, &found) >= within(&pairs, &threads, &nodes));
            prop_assert_eq!(&found, &arranged(&pairs, &threads, &nodes));
        }
    }
}
