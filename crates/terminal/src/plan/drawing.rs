//! Ranks and threads in the drawing of the machine.

use crate::topology::{Overlay, PuOverlay};
use numakit_model::plan::{Plan, Step};
use numakit_placement::launchers::sequence;

/// Dark enough for white letters; neighbours are easy to distinguish.
const COLOURS: [&str; 10] = [
    "#2f6db5", "#b5482f", "#3b8142", "#7b4fa8", "#a06a00", "#1f7f86", "#b03a78", "#5b6b1f", "#4a4f9e",
    "#7a4a2b",
];

/// Maximum number of processes that the legend lists one by one.
const MAX_LISTED: usize = 16;

/// Each thread's CPU in the colour of its process, with its rank and thread: `r2.t3`.
pub fn overlay(plan: &Plan) -> Overlay {
    let several = plan.processes().nth(1).is_some();
    let threads = plan.processes().any(|steps| steps.len() > 1);
    let label = |step: &Step| match (several, threads) {
        (true, true) => format!("r{}.t{}", step.process, step.thread),
        (true, false) => format!("r{}", step.process),
        (false, _) => format!("t{}", step.thread),
    };
    let colour = |process: u32| COLOURS[process as usize % COLOURS.len()];
    let mark = |step: &Step| (step.cpu, PuOverlay { colour: colour(step.process), label: label(step) });
    let all: Vec<&[Step]> = plan.processes().collect();
    let mut legend: Vec<(&'static str, String)> = all
        .iter()
        .take(MAX_LISTED)
        .map(|steps| {
            let order: Vec<u32> = steps.iter().map(|step| step.cpu).collect();
            let cpus: String = sequence(&order).chars().take(40).collect();
            (colour(steps[0].process), format!("process {}: CPUs {cpus}", steps[0].process))
        })
        .collect();
    if all.len() > MAX_LISTED {
        legend.truncate(COLOURS.len());
        for (at, entry) in legend.iter_mut().enumerate() {
            entry.1 = format!("processes {at}, {}, ...", at + COLOURS.len());
        }
    }
    Overlay { marks: plan.steps.iter().map(mark).collect(), held: plan.held.minus(&plan.cpus()), legend }
}
