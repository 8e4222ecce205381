//! `numa tune` with the lines that the interconnect cards count as its metric: whether it chooses the cure, and what is left then.

use super::{BROKEN, PROGRAMS, Program, REPAIRED, guest, millions, observe};
use numakit_guest::{Boot, Failure, Simulation};
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

/// The kernels. Threads of all nodes share what `join` reads, so that nothing leaves fewer remote lines.
const KERNELS: [&str; 6] = ["cg", "is", "mg", "ft", "store", "join"];
/// Prints the lines that came from other nodes since the last time.
const RECEIVED: &str = "received 4 /root/received";
/// Runs of a tuning: the first one, rounds of three settings, and pairs.
const BUDGET: u32 = 40;

impl Program {
    /// One run, and the remote lines of it.
    fn received(&self, variant: &str) -> String {
        format!("{RECEIVED} >/root/before; taskset ff {} {variant} && {RECEIVED}", self.command)
    }

    /// Interleaving competes with the cure: it is what people try first.
    fn tuned(&self) -> String {
        let Self { name, command, .. } = self;
        format!(
            "{RECEIVED} >/root/before; taskset -p ff $$ >/root/before; exec numa tune --no-verdicts --no-generic --with '--apply /root/{name}.cure' \
             --with '--memory interleave' --metric-command '{RECEIVED}' --budget {BUDGET} --json /out/{name}-tuned.json {command} {BROKEN}"
        )
    }

    /// What is wrong with the tuning.
    fn tuned_wrong(&self, boot: &Boot, table: &mut String) -> Option<String> {
        let lines = |variant: &str| -> u64 {
            let text = boot[format!("{}-{variant}", self.name).as_str()].succeeded();
            text.lines().last().unwrap().parse().unwrap()
        };
        let (broken, repaired) = (lines(BROKEN), lines(REPAIRED));
        let file = boot.out.join(format!("{}-tuned.json", self.name));
        let report: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let answer = &report["answer"];
        let gain = answer["gain"]["gain"].as_f64().unwrap_or(0.0);
        let left = ((1.0 - gain) * broken as f64) as u64;
        _ = writeln!(
            table,
            "{:<8} {:>11.2} {:>11.2} {:>13.2} {:>5}  {}",
            self.name,
            millions(broken),
            millions(left),
            millions(repaired),
            report["runs"],
            answer["command"].as_str().unwrap_or(answer["kind"].as_str().unwrap())
        );
        if self.is_shared {
            return (answer["kind"] != "nothing").then(|| format!("{}: {answer}", self.name));
        }
        let is_cure = answer["command"]
            .as_str()
            .is_some_and(|command| command.contains(&format!("--apply /root/{}.cure", self.name)));
        let near = Self::near(broken, repaired);
        (!is_cure || left as f64 > near)
            .then(|| format!("{}: {left} remote lines are left, {near:.0} may be: {answer}", self.name))
    }
}

fn kernels() -> Vec<&'static Program> {
    let only = std::env::var("NUMAKIT_CURED").unwrap_or_default();
    let is_wanted =
        |name: &str| KERNELS.contains(&name) && (only.is_empty() || only.split(',').any(|one| one == name));
    PROGRAMS.iter().filter(|program| is_wanted(program.name)).collect()
}

fn boot() -> Result<Boot, Failure> {
    let observed = observe(&kernels())?;
    let mut guest =
        guest()?.compiled(&["received"])?.simulate(Simulation::new()).timeout(Duration::from_secs(3000));
    for program in kernels() {
        guest = program.with_cure(guest, &observed);
        for (step, command) in [
            (BROKEN, program.received(BROKEN)),
            (REPAIRED, program.received(REPAIRED)),
            ("tuned", program.tuned()),
        ] {
            guest = guest.step(&format!("{}-{step}", program.name), &["sh", "-c", &command]);
        }
    }
    guest.boot()
}

#[test]
#[ignore = "thorough: six tunings in the simulator, 10 minutes"]
fn tunings_by_remote_lines_end_where_cures_do() {
    let boot = match boot() {
        Ok(boot) => boot,
        Err(failure @ Failure::Unavailable { kind, .. }) => return kind.skip(failure),
        Err(failure) => panic!("{failure}"),
    };
    let mut table = format!(
        "{:<8} {:>11} {:>11} {:>13} {:>5}  ANSWER\n",
        "PROGRAM", "BROKEN (M)", "TUNED (M)", "REPAIRED (M)", "RUNS"
    );
    let mut wrong = Vec::new();
    for program in kernels() {
        println!("{}", boot[format!("{}-tuned", program.name).as_str()].succeeded());
        wrong.extend(program.tuned_wrong(&boot, &mut table));
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{wrong:?}\n{table}");
}
