//! How long plans for ten thousand cores take: `milliseconds NAME VALUE`, the median of nine.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_placement::{CorePolicy, Cores, PlacementRequest, Taken, plan};
use std::time::Instant;

/// 10,240 cores on 1,280 caches, 640 nodes, 160 packages and 20 boards.
const MACHINE: &str = "board:20 package:8 node:4 l3:2 core:8 pu:2 numbering=interleaved dist=10/12/32/160";

fn main() {
    let topology = numakit_topology::synthetic::parse(MACHINE).unwrap();
    // Every 97th CPU is held or busy, so that no two nodes are quite alike.
    let odd = |rest: u32| topology.online.iter().filter(move |cpu| cpu % 97 == rest);
    let taken = Taken {
        registered: odd(5).map(|cpu| (std::iter::once(cpu).collect(), format!("job {cpu}"))).collect(),
        busy: odd(11).map(|cpu| (cpu, 100)).collect(),
        ..Taken::default()
    };
    let all =
        PlacementRequest { cores: Some(Cores::Auto), threads_per_core: 2, ..PlacementRequest::default() };
    let ranks = PlacementRequest { processes: 4800, ..PlacementRequest::default() };
    let hybrid = PlacementRequest { processes: 1000, threads: Some(7), ..PlacementRequest::default() };
    let scatter = PlacementRequest {
        cores: Some(Cores::Count(9000)),
        policy: CorePolicy::Scatter,
        ..PlacementRequest::default()
    };
    let memory = PlacementRequest {
        cores: Some(Cores::Count(5000)),
        policy: CorePolicy::Memory(6 << 40),
        stride: 2,
        ..PlacementRequest::default()
    };
    let none = Taken::default();
    let asked = [
        ("all", &all, &none),
        ("ranks", &ranks, &taken),
        ("hybrid", &hybrid, &taken),
        ("scatter", &scatter, &taken),
        ("memory", &memory, &none),
    ];
    for (name, request, taken) in asked {
        let mut times = [0.0; 9];
        for time in &mut times {
            let begin = Instant::now();
            let plan = plan(&topology, request, taken).unwrap();
            *time = begin.elapsed().as_secs_f64() * 1e3;
            assert!(plan.steps.len() >= 4800);
        }
        times.sort_by(f64::total_cmp);
        println!("milliseconds {name} {:.3}", times[times.len() / 2]);
    }
}
