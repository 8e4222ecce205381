//! A plan as text, as JSON and as a drawing.

mod drawing;

pub use drawing::overlay;

use crate::table::page_table;
use numakit_model::plan::{Memory, Mode, Plan, Step};
use numakit_placement::PlacementRequest;
use numakit_placement::launchers::sequence;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of the JSON form; fields are only ever added to it.
const SCHEMA: u32 = 1;

/// A summary with what the plan cannot give. Then a line for each process and node, or for each node where processes have one
/// thread; then the PUs of used cores that have no thread, and the warnings.
pub fn table(plan: &Plan) -> String {
    let single = plan.processes().all(|steps| steps.len() == 1);
    let mut text = summary(plan);
    plan.unmet.iter().for_each(|unmet| text += &format!(", {unmet}"));
    text += "\n\n";
    text += &if single { nodes(plan) } else { processes(plan) };
    let idle = plan.held.minus(&plan.cpus());
    if !idle.is_empty() {
        text += &format!("\nwithout a thread, on the same cores: CPU{} {idle}\n", plural(idle.len()));
    }
    if !plan.warnings.is_empty() {
        text.push('\n');
    }
    plan.warnings.iter().for_each(|warning| text += &format!("warning: {warning}\n"));
    text
}

/// Why each thread is where it is, after the reasons for the whole plan.
pub fn explanation(plan: &Plan, reasons: &[String]) -> String {
    let mut text: String = reasons.iter().map(|reason| format!("{reason}\n")).collect();
    let several = plan.processes().nth(1).is_some();
    for step in &plan.steps {
        let process = if several { format!("process {} ", step.process) } else { String::new() };
        text += &format!("{process}thread {}: CPU {}: {}\n", step.thread, step.cpu, step.because);
    }
    text
}

/// How the threads of a process compare with the plan of `numa run`, or else of the request.
pub fn comparison(pid: u32, threads: usize, of_run: bool, differences: &[String]) -> String {
    let whose = if of_run { "the plan of 'numa run'" } else { "this plan" };
    if differences.is_empty() {
        let threads = match threads {
            1 => "its thread is".to_owned(),
            count => format!("its {count} threads are"),
        };
        return format!("process {pid}: {threads} where {whose} has them\n");
    }
    let lines: String = differences.iter().map(|difference| format!("  {difference}\n")).collect();
    format!("process {pid} differs from {whose}:\n{lines}")
}

/// The documented JSON form, with a final newline.
pub fn json(request: &PlacementRequest, plan: &Plan, reasons: &[String]) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        request: &'a PlacementRequest,
        reasons: &'a [String],
        plan: &'a Plan,
    }
    let document = Document { schema: SCHEMA, request, reasons, plan };
    // Strings, numbers and lists: this cannot fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// `4 processes of 2 threads on 8 CPUs of nodes 0-1, memory local`.
fn summary(plan: &Plan) -> String {
    let counts: Vec<usize> = plan.processes().map(<[Step]>::len).collect();
    let (min, max) = (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
    let threads = match (min, max) {
        (1, 1) => "1 thread".to_owned(),
        (min, max) if min == max => format!("{max} threads"),
        (min, max) => format!("{min} to {max} threads"),
    };
    let (cpus, nodes) = (plan.cpus().len(), plan.nodes());
    format!(
        "{} process{} of {threads} on {cpus} CPU{} of node{} {nodes}",
        counts.len(),
        if counts.len() == 1 { "" } else { "es" },
        plural(cpus),
        plural(nodes.len())
    )
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Processes of one thread: a line for each node and memory, in the order of first use.
fn nodes(plan: &Plan) -> String {
    let mut groups: Vec<(u32, &Memory, Vec<u32>, Vec<u32>)> = Vec::new();
    for step in &plan.steps {
        match groups.iter_mut().rev().find(|group| group.0 == step.node && *group.1 == step.memory) {
            Some(group) => {
                group.2.push(step.process);
                group.3.push(step.cpu);
            }
            None => groups.push((step.node, &step.memory, vec![step.process], vec![step.cpu])),
        }
    }
    let row = |(node, memory, processes, cpus): &(u32, &Memory, Vec<u32>, Vec<u32>)| {
        vec![sequence(processes), node.to_string(), words(memory), sequence(cpus)]
    };
    let rows: Vec<Vec<String>> = groups.iter().map(row).collect();
    page_table(&["process", "node", "memory", "<CPUs"], &rows, "")
}

/// Processes of several threads: a line for each process and node.
fn processes(plan: &Plan) -> String {
    let mut rows = Vec::new();
    for steps in plan.processes() {
        let mut by_node: BTreeMap<u32, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        for step in steps {
            let group = by_node.entry(step.node).or_default();
            group.0.push(step.thread);
            group.1.push(step.cpu);
        }
        let mut groups: Vec<_> = by_node.into_iter().collect();
        groups.sort_by_key(|(_, (threads, _))| threads.first().copied());
        for (node, (threads, cpus)) in groups {
            rows.push(vec![
                steps[0].process.to_string(),
                sequence(&threads),
                node.to_string(),
                words(&steps[0].memory),
                sequence(&cpus),
            ]);
        }
    }
    page_table(&["process", "threads", "node", "memory", "<CPUs"], &rows, "")
}

/// `local`, `bind 0-1`.
fn words(memory: &Memory) -> String {
    match memory.mode {
        Mode::Local => "local".to_owned(),
        mode => format!("{mode} {}", memory.nodes),
    }
}
