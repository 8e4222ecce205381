//! Every parser of external input, as a function of bytes. A target passes if it
//! returns: no panic, no endless loop, no unbounded memory.
//!
//! Each target has a directory of samples in `corpus/`, over which the tests run it.

mod allocation_counts;
mod allocation_log;
mod bench;
mod control;
mod cure;
mod driver;
mod elf;
mod engine;
mod files;
mod formulas;
mod hardware;
mod java;
mod levels;
mod machine;
mod moves;
mod operand;
mod placement;
mod pmu;
mod program;
mod recording;
mod registry;
mod sample_ring;
mod samples;
mod sets;
mod spool;
mod task;
mod tuning;
mod web;

/// A parser under test.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Also the name of its directory in `corpus/`.
    pub name: &'static str,
    /// Runs it on an input; whether the parser accepted it.
    pub run: fn(&[u8]) -> bool,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "cpulist", run: sets::list },
    Target { name: "cpumask", run: sets::mask },
    Target { name: "topology", run: machine::topology },
    Target { name: "sensors", run: machine::sensors },
    Target { name: "resctrl", run: machine::resctrl },
    Target { name: "cards", run: machine::cards },
    Target { name: "numa_maps", run: task::numa_maps },
    Target { name: "task_stat", run: task::stat },
    Target { name: "task_text", run: task::text },
    Target { name: "count_table", run: task::count_table },
    Target { name: "synthetic", run: machine::synthetic },
    Target { name: "topology_json", run: machine::json },
    Target { name: "archive", run: machine::archive },
    Target { name: "recording", run: recording::any },
    Target { name: "tail", run: recording::tail },
    Target { name: "levels", run: levels::file },
    Target { name: "numascope", run: recording::json },
    Target { name: "control", run: control::lines },
    Target { name: "interval", run: control::interval },
    Target { name: "events", run: control::events },
    Target { name: "formulas", run: formulas::file },
    Target { name: "event_table", run: hardware::table },
    Target { name: "event_terms", run: hardware::terms },
    Target { name: "web_message", run: web::message },
    Target { name: "web_request", run: web::request },
    Target { name: "place_list", run: placement::list },
    Target { name: "place_request", run: placement::request },
    Target { name: "registry", run: registry::metadata },
    Target { name: "limits", run: registry::limits },
    Target { name: "format_file", run: pmu::format_file },
    Target { name: "program_head", run: program::head },
    Target { name: "perf_records", run: samples::perf_records },
    Target { name: "explain_result", run: samples::explain_result },
    Target { name: "landing", run: samples::landing },
    Target { name: "operand_x86", run: operand::x86 },
    Target { name: "operand_arm", run: operand::arm },
    Target { name: "sample_slot", run: sample_ring::slot },
    Target { name: "sample_ring", run: sample_ring::ring },
    Target { name: "allocation_slot", run: allocation_log::slot },
    Target { name: "allocation_log", run: allocation_log::log },
    Target { name: "allocation_counts", run: allocation_counts::words },
    Target { name: "cure", run: cure::file },
    Target { name: "bench_results", run: bench::results },
    Target { name: "collectives", run: bench::collectives },
    Target { name: "debug_members", run: elf::members },
    Target { name: "unwind_tables", run: elf::unwind_tables },
    Target { name: "java_dump", run: java::dump },
    Target { name: "perf_map", run: java::perf_map },
    Target { name: "move_record", run: moves::record },
    Target { name: "tuning", run: tuning::record },
    Target { name: "figures", run: tuning::figures },
    Target { name: "spool", run: spool::file },
    Target { name: "driver_messages", run: driver::messages },
    Target { name: "engine_answer", run: engine::answer },
    Target { name: "influx_answers", run: engine::influx },
    Target { name: "prometheus_answers", run: engine::prometheus },
];

/// The target with this name.
pub fn find(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.name == name)
}
