//! The NUMA guest: its boot time, and the cost of simulating.

use super::results::Results;
use super::statistics::median;
use anyhow::{Context, Result};
use numakit_guest::{Boot, Guest, Shape, Simulation, programs};
use std::time::Duration;

const ROUNDS: usize = 3;
/// Maximum time for a command to a card outside of the markers.
const COMMAND_MS: f64 = 20.0;

pub fn run(results: &mut Results) -> Result<()> {
    for shape in Shape::all()? {
        let boot = |_| Ok(Guest::new(shape.clone()).step("true", &["true"]).boot()?.boot_time.as_secs_f64());
        let seconds = (0..ROUNDS).map(boot).collect::<Result<Vec<f64>>>()?;
        results.show(&format!("start of '{}'", shape.name), median(seconds), "s")?;
    }
    simulation(results)?;
    launcher(results)?;
    cards(results)
}

/// Ways to start a program that does nothing.
const LAUNCHES: [(&str, &str, &[&str]); 4] = [
    ("plain", "by itself", &["counted", "counted"]),
    ("bound", "under taskset", &["counted", "taskset", "-c", "0,1", "counted"]),
    ("nothing", "'numa --version'", &["counted", "numa", "--version"]),
    ("placed", "under 'numa run -c 2'", &["counted", "numa", "run", "-c", "2", "--", "counted"]),
];
/// Other processes of the guest add to each number, hence a median.
const LAUNCHES_EACH: usize = 9;

/// Cache lines between nodes of whole commands, with their launchers; in turns, in one guest.
fn launcher(results: &mut Results) -> Result<()> {
    let compiled = programs::compiled("counted")?.context("no guest program 'counted'")?;
    let Some(taskset) = programs::of_host("taskset") else {
        results.say("skipped: no taskset here to compare the launcher with; apt-get install -y util-linux");
        return Ok(());
    };
    let mut guest = Guest::new(Shape::named("four")?).timeout(Duration::from_secs(600));
    guest =
        guest.simulate(Simulation::new()).program(&programs::numa()?).program(&compiled).program(&taskset);
    for round in 0..LAUNCHES_EACH {
        for (name, _, words) in LAUNCHES {
            guest = guest.step(&format!("{name}{round}"), words);
        }
    }
    let boot = guest.boot()?;
    let each = &boot.traffic.as_ref().context("nothing was counted")?.each;
    let mut medians = [0.0; LAUNCHES.len()];
    for (at, (_, what, _)) in LAUNCHES.iter().enumerate() {
        let remote =
            each.iter().skip(at).step_by(LAUNCHES.len()).map(|lines| lines.local_and_remote().1 as f64);
        medians[at] = median(remote);
        results.show(&format!("remote lines of a program that does nothing, {what}"), medians[at], "")?;
    }
    results.show("ratio of 'numa run' to taskset", medians[3] / medians[1], "")
}

/// The same program with and without the simulator, in turns.
fn simulation(results: &mut Results) -> Result<()> {
    let (mut plain, mut simulated) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(seconds(&guest("ep")?.boot()?)?);
        simulated.push(seconds(&guest("ep")?.simulate(Simulation::new()).boot()?)?);
    }
    let (plain, simulated) = (median(plain), median(simulated));
    results.show("EP class S in the guest", plain, "s")?;
    results.show("EP class S in the simulated machine", simulated, "s")?;
    results.show("ratio", simulated / plain, "")
}

fn guest(program: &str) -> Result<Guest> {
    let path = programs::compiled(program)?.with_context(|| format!("no guest program '{program}'"))?;
    let guest = Guest::new(Shape::named("four")?).timeout(Duration::from_secs(600)).program(&path);
    // Waiting threads must not occupy the one host thread that runs all of them.
    Ok(guest.env("OMP_WAIT_POLICY", "passive").env("GOMP_SPINCOUNT", "0").step(program, &[program]))
}

fn seconds(boot: &Boot) -> Result<f64> {
    number(boot, "ep", "seconds")
}

fn cards(results: &mut Results) -> Result<()> {
    let boots = (0..ROUNDS).map(|_| Ok(guest("card")?.simulate(Simulation::new()).boot()?));
    let boots = boots.collect::<Result<Vec<Boot>>>()?;
    let of = |name: &str| boots.iter().map(|boot| number(boot, "card", name)).collect::<Result<Vec<f64>>>();
    let slowest = of("acknowledged_ms_max")?.into_iter().fold(0.0, f64::max);
    results.show("command to a card, median", median(of("acknowledged_ms_median")?), "ms")?;
    results.at_most("command to a card, slowest of 150", slowest, "ms", COMMAND_MS)
}

/// The number that a step printed after a name.
fn number(boot: &Boot, step: &str, name: &str) -> Result<f64> {
    let text = boot[step].text();
    programs::figure(&text, name)
        .with_context(|| format!("'{step}' printed no {name}:\n{text}{}", boot[step].errors()))
}
