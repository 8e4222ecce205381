//! Which nodes hold the request nearest to each other, and in which order.

use crate::machine::NONE;

/// Something that holds units of the request: a node, a package, a cache.
#[derive(Debug, Clone, Default)]
pub(crate) struct Item {
    /// Units that fit; never 0.
    pub cap: u64,
    /// Free cores.
    pub room: u64,
    /// Groups that it belongs to, outermost first: board, package.
    pub groups: [u32; 2],
}

/// Items with their distances to each other.
#[derive(Debug, Default)]
pub(crate) struct Field {
    pub items: Vec<Item>,
    /// Cores of a unit.
    pub unit: u64,
    /// Distances between all pairs, row by row, both ways summed.
    pub both: Vec<u32>,
    /// Distances from the given start, if any.
    pub from: Option<Vec<u32>>,
}

/// Items in the order in which they are filled, with the number of units that each gets.
pub(crate) type Shares = Vec<(usize, u64)>;

/// Maximum steps of the search; on larger machines fewer starts are tried.
const BUDGET: usize = 1_000_000;

/// The cost of a selection, compared field by field; smaller is better.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    /// Sum of distances between all pairs of units, or from the given start.
    distance: u64,
    /// Packages and boards in use.
    groups: usize,
    items: usize,
    /// Free cores that remain in the items, packages and boards in use.
    left: [u64; 3],
}

impl Field {
    /// Items with equal distances.
    pub fn flat(items: Vec<Item>, unit: u64) -> Self {
        let both = vec![2; items.len() * items.len()];
        Self { items, unit, both, from: None }
    }

    fn both(&self, a: usize, b: usize) -> u32 {
        self.both[a * self.items.len() + b]
    }

    /// The items that hold this number of units nearest to each other: smallest distances first, then fewest packages and
    /// items, then least remaining cores. Empty if they do not fit.
    pub fn nearest(&self, want: u64) -> Shares {
        let total: u64 = self.items.iter().map(|item| item.cap).sum();
        if want == 0 || want > total {
            return Vec::new();
        }
        if self.from.is_some() {
            // The start is given.
            let begin = (0..self.items.len()).min_by_key(|&at| (self.start(at), self.fit(at, want), at));
            return begin.map_or_else(Vec::new, |begin| self.grow(begin, want).0);
        }
        let begins = if want == total { vec![0] } else { self.beginnings(want) };
        let grown = begins.into_iter().map(|begin| self.grow(begin, want));
        let best = grown.min_by(|(_, one), (_, other)| one.cmp(other));
        best.map_or_else(Vec::new, |(shares, _)| self.chain(shares))
    }

    /// The items to start from, in ascending order.
    fn beginnings(&self, want: u64) -> Vec<usize> {
        let count = self.items.len();
        let mut ranked: Vec<(u64, usize)> = (0..count).map(|at| (self.star(at, want), at)).collect();
        ranked.sort_unstable();
        // Roughly how many items one selection needs.
        let mean = self.items.iter().map(|item| item.cap).sum::<u64>() / count as u64;
        let steps = count * (want / mean.max(1) + 1).min(count as u64) as usize;
        let tried = (BUDGET / steps.max(1)).clamp(1, count);
        let mut begins: Vec<usize> = ranked.iter().take(tried).map(|(_, at)| *at).collect();
        begins.sort_unstable();
        begins
    }

    /// The sum of distances from one item to the others that it needs. It is coarse for large distances.
    fn star(&self, at: usize, want: u64) -> u64 {
        const STEPS: usize = 512;
        let mut caps = [0u64; STEPS];
        for (other, item) in self.items.iter().enumerate().filter(|(other, _)| *other != at) {
            caps[(self.both(at, other) as usize).min(STEPS - 1)] += item.cap;
        }
        let mut left = want - self.items[at].cap.min(want);
        let mut cost = u64::from(self.both(at, at)) * (want - left);
        for (distance, cap) in caps.iter().enumerate() {
            let taken = left.min(*cap);
            cost += taken * distance as u64;
            left -= taken;
        }
        cost
    }

    fn start(&self, at: usize) -> u32 {
        self.from.as_ref().map_or(0, |from| from[at])
    }

    /// How well an item holds the rest of the units; smaller is better. The smallest item that holds all of them is best; if
    /// there is none, the largest.
    fn fit(&self, at: usize, rest: u64) -> (bool, u64, u64) {
        let item = &self.items[at];
        let small = item.cap < rest;
        (small, if small { u64::MAX - item.cap } else { 0 }, if small { 0 } else { item.room })
    }

    /// Adds the item nearest to all selected ones, until all units fit.
    fn grow(&self, begin: usize, want: u64) -> (Shares, Cost) {
        let mut groups = Groups::of(&self.items);
        let mut sums: Vec<u64> = vec![0; self.items.len()];
        let mut left: Vec<usize> = (0..self.items.len()).filter(|&at| at != begin).collect();
        let (mut shares, mut rest, mut distance, mut next) = (Vec::new(), want, 0u64, begin);
        loop {
            let count = self.items[next].cap.min(rest);
            let inside = count * count * u64::from(self.both(next, next)) / 2;
            distance += match &self.from {
                Some(from) => count * u64::from(from[next]),
                None => inside + count * sums[next],
            };
            shares.push((next, count));
            groups.take(&self.items[next]);
            rest -= count;
            if rest == 0 || left.is_empty() {
                break;
            }
            for &other in &left {
                sums[other] += count * u64::from(self.both(next, other));
            }
            let near = |at: usize| (self.start(at), sums[at]);
            let nearest = left.iter().map(|&at| near(at)).min();
            let ties = left.iter().enumerate().filter(|(_, at)| Some(near(**at)) == nearest);
            let key =
                |&(_, at): &(usize, &usize)| (groups.suits(&self.items[*at], rest), self.fit(*at, rest), *at);
            let Some((position, _)) = ties.min_by_key(key) else { break };
            // The order of the remaining items does not matter: ties are broken by number.
            next = left.swap_remove(position);
        }
        let used: u64 = shares.iter().map(|(at, _)| self.items[*at].room).sum();
        let (touched, outside) = groups.touched();
        let left = [used.saturating_sub(want * self.unit), outside[1], outside[0]];
        let items = shares.len();
        (shares, Cost { distance, groups: touched, items, left })
    }

    /// Sorts shares package by package, each package followed by the nearest one. Shares of one package are in logical
    /// order, as hwloc and rank files count them.
    fn chain(&self, shares: Shares) -> Shares {
        let mut shares = shares;
        shares.sort_unstable();
        let mut left: Vec<Shares> = Vec::new();
        for share in shares {
            let groups = |share: &(usize, u64)| self.items[share.0].groups;
            let package = groups(&share)[1];
            match left.iter_mut().find(|known| package != NONE && groups(&known[0])[1] == package) {
                Some(known) => known.push(share),
                None => left.push(vec![share]),
            }
        }
        let mut chained: Shares = Vec::new();
        let mut last: Option<Shares> = None;
        while !left.is_empty() {
            let key = |next: &Shares| match &last {
                None => (0, false, next[0].0),
                Some(last) => {
                    let boards = [last, next].map(|shares| self.items[shares[0].0].groups[0]);
                    (self.mean(last, next), boards[0] != boards[1], next[0].0)
                }
            };
            let Some((at, _)) = left.iter().enumerate().min_by_key(|(_, next)| key(next)) else { break };
            let next = left.remove(at);
            chained.extend_from_slice(&next);
            last = Some(next);
        }
        chained
    }

    /// The mean distance between the items of two lists, both ways summed, in hundredths.
    fn mean(&self, some: &Shares, others: &Shares) -> u64 {
        let pairs = some.iter().flat_map(|(a, _)| others.iter().map(move |(b, _)| (*a, *b)));
        let sum: u64 = pairs.map(|(a, b)| u64::from(self.both(a, b))).sum();
        sum * 100 / (some.len() * others.len()) as u64
    }

    /// All items, in an order in which each is far from those before it.
    pub fn far_apart(&self) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.items.len()).collect();
        let mut sums: Vec<u64> = vec![0; left.len()];
        let mut used = Groups::of(&self.items);
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let key = |&(_, at): &(usize, &usize)| {
                (u64::MAX - sums[*at], used.uses(&self.items[*at]), u64::MAX - self.items[*at].room, *at)
            };
            let Some((position, &at)) = left.iter().enumerate().min_by_key(key) else { break };
            left.remove(position);
            left.iter().for_each(|&other| sums[other] += u64::from(self.both(at, other)));
            used.take(&self.items[at]);
            order.push(at);
        }
        order
    }

    /// The shares if units are assigned round-robin to items that are far apart.
    pub fn turns(&self, want: u64) -> Shares {
        let mut shares: Shares = self.far_apart().into_iter().map(|at| (at, 0)).collect();
        let mut rest = want;
        while rest > 0 {
            let before = rest;
            for (at, count) in &mut shares {
                let more = u64::from(rest > 0 && *count < self.items[*at].cap);
                *count += more;
                rest -= more;
            }
            if rest == before {
                return Vec::new();
            }
        }
        shares.retain(|(_, count)| *count > 0);
        shares
    }

    /// Shares as equal as possible, in order; if there are fewer units than items, on items that are far apart.
    pub fn balanced(&self, want: u64) -> Shares {
        let mut order: Vec<usize> = self.far_apart();
        order.truncate(want.try_into().unwrap_or(usize::MAX));
        order.sort_unstable();
        let mut shares: Shares = order.into_iter().map(|at| (at, 0)).collect();
        let mut rest = want;
        while rest > 0 {
            let open = shares.iter().filter(|(at, count)| *count < self.items[*at].cap).count() as u64;
            if open == 0 {
                return Vec::new();
            }
            let each = (rest / open).max(1);
            for (at, count) in &mut shares {
                let more = each.min(self.items[*at].cap - *count).min(rest);
                *count += more;
                rest -= more;
            }
        }
        shares
    }
}

/// The free and selected parts of the groups of items.
struct Groups {
    /// For each of the two kinds of groups, by number of the group: free units, free cores, selected items.
    free: [Vec<(u64, u64, u32)>; 2],
}

impl Groups {
    fn of(items: &[Item]) -> Self {
        let mut free = [Vec::new(), Vec::new()];
        for item in items {
            for (kind, group) in item.groups.iter().enumerate() {
                let at = slot(*group);
                if at >= free[kind].len() {
                    free[kind].resize(at + 1, (0, 0, 0));
                }
                free[kind][at].0 += item.cap;
                free[kind][at].1 += item.room;
            }
        }
        Self { free }
    }

    fn take(&mut self, item: &Item) {
        for (kind, group) in item.groups.iter().enumerate() {
            let (units, room, times) = &mut self.free[kind][slot(*group)];
            *units -= item.cap;
            *room -= item.room;
            *times += 1;
        }
    }

    /// How well this item continues a selection: groups in use first, then the smallest that holds the rest, then the
    /// largest.
    fn suits(&self, item: &Item, rest: u64) -> [(bool, u64); 2] {
        [0, 1].map(|kind| {
            let (units, room, times) = self.free[kind][slot(item.groups[kind])];
            (times == 0, if units >= rest { room } else { u64::MAX - units })
        })
    }

    fn uses(&self, item: &Item) -> [u32; 2] {
        [0, 1].map(|kind| self.free[kind][slot(item.groups[kind])].2)
    }

    /// How many groups are in use, and how many cores remain in them.
    fn touched(&self) -> (usize, [u64; 2]) {
        let touched = |kind: usize| self.free[kind].iter().filter(|(.., times)| *times > 0);
        let left = [0, 1].map(|kind| touched(kind).map(|(_, room, _)| room).sum());
        (touched(0).count() + touched(1).count(), left)
    }
}

/// The slot of a group. All items without a group have the same slot.
fn slot(group: u32) -> usize {
    group.wrapping_add(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two boards of two packages of two nodes.
    fn distance(a: usize, b: usize) -> u32 {
        match (a == b, a / 2 == b / 2, a / 4 == b / 4) {
            (true, ..) => 20,
            (_, true, _) => 32,
            (.., true) => 42,
            _ => 200,
        }
    }

    fn field(caps: &[u64]) -> Field {
        let item =
            |(at, &cap): (usize, &u64)| Item { cap, room: cap, groups: [at as u32 / 4, at as u32 / 2] };
        let pairs = (0..caps.len()).flat_map(|a| (0..caps.len()).map(move |b| distance(a, b)));
        Field {
            items: caps.iter().enumerate().map(item).collect(),
            unit: 1,
            both: pairs.collect(),
            from: None,
        }
    }

    #[test]
    fn what_fits_into_one_goes_into_the_smallest() {
        assert_eq!(field(&[8, 8, 3, 8, 4, 8, 8, 8]).nearest(3), [(2, 3)]);
        assert_eq!(field(&[8, 8, 3, 8, 4, 8, 8, 8]).nearest(4), [(4, 4)]);
        assert_eq!(field(&[8; 8]).nearest(1), [(0, 1)]);
    }

    #[test]
    fn what_does_not_goes_to_neighbours() {
        assert_eq!(field(&[8; 8]).nearest(12), [(0, 8), (1, 4)]);
        assert_eq!(field(&[8, 1, 8, 8, 1, 1, 1, 1]).nearest(12), [(2, 8), (3, 4)]);
        assert_eq!(field(&[2, 2, 2, 2, 8, 1, 8, 1]).nearest(8), [(4, 8)]);
        // A board that holds it all is better than full nodes on two.
        assert_eq!(field(&[8, 1, 1, 1, 4, 4, 4, 4]).nearest(16), [(4, 4), (5, 4), (6, 4), (7, 4)]);
        assert_eq!(field(&[8; 8]).nearest(64).len(), 8);
        assert_eq!(field(&[8; 8]).nearest(65), []);
        assert_eq!(field(&[8; 8]).nearest(0), []);
    }

    #[test]
    fn of_equals_the_one_with_least_over() {
        // Both boards could hold it; the second is used already.
        assert_eq!(field(&[8, 8, 8, 8, 8, 8, 0, 0][..6]).nearest(16), [(4, 8), (5, 8)]);
    }

    #[test]
    fn from_a_given_place_outwards() {
        let from = (0..8).map(|at| distance(6, at)).collect();
        let field = Field { from: Some(from), ..field(&[2, 8, 8, 8, 8, 8, 8, 8]) };
        assert_eq!(field.nearest(3), [(6, 3)]);
        assert_eq!(field.nearest(18), [(6, 8), (7, 8), (4, 2)]);
    }

    #[test]
    fn far_apart_and_balanced() {
        assert_eq!(field(&[8; 8]).far_apart(), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(field(&[8; 8]).balanced(3), [(0, 1), (2, 1), (4, 1)]);
        assert_eq!(field(&[8, 8, 1, 8]).balanced(10), [(0, 3), (1, 3), (2, 1), (3, 3)]);
        assert_eq!(field(&[1; 4]).balanced(5), []);
        assert_eq!(field(&[8, 1, 8, 8]).turns(6), [(0, 2), (2, 2), (3, 1), (1, 1)]);
    }

    proptest! {
        #[test]
        fn shares_are_what_was_asked_for(caps in prop::collection::vec(1u64..9, 1..9), want in 0u64..80) {
            let field = field(&caps);
            let total: u64 = caps.iter().sum();
            for shares in [field.nearest(want), field.balanced(want), field.turns(want)] {
                let sum: u64 = shares.iter().map(|(_, count)| count).sum();
                prop_assert_eq!(sum, if want <= total { want } else { 0 });
                prop_assert!(shares.iter().all(|(at, count)| (1..=caps[*at]).contains(count)));
            }
        }
    }
}
