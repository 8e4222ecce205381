//! Makes the report from tallies.

use crate::bottlenecks::bottlenecks;
use crate::criteria::{HUGE_PAGES, STALL};
use crate::facts::{Facts, node_numbers};
use crate::headline::{Extent, findings};
use crate::locality::locality;
use crate::movers::movers;
use crate::profile::Profile;
use crate::report::*;
use crate::tally::{Phase, Tally};
use crate::traffic::traffic;
use numakit_formulas::{Catalog, Index};
use numakit_model::Instance;
use numakit_recording::Header;

pub(crate) fn report(
    header: &Header,
    index: &Index<'_>,
    tally: &Tally,
    selected: Option<&str>,
    formulas: &Catalog,
) -> Report {
    let phase = phase_of(tally, selected);
    let facts = Facts::new(header, index, formulas, phase);
    Report {
        recording: recording(header, tally, phase, selected),
        machine: machine(header),
        losses: losses(header, tally),
        locality: locality(&facts),
        bottlenecks: bottlenecks(&facts, tally),
        traffic: traffic(&facts),
        phases: tally.phases.iter().skip(1).map(|p| phase_report(header, index, formulas, p)).collect(),
        more_phases: tally.notes.more_phases,
        faults: faults(&facts),
        memory: memory(header, index, tally),
        cpus: cpus(header, &facts),
        pressure: pressure(&facts),
        movers: movers(header, tally, index),
        cost: cost(tally, phase, &facts),
        findings: findings(&facts, index, tally, Extent::Recording),
    }
}

/// The values of a recording that are compared with those of another recording.
pub(crate) fn profile(
    header: &Header,
    index: &Index<'_>,
    tally: &Tally,
    selected: Option<&str>,
    formulas: &Catalog,
) -> Profile {
    let facts = Facts::new(header, index, formulas, phase_of(tally, selected));
    let findings = findings(&facts, index, tally, Extent::Recording);
    crate::profile::profile((header, index, formulas), &facts, tally, &findings)
}

/// The selected phase, or the whole recording.
fn phase_of<'a>(tally: &'a Tally, selected: Option<&str>) -> &'a Phase {
    let of_name = |name: &str| tally.phases.iter().skip(1).find(|p| p.name == name);
    selected.and_then(of_name).unwrap_or(&tally.phases[0])
}

fn recording(header: &Header, tally: &Tally, phase: &Phase, selected: Option<&str>) -> RecordingSummary {
    let first = tally.first.unwrap_or(header.started);
    RecordingSummary {
        program: header.program.clone(),
        host: header.host.clone(),
        kernel: header.kernel.clone(),
        command: header.command.clone(),
        exit_status: tally.notes.exit_status,
        started: if header.started > 0 { header.started } else { first },
        seconds: seconds(tally.end.saturating_sub(first)),
        interval_seconds: (header.interval > 0).then(|| seconds(header.interval)),
        samples: tally.phases[0].samples,
        series: header.series.len(),
        phase: selected.map(str::to_owned),
        covered_seconds: seconds(phase.covered),
        covered_samples: phase.samples,
    }
}

fn machine(header: &Header) -> Option<MachineSummary> {
    let topology = header.topology.as_ref()?;
    Some(MachineSummary {
        nodes: topology.nodes.len(),
        packages: topology.packages.len(),
        cores: topology.cores.len(),
        cpus: topology.online.len(),
        memory_bytes: topology.memory_kb().map(|kb| kb.saturating_mul(1024)),
    })
}

fn losses(header: &Header, tally: &Tally) -> LossSummary {
    let notes = &tally.notes;
    let mut absent: Vec<AbsentGroup> = Vec::new();
    for metric in &header.absent {
        match absent.iter_mut().find(|group| group.why == metric.why) {
            Some(group) => group.names.push(metric.name.clone()),
            None => absent.push(AbsentGroup { names: vec![metric.name.clone()], why: metric.why.clone() }),
        }
    }
    LossSummary {
        lost_ticks: notes.lost,
        lost_percent: tally.lost_percent(),
        dropped_rows: notes.dropped,
        damaged_rows: notes.damaged,
        damage: None,
        pauses: notes.pauses,
        paused_seconds: seconds(notes.paused),
        clock_steps: notes
            .clock_steps
            .iter()
            .map(|&(at, by)| ClockStep { at_seconds: seconds(at), by_seconds: by as f64 / 1e9 })
            .collect(),
        interval_changes: notes
            .intervals
            .iter()
            .map(|&(at, ns)| IntervalChange { at_seconds: seconds(at), interval_seconds: seconds(ns) })
            .collect(),
        failures: notes
            .failures
            .iter()
            .map(|(at, what)| Failure { at_seconds: seconds(*at), what: what.clone() })
            .collect(),
        more_notes: notes.more,
        absent,
    }
}

fn phase_report(header: &Header, index: &Index<'_>, formulas: &Catalog, phase: &Phase) -> PhaseReport {
    let facts = Facts::new(header, index, formulas, phase);
    let locality = locality(&facts);
    PhaseReport {
        name: phase.name.clone(),
        times: phase.times,
        seconds: seconds(phase.covered),
        samples: phase.samples,
        worst_node: locality.worst().map(|n| n.node),
        locality,
        minor_faults_per_second: facts.rate("minor", Instance::Machine),
        major_faults_per_second: facts.rate("major", Instance::Machine),
    }
}

fn faults(facts: &Facts<'_>) -> Faults {
    let rate = |name| facts.rate(name, Instance::Machine);
    let sum = |name| facts.sum(name, Instance::Machine);
    Faults {
        minor_per_second: rate("minor"),
        major_per_second: rate("major"),
        minor: sum("minor"),
        major: sum("major"),
        huge: sum("huge"),
        small: sum("small"),
        huge_pages: HUGE_PAGES.judge(facts, Instance::Machine),
        hint_per_second: rate("hint"),
        pages_moved_per_second: rate("moved"),
    }
}

/// The free memory of each node, or of the machine if no node has values.
fn memory(header: &Header, index: &Index<'_>, tally: &Tally) -> Vec<FreeMemory> {
    let of_place = |node: Option<u32>| {
        let place = node.map_or(Instance::Machine, Instance::Node);
        let name = if node.is_some() { "node.MemFree" } else { "vmstat.nr_free_pages" };
        let free = tally.memory(index, name, place)?;
        let measured = node.and_then(|_| tally.memory(index, "node.MemTotal", place)).map(|total| total.end);
        let topology = header.topology.as_ref();
        let known = || match node {
            Some(node) => topology?.node(node)?.memory_kb,
            None => topology?.memory_kb(),
        };
        Some(FreeMemory {
            node,
            total_bytes: measured.or_else(|| known().map(|kb| kb as f64 * 1024.0)),
            begin_bytes: free.begin,
            end_bytes: free.end,
            least_bytes: free.least,
        })
    };
    let nodes: Vec<FreeMemory> = node_numbers(header).iter().filter_map(|n| of_place(Some(n))).collect();
    if nodes.is_empty() { of_place(None).into_iter().collect() } else { nodes }
}

/// The CPU time of the machine, then of each node whose CPUs are known.
fn cpus(header: &Header, facts: &Facts<'_>) -> Vec<Cpu> {
    let known = header.topology.iter().flat_map(|t| &t.nodes).map(|n| Some(n.os_index));
    let nodes: Vec<Option<u32>> =
        if facts.node_count().is_some_and(|n| n > 1) { known.collect() } else { Vec::new() };
    let of_place = |node: Option<u32>| {
        let place = node.map_or(Instance::Machine, Instance::Node);
        let share = |name| facts.rate(name, place);
        let cpu = Cpu {
            node,
            user_percent: share("user"),
            system_percent: share("system"),
            idle_percent: share("idle"),
        };
        cpu.user_percent.or(cpu.idle_percent).is_some().then_some(cpu)
    };
    [None].into_iter().chain(nodes).filter_map(of_place).collect()
}

fn pressure(facts: &Facts<'_>) -> Pressure {
    let share = |name| facts.rate(name, Instance::Machine);
    Pressure {
        memory: STALL.judge(facts, Instance::Machine),
        cpu_percent: share("stall_cpu"),
        io_percent: share("stall_io"),
    }
}

fn cost(tally: &Tally, phase: &Phase, facts: &Facts<'_>) -> Cost {
    // A rate of CPU time is a number of CPUs; its sum over seconds is CPU seconds.
    let cpu = |name| facts.sum(name, Instance::Machine);
    let share = |name| facts.rate(name, Instance::Machine);
    let ns = |value: Option<f64>| value.map(|v| v / 1e9);
    Cost {
        cpu_seconds_per_sample: cpu("sampler_cpu").map(|s| s / phase.intervals.max(1) as f64),
        sampler_percent: share("sampler_share"),
        process_percent: share("process_share"),
        wakeup_p50_seconds: ns(tally.wakeup.quantile(0.5)),
        wakeup_p99_seconds: ns(tally.wakeup.quantile(0.99)),
        wakeup_max_seconds: ns(tally.wakeup.largest()),
        took_p50_seconds: ns(tally.took.quantile(0.5).filter(|&t| t > 0.0)),
        took_p99_seconds: ns(tally.took.quantile(0.99).filter(|&t| t > 0.0)),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
