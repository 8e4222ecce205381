//! How the time of a tree grows from 1,024 nodes to 4,096, whose distances are 16 times as many:
//! `ratio NAME VALUE`, from medians of five interleaved pairs.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_model::Topology;
use numakit_terminal::topology::{TreeStyle, tree};
use std::time::Instant;

fn main() {
    let machine = |text: &str| numakit_topology::synthetic::parse(text).unwrap();
    let far = |nodes: u32| machine(&format!("node:{} core:2 node:{}(cpuless)", nodes / 2, nodes / 2));
    let alike = |nodes: u32| machine(&format!("node:{nodes} core:2"));
    let line = |nodes: u32| {
        let mut t = alike(nodes);
        let rows = t.distances.as_mut().map(|distances| &mut distances.rows);
        for (from, row) in rows.into_iter().flatten().enumerate() {
            row.iter_mut().enumerate().for_each(|(to, value)| *value = 10 + from.abs_diff(to) as u32);
        }
        t
    };
    let machines: [(&str, [Topology; 2]); 3] = [
        ("equal-nodes", [1024, 4096].map(alike)),
        ("memory-only-nodes", [1024, 4096].map(far)),
        ("unequal-nodes", [1024, 4096].map(line)),
    ];
    for (name, pair) in machines {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..5 {
            for (times, topology) in times.iter_mut().zip(&pair) {
                let begin = Instant::now();
                assert!(tree(topology, TreeStyle { color: false, width: 100 }).len() > 1024);
                times.push(begin.elapsed().as_secs_f64());
            }
        }
        let [small, large] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[2]
        });
        println!("ratio {name} {:.1}", large / small);
    }
}
