//! Whether a program that is moved while it runs has as few remote lines in its steps afterwards as one that had its cure from the
//! start. The simulator counts the steps after the move alone: what the programs do before it is not counted.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, Simulation, or_skipped, programs};
use std::fmt::Write;
use std::time::Duration;

/// A program that is moved.
struct Moved {
    name: &'static str,
    command: &'static str,
    /// The command with more work, for its observation; none if it needs no cure.
    observed: Option<&'static str>,
}

const PROGRAMS: [Moved; 3] = [
    Moved { name: "ep", command: "ep 20", observed: None },
    Moved { name: "cg", command: "npb cg broken 15", observed: Some("npb cg broken 1500") },
    Moved { name: "mg", command: "npb_fortran mg broken 8", observed: Some("npb_fortran mg broken 400") },
];

impl Moved {
    /// The options that name its cure.
    fn apply(&self) -> String {
        self.observed.map_or_else(String::new, |_| format!("--apply /root/{}.cure", self.name))
    }

    /// How it is observed, from a node of the observer's own.
    fn observing(&self) -> Option<String> {
        let command = self.observed?;
        Some(format!(
            "taskset -p 300 $$ >/dev/null; exec numa explain --cure /out/{}.cure taskset ff {command}",
            self.name
        ))
    }

    /// Its run with a cure from the start.
    fn applied(&self) -> String {
        let Self { command, .. } = self;
        format!("unset GOMP_CPU_AFFINITY; taskset -p ff $$ >/dev/null; numa run {} {command}", self.apply())
    }

    /// Its run that is moved while it works.
    fn moved(&self) -> String {
        let Self { name, command, .. } = self;
        format!(
            "export NUMAKIT_UNTIL=/tmp/{name}.go XDG_STATE_HOME=/tmp/state; taskset ff {command} >printed & P=$!; sleep 5; \
             taskset 300 numa move --pid $P --for 20s {}; echo code $?; touch $NUMAKIT_UNTIL; wait $P; CODE=$?; cat printed; exit $CODE",
            self.apply()
        )
    }
}

/// The programs that are run: those that the variable NUMAKIT_MOVED names, else all.
fn chosen() -> impl Iterator<Item = &'static Moved> {
    let only = std::env::var("NUMAKIT_MOVED").unwrap_or_default();
    PROGRAMS.iter().filter(move |program| only.is_empty() || only.split(',').any(|name| name == program.name))
}

/// A guest with the programs.
fn guest() -> Result<Guest, Failure> {
    Ok(Guest::new(Shape::named("watched")?)
        .program(&programs::numa()?)
        .timeout(Duration::from_secs(900))
        .eight_threads()
        .bound()
        .compiled(&["npb", "npb_fortran", "ep"])?
        .small_pages()
        .without_balancing())
}

/// Observes them without the simulator, which slows an observer down, and counts with it.
fn boot() -> Result<Boot, Failure> {
    let mut observing = guest()?;
    for program in chosen() {
        if let Some(command) = program.observing() {
            observing = observing.step(program.name, &["sh", "-c", &command]);
        }
    }
    let observed = observing.boot()?;
    let mut counting = guest()?.simulate(Simulation::new());
    for program in chosen() {
        if program.observed.is_some() {
            observed[program.name].succeeded();
            let cure = format!("{}.cure", program.name);
            counting = counting.file(&observed.out.join(&cure), &format!("/root/{cure}"));
        }
        for (step, command) in [("applied", program.applied()), ("moved", program.moved())] {
            counting = counting.step(&format!("{}-{step}", program.name), &["sh", "-c", &command]);
        }
    }
    counting.boot()
}

#[test]
#[ignore = "thorough: three programs that are moved in the simulator, 5 minutes"]
fn steps_after_a_move_are_as_near_as_those_of_a_cured_run() {
    let result = boot();
    let Some(boot) = or_skipped(&result) else { return };
    let mut each = boot.traffic.as_ref().unwrap().each.iter().map(|lines| lines.local_and_remote().1);
    let (mut table, mut wrong) = (String::new(), Vec::new());
    for Moved { name, .. } in chosen() {
        let [applied, moved] = ["applied", "moved"].map(|step| {
            let step = &boot[format!("{name}-{step}").as_str()];
            println!("{}{}", step.succeeded(), step.errors());
            each.next().unwrap()
        });
        let ratio = moved as f64 / applied as f64;
        _ = writeln!(
            table,
            "{name}: {moved} remote lines after the move, {applied} with the cure: {ratio:.2}"
        );
        if ratio > 1.3 {
            wrong.push(*name);
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{wrong:?}\n{table}");
}
