//! What the collectives of libnumampi cost: lines from other nodes, of a process on each of eight CPUs of four nodes.

use numakit_guest::{Failure, Guest, Shape, Simulation, programs};
use std::time::Duration;

const COUNT: u64 = 6000;
/// Boundaries that something crosses: three nodes have a way to the first one and back.
const CROSSINGS: f64 = 2.0 * 3.0;
/// Lines of 1 KiB of data, and the one that says that they are there.
const LARGE: f64 = 17.0;

/// Kind, and the most lines of a call: those that no order of messages can do without, and a part more.
const KINDS: [(&str, f64); 6] = [
    ("barrier", 1.35 * CROSSINGS),
    ("allreduce of 8 bytes", 1.35 * CROSSINGS),
    ("allreduce of 1 KiB", 1.1 * CROSSINGS * LARGE),
    ("broadcast of 8 bytes", 1.35 * CROSSINGS),
    ("broadcast of 1 KiB", 1.1 * CROSSINGS / 2.0 * LARGE),
    ("reduce of 8 bytes", 1.35 * CROSSINGS),
];

pub fn guest() -> Result<Guest, Failure> {
    let program =
        programs::compiled("collectives")?.ok_or_else(|| Failure::NotFound("collectives".to_owned()))?;
    Ok(Guest::new(Shape::named("four")?)
        .simulate(Simulation::new())
        .program(&program)
        .timeout(Duration::from_secs(300))
        .step_of_regions("collectives", KINDS.len(), &["collectives", &COUNT.to_string()]))
}

#[test]
fn collectives_cross_each_boundary_once() {
    let Some(part) = super::PARTS.part("collectives") else { return };
    assert_eq!(part["collectives"].succeeded(), "ranks 8\nwrong 0\n");
    for ((name, most), lines) in KINDS.into_iter().zip(part.regions("collectives")) {
        let (local, remote) = lines.local_and_remote();
        let [local, remote] = [local, remote].map(|lines| lines as f64 / COUNT as f64);
        println!("{name}: {remote:.1} lines of other nodes (at most {most:.1}), {local:.1} of the own one");
        assert!(remote <= most, "{name}: {lines:?}");
    }
}
