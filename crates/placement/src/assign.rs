//! Assigns the selected cores to processes and threads.

use crate::amount::Amount;
use crate::machine::Machine;
use crate::nodes::{Field, Item, Shares};
use std::collections::BTreeMap;

/// The order in which groups of nodes are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Nearest first, each filled before the next.
    Nearest,
    /// Outwards from the node at this position.
    From(usize),
    /// Round-robin over nodes that are far apart.
    Turns,
    /// The same number of cores on each node, neighbours together.
    Even,
}

/// The smallest level at which no process is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Cache,
    Node,
    Package,
    Board,
    Machine,
}

const LEVELS: [Level; 4] = [Level::Cache, Level::Node, Level::Package, Level::Board];

/// Cores in order of process, then of core within it.
#[derive(Debug)]
pub(crate) struct Assignment {
    /// Positions of spots.
    pub spots: Vec<u32>,
    pub level: Level,
}

/// Free cores by node.
pub(crate) struct Assigner<'a> {
    machine: &'a Machine<'a>,
    /// For each node its free cores, the fastest first, then in logical order.
    free: Vec<Vec<u32>>,
}

/// A group of nodes, and how many units fit there.
struct Place {
    nodes: Vec<usize>,
    item: Item,
}

impl<'a> Assigner<'a> {
    /// The assigner of these spots; with `nodes`, only of those spots that are on these nodes.
    pub fn of(machine: &'a Machine<'a>, spots: &[u32], nodes: Option<&[usize]>) -> Self {
        let mut free = vec![Vec::new(); machine.topology.nodes.len()];
        let mut wanted = vec![nodes.is_none(); free.len()];
        nodes.into_iter().flatten().for_each(|&node| wanted[node] = true);
        for &at in spots {
            let node = machine.spots[at as usize].node;
            if wanted[node] {
                free[node].push(at);
            }
        }
        free.iter_mut().for_each(|spots| spots.sort_by_key(|&at| (machine.spots[at as usize].kind, at)));
        Self { machine, free }
    }

    /// Gives each process its cores. The caller has checked that all processes fit.
    pub fn assign(&self, amount: Amount, order: Order) -> Assignment {
        // If there is a single process, its threads are spread, or fill the fast cores first.
        let alone = amount.processes == 1;
        let spread = alone && (matches!(order, Order::Turns | Order::Even) || self.mixed());
        let (units, unit) = if spread { (amount.cores, 1) } else { (amount.processes, amount.cores) };
        let fits = |level: &Level| self.places(*level, unit).iter().map(|p| p.item.cap).sum::<u64>() >= units;
        match LEVELS.into_iter().find(fits) {
            Some(level) => Assignment { spots: self.on(level, units, unit, order), level },
            // Some processes must be split: they are cut out of one sequence of cores.
            None => {
                let order = if let Order::From(node) = order { Order::From(node) } else { Order::Nearest };
                Assignment { spots: self.on(Level::Cache, units * unit, 1, order), level: Level::Machine }
            }
        }
    }

    /// Whether the free cores are of several kinds.
    fn mixed(&self) -> bool {
        let mut kinds = self.free.iter().flatten().map(|&at| self.machine.spots[at as usize].kind);
        let first = kinds.next();
        kinds.any(|kind| Some(kind) != first)
    }

    fn on(&self, level: Level, units: u64, unit: u64, order: Order) -> Vec<u32> {
        let places = self.places(level, unit);
        let field = self.field(&places, unit, order);
        let fill = |(at, count): &(usize, u64)| self.fill(level, &places[*at], *count, unit, order);
        match order {
            Order::Nearest | Order::From(_) => field.nearest(units).iter().flat_map(fill).collect(),
            Order::Even => field.balanced(units).iter().flat_map(fill).collect(),
            Order::Turns => in_turns(&field.turns(units), unit as usize, fill),
        }
    }

    /// Parts of the machine at a level that hold at least one unit.
    fn places(&self, level: Level, unit: u64) -> Vec<Place> {
        let mut grouped: BTreeMap<(u32, usize), Vec<usize>> = BTreeMap::new();
        for (node, _) in self.nodes() {
            let group = match level {
                Level::Package => self.machine.package_of_node[node],
                Level::Board => self.machine.board_of_node[node],
                _ => 0,
            };
            // A node that belongs to no such group is a part of its own.
            let whole = matches!(level, Level::Package | Level::Board) && group != crate::machine::NONE;
            grouped.entry((group, if whole { 0 } else { node })).or_default().push(node);
        }
        let place = |nodes: Vec<usize>| {
            let cap = match level {
                Level::Cache => {
                    nodes.iter().flat_map(|n| self.caches(*n)).map(|c| c.len() as u64 / unit).sum()
                }
                _ => self.room(&nodes) / unit,
            };
            let groups = [self.machine.board_of_node[nodes[0]], self.machine.package_of_node[nodes[0]]];
            Place { item: Item { cap, room: self.room(&nodes), groups }, nodes }
        };
        grouped.into_values().map(place).filter(|place| place.item.cap > 0).collect()
    }

    fn room(&self, nodes: &[usize]) -> u64 {
        nodes.iter().map(|&node| self.free[node].len() as u64).sum()
    }

    /// The free cores of a node by cache and kind.
    fn caches(&self, node: usize) -> impl Iterator<Item = &[u32]> {
        let key = |at: &u32| {
            let spot = &self.machine.spots[*at as usize];
            (spot.kind, spot.package, spot.l3)
        };
        self.free[node].chunk_by(move |one, next| key(one) == key(next))
    }

    fn field(&self, places: &[Place], unit: u64, order: Order) -> Field {
        let mean = |a: &Place, b: &Place| {
            // Nearly all parts are single nodes, and there may be half a million pairs: for these no sum is needed.
            if let ([x], [y]) = (a.nodes.as_slice(), b.nodes.as_slice()) {
                return self.machine.distances.both(*x, *y);
            }
            let pairs = a.nodes.iter().flat_map(|&x| b.nodes.iter().map(move |&y| (x, y)));
            let sum: u64 = pairs.map(|(x, y)| u64::from(self.machine.distances.both(x, y))).sum();
            (sum / (a.nodes.len() * b.nodes.len()) as u64) as u32
        };
        let both = places.iter().flat_map(|a| places.iter().map(move |b| mean(a, b))).collect();
        let nearest = |place: &Place, from: usize| {
            place.nodes.iter().map(|&node| self.machine.distances.both(from, node)).min().unwrap_or_default()
        };
        let from = match order {
            Order::From(node) => Some(places.iter().map(|place| nearest(place, node)).collect()),
            _ => None,
        };
        Field { items: places.iter().map(|place| place.item.clone()).collect(), unit, both, from }
    }

    /// The cores of this number of units of a part.
    fn fill(&self, level: Level, place: &Place, count: u64, unit: u64, order: Order) -> Vec<u32> {
        if level != Level::Cache {
            return self.row(&place.nodes, count * unit, order);
        }
        let mut filled = Vec::new();
        for &node in &place.nodes {
            let caches: Vec<&[u32]> = self.caches(node).filter(|cache| cache.len() as u64 >= unit).collect();
            let field = self.flat(&caches, unit);
            match order {
                Order::Turns => {
                    let fill = |(at, count): &(usize, u64)| {
                        let cores =
                            if unit == 1 { self.by_module(caches[*at]) } else { caches[*at].to_vec() };
                        cores.into_iter().take((*count * unit) as usize).collect()
                    };
                    filled.extend(in_turns(&field.turns(count), unit as usize, fill));
                }
                // Slower kinds of cores are used only after the faster ones.
                Order::Even if field.from.is_none() => {
                    for (at, count) in field.balanced(count) {
                        filled.extend(self.evenly(caches[at], (count * unit) as usize, unit));
                    }
                }
                _ => {
                    for (at, count) in field.nearest(count) {
                        filled.extend_from_slice(&caches[at][..(count * unit) as usize]);
                    }
                }
            }
        }
        filled
    }

    /// Caches of a node, with equal distances, the fastest kind first.
    fn flat(&self, caches: &[&[u32]], unit: u64) -> Field {
        let item = |cache: &&[u32]| {
            let room = cache.len() as u64;
            Item { cap: room / unit, room, groups: [0; 2] }
        };
        let kinds: Vec<u32> = caches.iter().map(|cache| self.machine.spots[cache[0] as usize].kind).collect();
        // Slower kinds of cores are included only if the faster ones are not enough.
        let mixed = kinds.iter().any(|kind| *kind != kinds[0]);
        Field { from: mixed.then_some(kinds), ..Field::flat(caches.iter().map(item).collect(), unit) }
    }

    /// This number of cores of some nodes, with near cores next to each other.
    fn row(&self, nodes: &[usize], count: u64, order: Order) -> Vec<u32> {
        let items = nodes.iter().map(|&node| {
            let room = self.free[node].len() as u64;
            let groups = [self.machine.board_of_node[node], self.machine.package_of_node[node]];
            Item { cap: room, room, groups }
        });
        let pairs = nodes.iter().flat_map(|&a| nodes.iter().map(move |&b| (a, b)));
        let both = pairs.map(|(a, b)| self.machine.distances.both(a, b)).collect();
        let from = match order {
            Order::From(from) => {
                Some(nodes.iter().map(|&node| self.machine.distances.both(from, node)).collect())
            }
            _ => None,
        };
        let field = Field { items: items.collect(), unit: 1, both, from };
        let mut row = Vec::with_capacity(count as usize);
        for (at, count) in field.nearest(count) {
            let caches: Vec<&[u32]> = self.caches(nodes[at]).collect();
            for (cache, count) in self.flat(&caches, 1).nearest(count) {
                row.extend_from_slice(&caches[cache][..count as usize]);
            }
        }
        row
    }

    /// This number of cores of a cache: on as many modules as possible, neighbours together.
    fn evenly(&self, cores: &[u32], count: usize, unit: u64) -> Vec<u32> {
        let mut taken = if unit == 1 { self.by_module(cores) } else { cores.to_vec() };
        taken.truncate(count);
        taken.sort_unstable();
        taken
    }

    /// Gives each process cores near the node at its position in the list. Processes that fit on their node get cores first,
    /// so that no process without room displaces them.
    pub fn assign_near(&self, homes: &[usize], cores: u64) -> Assignment {
        let mut left = Assigner { machine: self.machine, free: self.free.clone() };
        let mut given: Vec<Vec<u32>> = vec![Vec::new(); homes.len()];
        let mut level = Level::Node;
        for beside in [true, false] {
            let waiting: Vec<usize> = (0..homes.len()).filter(|&process| given[process].is_empty()).collect();
            for process in waiting {
                let home = homes[process];
                let row = match beside {
                    true if left.room(&[home]) < cores => continue,
                    true => left.row(&[home], cores, Order::Nearest),
                    false => {
                        level = Level::Machine;
                        let nodes: Vec<usize> = left.nodes().iter().map(|(node, _)| *node).collect();
                        left.row(&nodes, cores, Order::From(home))
                    }
                };
                for at in &row {
                    left.free[self.machine.spots[*at as usize].node].retain(|other| other != at);
                }
                given[process] = row;
            }
        }
        Assignment { spots: given.concat(), level }
    }

    /// The first core of each module, then the second ones.
    fn by_module(&self, cores: &[u32]) -> Vec<u32> {
        let module = |at: &u32| self.machine.spots[*at as usize].module;
        let same = |one: &u32, next: &u32| module(one) == module(next) && module(one) != crate::machine::NONE;
        let mut ranked: Vec<(usize, u32)> =
            cores.chunk_by(same).flat_map(|module| module.iter().copied().enumerate()).collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, at)| at).collect()
    }

    /// Positions of nodes that have free cores, with how many.
    pub fn nodes(&self) -> Vec<(usize, u64)> {
        let free = self.free.iter().enumerate().filter(|(_, spots)| !spots.is_empty());
        free.map(|(node, spots)| (node, spots.len() as u64)).collect()
    }
}

/// One unit of each share, then the second unit of each share, and so on.
fn in_turns(shares: &Shares, unit: usize, fill: impl Fn(&(usize, u64)) -> Vec<u32>) -> Vec<u32> {
    let lists: Vec<Vec<u32>> = shares.iter().map(fill).collect();
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut all = Vec::with_capacity(lists.iter().map(Vec::len).sum());
    for begin in (0..longest).step_by(unit.max(1)) {
        for list in lists.iter().filter(|list| list.len() > begin) {
            all.extend_from_slice(&list[begin..list.len().min(begin + unit)]);
        }
    }
    all
}
