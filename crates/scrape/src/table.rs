//! The one table of what a scrape delivers. The text of scrapes, the guide and dashboards are made from it.

use ExposedKind::{Counter, Gauge};
use ExposedSource::{Jobs, Machine, Own, Places};

/// A metric as Prometheus sees it.
#[derive(Debug)]
pub struct ExposedMetric {
    /// Its name, without the suffix of counters' samples.
    pub name: &'static str,
    /// Counter or gauge.
    pub kind: ExposedKind,
    /// The base unit; empty for counts.
    pub unit: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// Where its values come from.
    pub source: ExposedSource,
    /// What other exporters call it; empty if none has it.
    pub peers: &'static str,
}

/// Counter or gauge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExposedKind {
    /// It only grows while the machine runs.
    Counter,
    /// A level.
    Gauge,
}

/// The value of a second label, and the metrics of sensors whose sum has it.
pub type ExposedPart = (&'static str, &'static [&'static str]);

/// Where the values of a metric come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExposedSource {
    /// Series of nodes and CPUs, summed by place, with the name of the second label.
    Places(&'static str, &'static [ExposedPart]),
    /// Series of the whole machine, with the name of the label; it is empty if there is one value.
    Machine(&'static str, &'static [ExposedPart]),
    /// Jobs.
    Jobs(JobValue),
    /// What the exporter knows itself.
    Own(OwnValue),
}

/// A value of each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JobValue {
    Cpu,
    CpuOn,
    Memory,
    MemoryOn,
    Processes,
    MaskNodes,
    Waited,
    MemoryTime,
    Contended,
    Finding,
    Untold,
    Unjudged,
    Hidden,
    Age,
    SamplesLost,
}

/// A value that the exporter knows itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum OwnValue {
    Build,
    Cpus,
    Samples,
    LostSamples,
    Interval,
    Age,
    Scrapes,
    CpuTime,
    Memory,
    LeftOut,
    Absent,
    Pushed(PushValue),
}

/// A value of the push that `--to` starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PushValue {
    Rows,
    Requests,
    Refused,
    Lost,
    Waiting,
    Spool,
    Outages,
    Down,
}

impl ExposedMetric {
    /// The names of its labels; a place is a node, on large machines a package or a board.
    pub fn labels(&self) -> Vec<&'static str> {
        let all = match self.source {
            Places(label, _) => ["node", label],
            Machine(label, _) => [label, ""],
            Jobs(JobValue::CpuOn | JobValue::MemoryOn) => ["job", "node"],
            Jobs(JobValue::MemoryTime) => ["job", "memory"],
            Jobs(JobValue::Finding | JobValue::Untold) => ["job", "rule"],
            Jobs(JobValue::Unjudged) => ["job", "reason"],
            Jobs(JobValue::Hidden | JobValue::Age | JobValue::SamplesLost) => ["", ""],
            Jobs(_) => ["job", ""],
            Own(OwnValue::Build) => ["version", ""],
            Own(OwnValue::Cpus) => ["node", ""],
            Own(OwnValue::Absent) => ["what", "reason"],
            Own(_) => ["", ""],
        };
        all.into_iter().filter(|label| !label.is_empty()).collect()
    }

    /// The name of its samples.
    pub fn sample_name(&self) -> String {
        let suffix = if self.kind == Counter { "_total" } else { "" };
        format!("{}{suffix}", self.name)
    }

    /// The metrics of sensors that it is made of.
    pub fn series(&self) -> impl Iterator<Item = &'static str> {
        let parts = match self.source {
            Places(_, parts) | Machine(_, parts) => parts,
            Jobs(_) | Own(_) => &[],
        };
        parts.iter().flat_map(|(_, names)| names.iter().copied())
    }
}

const fn row(
    name: &'static str,
    kind: ExposedKind,
    unit: &'static str,
    source: ExposedSource,
    help: &'static str,
    peers: &'static str,
) -> ExposedMetric {
    ExposedMetric { name, kind, unit, help, source, peers }
}

const MEMORY: ExposedSource = Places(
    "state",
    &[
        ("total", &["node.MemTotal"]),
        ("free", &["node.MemFree"]),
        ("file", &["node.FilePages"]),
        ("anonymous", &["node.AnonPages"]),
    ],
);
const ALLOCATIONS: ExposedSource = Places(
    "kind",
    &[
        ("local", &["node.local_node"]),
        ("remote", &["node.other_node"]),
        ("missed", &["node.numa_miss"]),
        ("interleaved", &["node.interleave_hit"]),
    ],
);
const CPU_TIME: ExposedSource = Places(
    "mode",
    &[
        ("user", &["cpu.user", "cpu.nice"]),
        ("system", &["cpu.system", "cpu.irq", "cpu.softirq"]),
        ("idle", &["cpu.idle"]),
        ("iowait", &["cpu.iowait"]),
        ("steal", &["cpu.steal"]),
    ],
);
const PRESSURE: ExposedSource = Machine(
    "resource",
    &[("cpu", &["pressure.cpu_some"]), ("memory", &["pressure.memory_some"]), ("io", &["pressure.io_some"])],
);
const FULL_PRESSURE: ExposedSource = Machine(
    "resource",
    &[("memory", &["pressure.memory_full"]), ("io", &["pressure.io_full"]), ("irq", &["pressure.irq_full"])],
);
const MIGRATED: ExposedSource =
    Machine("result", &[("moved", &["vmstat.pgmigrate_success"]), ("failed", &["vmstat.pgmigrate_fail"])]);
const HUGE_FAULTS: ExposedSource = Machine(
    "result",
    &[("allocated", &["vmstat.thp_fault_alloc"]), ("refused", &["vmstat.thp_fault_fallback"])],
);
const SCANNED: ExposedSource =
    Machine("by", &[("kswapd", &["vmstat.pgscan_kswapd"]), ("direct", &["vmstat.pgscan_direct"])]);
const SWAPPED: ExposedSource =
    Machine("direction", &[("in", &["vmstat.pswpin"]), ("out", &["vmstat.pswpout"])]);
const THREADS: ExposedSource =
    Machine("state", &[("running", &["cpu.procs_running"]), ("blocked", &["cpu.procs_blocked"])]);

/// Every metric, in the order of a scrape.
#[rustfmt::skip]
pub static EXPOSED: &[ExposedMetric] = &[
    row("numakit_node_memory_bytes", Gauge, "bytes", MEMORY,
        "Memory of the node by state.",
        "node_memory_numa_MemTotal, node_memory_numa_MemFree, node_memory_numa_FilePages, node_memory_numa_AnonPages"),
    row("numakit_node_allocations", Counter, "", ALLOCATIONS,
        "Allocations on the node: by its own CPUs, by others, missed elsewhere, interleaved.",
        "node_memory_numa_local_node_total, node_memory_numa_other_node_total, rezolus memory_numa_local"),
    row("numakit_node_cpu_seconds", Counter, "seconds", CPU_TIME,
        "CPU time of all CPUs of the node by mode.", "node_cpu_seconds_total"),
    row("numakit_node_cpus", Gauge, "", Own(OwnValue::Cpus),
        "Online CPUs of the node.", "count by (cpu) of node_cpu_seconds_total"),
    row("numakit_hint_faults", Counter, "", Machine("", &[("", &["vmstat.numa_hint_faults"])]),
        "Page faults by which NUMA balancing samples who uses a page.", "node_vmstat_numa_hint_faults"),
    row("numakit_hint_faults_local", Counter, "", Machine("", &[("", &["vmstat.numa_hint_faults_local"])]),
        "Those of them on the node of the page.", "node_vmstat_numa_hint_faults_local"),
    row("numakit_balancing_moved_bytes", Counter, "bytes", Machine("", &[("", &["vmstat.numa_pages_migrated"])]),
        "Memory that NUMA balancing moved to another node.", "node_vmstat_numa_pages_migrated"),
    row("numakit_balancing_marked_bytes", Counter, "bytes", Machine("", &[("", &["vmstat.numa_pte_updates"])]),
        "Memory whose pages NUMA balancing marked for a hint fault.", "node_vmstat_numa_pte_updates"),
    row("numakit_migrated_bytes", Counter, "bytes", MIGRATED,
        "Memory that was to be moved to another place, for any reason.",
        "node_vmstat_pgmigrate_success, node_vmstat_pgmigrate_fail"),
    row("numakit_page_faults", Counter, "", Machine("", &[("", &["vmstat.pgfault"])]),
        "Page faults of all processes.", "node_vmstat_pgfault"),
    row("numakit_major_page_faults", Counter, "", Machine("", &[("", &["vmstat.pgmajfault"])]),
        "Those of them that waited for storage.", "node_vmstat_pgmajfault"),
    row("numakit_huge_page_faults", Counter, "", HUGE_FAULTS,
        "Page faults that were to get a transparent huge page.", "node_vmstat_thp_fault_alloc"),
    row("numakit_compaction_stalls", Counter, "", Machine("", &[("", &["vmstat.compact_stall"])]),
        "Allocations that waited while memory was compacted.", "node_vmstat_compact_stall"),
    row("numakit_reclaim_scanned_bytes", Counter, "bytes", SCANNED,
        "Memory whose pages were looked at to free some.", "node_vmstat_pgscan_kswapd, node_vmstat_pgscan_direct"),
    row("numakit_zone_reclaim_failures", Counter, "", Machine("", &[("", &["vmstat.zone_reclaim_failed"])]),
        "Times that a full node could not be given room before memory of another one was taken.",
        "node_vmstat_zone_reclaim_failed"),
    row("numakit_swapped_bytes", Counter, "bytes", SWAPPED,
        "Memory that was swapped.", "node_vmstat_pswpin, node_vmstat_pswpout"),
    row("numakit_out_of_memory_kills", Counter, "", Machine("", &[("", &["vmstat.oom_kill"])]),
        "Processes that the kernel killed for lack of memory.", "node_vmstat_oom_kill"),
    row("numakit_pressure_seconds", Counter, "seconds", PRESSURE,
        "Time in which at least one thread waited for the resource.",
        "node_pressure_cpu_waiting_seconds_total, node_pressure_memory_waiting_seconds_total"),
    row("numakit_full_pressure_seconds", Counter, "seconds", FULL_PRESSURE,
        "Time in which all threads with work to do waited for the resource.",
        "node_pressure_memory_stalled_seconds_total, node_pressure_io_stalled_seconds_total"),
    row("numakit_threads", Gauge, "", THREADS,
        "Threads that run or are ready to run, and those that wait for storage.",
        "node_procs_running, node_procs_blocked"),
    row("numakit_context_switches", Counter, "", Machine("", &[("", &["cpu.context_switches"])]),
        "Context switches.", "node_context_switches_total"),
    row("numakit_forks", Counter, "", Machine("", &[("", &["cpu.forks"])]),
        "Processes and threads started.", "node_forks_total"),
    row("numakit_interrupts", Counter, "", Machine("", &[("", &["cpu.interrupts"])]),
        "Interrupts served.", "node_intr_total"),
    row("numakit_job_cpu_seconds", Counter, "seconds", Jobs(JobValue::Cpu),
        "CPU time of the job since it was first seen.", "container_cpu_usage_seconds_total"),
    row("numakit_job_node_cpu_seconds", Counter, "seconds", Jobs(JobValue::CpuOn),
        "The same by node of the CPU, of the ten largest jobs.", ""),
    row("numakit_job_memory_bytes", Gauge, "bytes", Jobs(JobValue::Memory),
        "Resident memory of the job's processes; a page that several map counts for each.", "container_memory_rss"),
    row("numakit_job_node_memory_bytes", Gauge, "bytes", Jobs(JobValue::MemoryOn),
        "Memory of the job by node, of the ten largest jobs.", "container_memory_numa_pages"),
    row("numakit_job_processes", Gauge, "", Jobs(JobValue::Processes),
        "Processes of the job.", "container_processes"),
    row("numakit_job_mask_nodes", Gauge, "", Jobs(JobValue::MaskNodes),
        "Nodes that the CPU mask of the job's busiest process covers.", ""),
    row("numakit_job_cpu_wait_seconds", Counter, "seconds", Jobs(JobValue::Waited),
        "Time in which threads of the job were ready to run and had no CPU.", "container_pressure_cpu_waiting_seconds_total"),
    row("numakit_job_memory_time_seconds", Counter, "seconds", Jobs(JobValue::MemoryTime),
        "Time in which threads of the job waited for local and for remote memory, by samples.", ""),
    row("numakit_job_contended_seconds", Counter, "seconds", Jobs(JobValue::Contended),
        "Time in which threads of the job waited for lines that others write, by samples.", ""),
    row("numakit_finding", Gauge, "", Jobs(JobValue::Finding),
        "What is wrong with the job, and what it costs: a share between 0 and 1.", ""),
    row("numakit_finding_without_cost", Gauge, "", Jobs(JobValue::Untold),
        "What is wrong with the job, where the cost cannot be told; the value is always 1.", ""),
    row("numakit_job_unjudged", Gauge, "", Jobs(JobValue::Unjudged),
        "Why it cannot be told whether something is wrong with the job; the value is always 1.", ""),
    row("numakit_jobs_hidden", Gauge, "", Jobs(JobValue::Hidden),
        "Jobs that are shown together as the job other.", ""),
    row("numakit_jobs_age_seconds", Gauge, "seconds", Jobs(JobValue::Age),
        "Time since the jobs that this scrape shows were looked at.", ""),
    row("numakit_job_samples_lost", Counter, "", Jobs(JobValue::SamplesLost),
        "Samples of jobs that were lost; the times of jobs stand for them too.", ""),
    row("numakit_build_info", Gauge, "", Own(OwnValue::Build),
        "The version of numa; the value is always 1.", "node_exporter_build_info"),
    row("numakit_samples", Counter, "", Own(OwnValue::Samples),
        "Samples taken since numa serve started.", ""),
    row("numakit_samples_lost", Counter, "", Own(OwnValue::LostSamples),
        "Samples that were due and not taken.", ""),
    row("numakit_sample_interval_seconds", Gauge, "seconds", Own(OwnValue::Interval),
        "Time between two samples.", ""),
    row("numakit_sample_age_seconds", Gauge, "seconds", Own(OwnValue::Age),
        "Time since the sample that this scrape shows.", ""),
    row("numakit_scrapes", Counter, "", Own(OwnValue::Scrapes),
        "Scrapes answered before this one.", "promhttp_metric_handler_requests_total"),
    row("numakit_own_cpu_seconds", Counter, "seconds", Own(OwnValue::CpuTime),
        "CPU time of numa serve.", "process_cpu_seconds_total"),
    row("numakit_own_memory_bytes", Gauge, "bytes", Own(OwnValue::Memory),
        "Resident memory of numa serve.", "process_resident_memory_bytes"),
    row("numakit_push_rows", Counter, "", Own(OwnValue::Pushed(PushValue::Rows)),
        "Rows that the engine of --to has taken.", "prometheus_remote_storage_samples_total"),
    row("numakit_push_requests", Counter, "", Own(OwnValue::Pushed(PushValue::Requests)),
        "Requests to it, also those that failed.", ""),
    row("numakit_push_refused_values", Counter, "", Own(OwnValue::Pushed(PushValue::Refused)),
        "Values that it refused.", "prometheus_remote_storage_samples_failed_total"),
    row("numakit_push_lost_rows", Counter, "", Own(OwnValue::Pushed(PushValue::Lost)),
        "Rows that were dropped since the spool or its disk was full or slow, or damaged.",
        "prometheus_remote_storage_samples_dropped_total"),
    row("numakit_push_waiting_rows", Gauge, "", Own(OwnValue::Pushed(PushValue::Waiting)),
        "Rows that wait in the spool.", "prometheus_remote_storage_samples_pending"),
    row("numakit_push_spool_bytes", Gauge, "bytes", Own(OwnValue::Pushed(PushValue::Spool)),
        "Size of the spool.", ""),
    row("numakit_push_outages", Counter, "", Own(OwnValue::Pushed(PushValue::Outages)),
        "Times for which the engine took nothing.", ""),
    row("numakit_push_down_seconds", Counter, "seconds", Own(OwnValue::Pushed(PushValue::Down)),
        "How long they were together, at the last try.", ""),
    row("numakit_series_left_out", Gauge, "", Own(OwnValue::LeftOut),
        "Series that were selected and exceed the limit.", ""),
    row("numakit_absent", Gauge, "", Own(OwnValue::Absent),
        "What cannot be measured here, and why; the value is always 1.", ""),
];

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_export::ExportedValues;
    use numakit_export::openmetrics::Families;
    use numakit_model::{Instance, Series};
    use numakit_sensors::SENSORS;
    use std::collections::HashSet;
    use std::sync::Arc;

    fn words(name: &str) -> bool {
        name.split('_')
            .all(|w| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()))
    }

    #[test]
    fn names_are_unique_and_as_prometheus_wants_them() {
        let mut names = HashSet::new();
        for metric in EXPOSED {
            assert!(names.insert(metric.name) && metric.name.starts_with("numakit_"), "{}", metric.name);
            assert!(words(metric.name) && !metric.name.ends_with("_total"), "{}", metric.name);
            assert!(
                metric.unit.is_empty() || metric.name.ends_with(&format!("_{}", metric.unit)),
                "{}",
                metric.name
            );
            assert!(
                metric.help.ends_with('.') && metric.labels().iter().all(|l| words(l)),
                "{}",
                metric.name
            );
        }
    }

    /// A renamed metric of a sensor would make values absent without a word.
    #[test]
    fn every_series_is_one_of_a_sensor_and_used_once() {
        let known: HashSet<String> = SENSORS.iter().flat_map(|s| (s.known)()).map(|m| m.name).collect();
        let mut used = HashSet::new();
        for name in EXPOSED.iter().flat_map(ExposedMetric::series) {
            assert!(known.contains(name) && used.insert(name), "{name}");
        }
        assert!(used.len() > 40, "{}", used.len());
    }

    /// A scrape has base units: a count of pages would be told as bytes.
    #[test]
    fn units_are_those_of_the_series_in_base_units() {
        let known: Vec<numakit_model::Metric> = SENSORS.iter().flat_map(|s| (s.known)()).collect();
        for metric in EXPOSED {
            for name in metric.series() {
                let series = known.iter().find(|one| one.name == name).unwrap();
                let (unit, _) = numakit_export::openmetrics::base(series.unit, 4096);
                assert_eq!(metric.unit, unit, "{}: {name} is in {:?}", metric.name, series.unit);
            }
        }
    }

    /// Series that -e adds have the names of exports.
    #[test]
    fn names_differ_from_those_of_added_series() {
        let known = SENSORS.iter().flat_map(|s| (s.known)());
        let series: Vec<Series> = known.map(|m| Series::new(&Arc::new(m), Instance::Machine)).collect();
        let added = Families::new(&series, 4096, ExportedValues::Raw, &[]);
        for family in added.list() {
            assert!(EXPOSED.iter().all(|metric| metric.name != family.name()), "{}", family.name());
        }
    }
}
