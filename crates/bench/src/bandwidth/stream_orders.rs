//! In which order cores get threads: near ones first, spread over the nodes, or with a stride; one thread on each or one on
//! each hardware thread.

use crate::ground::Ground;
use crate::results::BenchResult;

/// A node, and a CPU of it.
pub(crate) type Thread = (u32, u32);

/// An order of threads. A run with N threads uses the first N.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub name: String,
    pub threads: Vec<Thread>,
}

/// A core: its CPUs that may be used, with their node.
type Core = Vec<Thread>;

const STRIDES: [usize; 2] = [2, 4];

/// All different orders, of nodes that have both CPUs and memory; empty if there is no such node.
pub(crate) fn orders(ground: &Ground<'_>, result: &mut BenchResult) -> Vec<Order> {
    let usable = ground.places.iter().filter(|place| ground.memories.contains(&place.node));
    let core = |node: u32, cpu: u32| -> Core {
        let core = ground.topology.cores.iter().find(|core| core.cpus.contains(cpu));
        let all = core.map(|core| core.cpus.and(&ground.cpus)).filter(|cpus| cpus.len() > 1);
        all.map_or_else(|| vec![(node, cpu)], |cpus| cpus.iter().map(|cpu| (node, cpu)).collect())
    };
    let nodes: Vec<Vec<Core>> =
        usable.map(|place| place.cpus.iter().map(|cpu| core(place.node, *cpu)).collect()).collect();
    if !nodes.iter().flatten().any(|core| core.len() > 1) {
        result.leave_out("STREAM with SMT", "no core has two hardware threads that can be used");
    }
    different(of_cores(&nodes))
}

/// All orders.
fn of_cores(nodes: &[Vec<Core>]) -> Vec<Order> {
    let compact: Vec<&Core> = nodes.iter().flatten().collect();
    let most = nodes.iter().map(Vec::len).max().unwrap_or(0);
    let scatter = (0..most).flat_map(|at| nodes.iter().filter_map(move |cores| cores.get(at))).collect();
    let mut cores = vec![("compact".to_owned(), compact.clone()), ("scatter".to_owned(), scatter)];
    for stride in STRIDES {
        let turn = |first: usize| compact.iter().skip(first).step_by(stride).copied();
        cores.push((format!("stride {stride}"), (0..stride).flat_map(turn).collect()));
    }
    let alone = |(name, cores): &(String, Vec<&Core>)| Order {
        name: name.clone(),
        threads: cores.iter().filter_map(|core| core.first().copied()).collect(),
    };
    let with_siblings = |(name, cores): &(String, Vec<&Core>)| Order {
        name: format!("{name} with SMT"),
        threads: cores.iter().copied().flatten().copied().collect(),
    };
    cores.iter().map(alone).chain(cores.iter().map(with_siblings)).collect()
}

/// The orders whose threads are not the same as those of an earlier order.
fn different(orders: Vec<Order>) -> Vec<Order> {
    let mut kept: Vec<Order> = Vec::new();
    for order in orders {
        if !order.threads.is_empty() && kept.iter().all(|earlier| earlier.threads != order.threads) {
            kept.push(order);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::Ground;
    use crate::interruptible::Watch;
    use crate::settings::BenchSettings;
    use numakit_sys::SysRoot;

    fn of(machine: &str) -> (Vec<(String, Vec<u32>)>, usize) {
        let topology = numakit_topology::synthetic::parse(machine).unwrap();
        let (settings, watch) = (BenchSettings::default(), Watch::default());
        let ground = Ground::new(SysRoot::host(), &topology, &settings, true, &watch);
        let mut result = BenchResult::default();
        let cpus = |order: Order| (order.name, order.threads.into_iter().map(|(_, cpu)| cpu).collect());
        (orders(&ground, &mut result).into_iter().map(cpus).collect(), result.left_out.len())
    }

    #[test]
    fn threads_fill_nodes_spread_over_them_or_go_in_strides() {
        let (orders, left_out) = of("node:3 core:3");
        let order = |name: &str, cpus: [u32; 9]| (name.to_owned(), cpus.to_vec());
        let expected = [
            order("compact", [0, 1, 2, 3, 4, 5, 6, 7, 8]),
            order("scatter", [0, 3, 6, 1, 4, 7, 2, 5, 8]),
            order("stride 2", [0, 2, 4, 6, 8, 1, 3, 5, 7]),
            order("stride 4", [0, 4, 8, 1, 5, 2, 6, 3, 7]),
        ];
        assert_eq!((orders.as_slice(), left_out), (expected.as_slice(), 1));
    }

    #[test]
    fn every_hardware_thread_is_used_in_an_order_of_its_own() {
        let (orders, left_out) = of("node:1 core:3 pu:2");
        let names: Vec<_> = orders.iter().map(|(name, cpus)| (name.as_str(), cpus.len())).collect();
        assert_eq!(
            names,
            [("compact", 3), ("stride 2", 3), ("compact with SMT", 6), ("stride 2 with SMT", 6),]
        );
        assert_eq!(left_out, 0);
        let pairs: Vec<_> = orders[2].1.chunks(2).map(|pair| pair[0]).collect();
        assert_eq!(pairs, orders[0].1);
    }

    #[test]
    fn orders_that_are_equal_are_there_once() {
        assert_eq!(of("node:1 core:2").0, [("compact".to_owned(), vec![0, 1])]);
    }
}
