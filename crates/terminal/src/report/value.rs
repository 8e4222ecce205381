//! What a report holds. This is the JSON of `numa report --json`; `null` is not measured.

use numakit_model::Unavailable;
use serde::Serialize;

/// A recording, understood.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What was recorded and how.
    pub recording: RecordingSummary,
    /// The machine; none in recordings of other programs.
    pub machine: Option<MachineSummary>,
    /// What the recording does not have.
    pub losses: LossSummary,
    /// Where memory was allocated.
    pub locality: Locality,
    /// Who waits for far or crowded memory.
    pub suffering: Suffering,
    /// The labelled phases, in the order in which they first began.
    pub phases: Vec<PhaseReport>,
    /// Labels that began phases beyond those that are told apart.
    pub more_phases: u64,
    /// Page faults and huge pages.
    pub faults: Faults,
    /// Free memory of each node.
    pub memory: Vec<FreeMemory>,
    /// What the CPUs did.
    pub cpus: Vec<Cpu>,
    /// Share of the time in which work waited.
    pub pressure: Pressure,
    /// The series that changed most.
    pub movers: Vec<Mover>,
    /// What the recording itself cost.
    pub cost: Cost,
    /// What to try next.
    pub advice: Vec<Advice>,
}

/// What was recorded and how.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct RecordingSummary {
    pub program: String,
    pub host: String,
    pub kernel: String,
    pub command: Option<String>,
    /// 128+signal when killed.
    pub exit_status: Option<i32>,
    /// ns since 1970 UTC.
    pub started: u64,
    /// From the first row to the last.
    pub seconds: f64,
    pub interval_seconds: Option<f64>,
    pub samples: u64,
    pub series: usize,
    /// The phase that this report is about; none: the whole recording.
    pub phase: Option<String>,
    /// Time that the samples of this report cover.
    pub covered_seconds: f64,
    /// Samples of this report.
    pub covered_samples: u64,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct MachineSummary {
    pub nodes: usize,
    pub packages: usize,
    pub cores: usize,
    pub cpus: usize,
    pub memory_bytes: Option<u64>,
}

/// What the recording does not have; always of the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct LossSummary {
    pub lost_ticks: u64,
    pub lost_percent: f64,
    pub dropped_rows: u64,
    /// Those that were damaged when the recording was recovered.
    pub damaged_rows: u64,
    /// What could not be read of the file, and why.
    pub damage: Option<String>,
    pub pauses: u64,
    pub paused_seconds: f64,
    pub clock_steps: Vec<ClockStep>,
    pub interval_changes: Vec<IntervalChange>,
    /// Sensors that stopped giving values, or came back.
    pub failures: Vec<Failure>,
    /// Such notes beyond those that are kept.
    pub more_notes: u64,
    /// What was not there when the recording began.
    pub absent: Vec<AbsentGroup>,
}

/// The wall clock was set.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ClockStep {
    pub at_seconds: f64,
    pub by_seconds: f64,
}

/// The interval was changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct IntervalChange {
    pub at_seconds: f64,
    pub interval_seconds: f64,
}

/// A sensor stopped giving values, or came back.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Failure {
    pub at_seconds: f64,
    pub what: String,
}

/// Metrics that are absent for one reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct AbsentGroup {
    pub names: Vec<String>,
    pub why: Unavailable,
}

/// What a judgement means for what is advised and shown, however it is worded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// The data does not support a judgement.
    CannotTell,
    /// Nothing to do about it.
    Fine,
    /// Worth a look.
    Notable,
}

/// A judgement by one line of the table of criteria.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What it means.
    #[serde(skip)]
    pub grade: Grade,
    /// One of the words of the table, or `cannot tell`.
    pub word: String,
    /// The numbers or the reason behind it.
    pub because: String,
    /// The share that was judged.
    pub percent: Option<f64>,
    /// The events that it is a share of.
    pub events: Option<f64>,
}

/// Where memory was allocated.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Locality {
    pub verdict: Verdict,
    /// Sampled accesses, where NUMA balancing is on.
    pub accesses: Verdict,
    pub nodes: Vec<NodeLocality>,
}

/// Allocations on one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeLocality {
    /// The kernel's number.
    pub node: u32,
    /// How local they were.
    pub verdict: Verdict,
    /// By its own CPUs.
    pub local: Option<f64>,
    /// By CPUs of other nodes.
    pub remote: Option<f64>,
    /// Got memory here although they preferred another node.
    pub miss: Option<f64>,
    /// Preferred this node but got memory elsewhere.
    pub foreign: Option<f64>,
    /// Whether what preferred this node got memory elsewhere.
    #[serde(skip)]
    pub overflow: Verdict,
    /// What else the criteria found.
    pub signs: Vec<String>,
}

/// Who waits for far or crowded memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suffering {
    /// The worst first.
    pub sufferers: Vec<Sufferer>,
    /// Where nobody suffers, what came nearest to it.
    pub calm: Option<String>,
    /// Why nobody can tell, if so.
    pub unknown: Option<String>,
}

/// What slows a place down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// Its memory is on other nodes.
    Remote,
    /// Its memory is as busy as it can be.
    Memory,
    /// A link or a card between nodes is.
    Link,
}

/// A place with remote accesses, or with a link or memory that is nearly full.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sufferer {
    /// The place, in words.
    pub who: String,
    /// What kind of bottleneck it is.
    #[serde(skip)]
    pub bottleneck: Bottleneck,
    /// What it does.
    pub does: &'static str,
    /// The share, over all of the time.
    pub percent: f64,
    /// What it is a share of.
    pub of: &'static str,
    /// The highest share over at least 0.1 s.
    pub peak_percent: f64,
    /// When that was, since the start.
    pub peak_at_seconds: f64,
    /// Share of the time in which it was beyond the threshold.
    pub time_percent: f64,
    /// Where the longest time beyond the threshold began, since the start.
    pub since_seconds: f64,
    /// Where it ended; none: it lasted to the end.
    pub until_seconds: Option<f64>,
    /// How much that is, bytes per second.
    pub per_second: Option<f64>,
}

/// One phase: from its label to the next one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct PhaseReport {
    pub name: String,
    /// How often it began.
    pub times: u64,
    pub seconds: f64,
    pub samples: u64,
    pub locality: Locality,
    /// The node with the least local allocations, where that is worth a look.
    pub worst_node: Option<u32>,
    pub minor_faults_per_second: Option<f64>,
    pub major_faults_per_second: Option<f64>,
}

/// Page faults and huge pages.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Faults {
    pub minor_per_second: Option<f64>,
    pub major_per_second: Option<f64>,
    pub minor: Option<f64>,
    pub major: Option<f64>,
    /// Faults that got a huge page.
    pub huge: Option<f64>,
    /// Faults that got small pages instead.
    pub small: Option<f64>,
    pub huge_pages: Verdict,
    pub hint_per_second: Option<f64>,
    pub pages_moved_per_second: Option<f64>,
}

/// Free memory; of a node, or of the machine where nodes are not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct FreeMemory {
    pub node: Option<u32>,
    pub total_bytes: Option<f64>,
    pub begin_bytes: f64,
    pub end_bytes: f64,
    pub least_bytes: f64,
}

/// Shares of CPU time; of a node, or of the machine where nodes are not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Cpu {
    pub node: Option<u32>,
    pub user_percent: Option<f64>,
    pub system_percent: Option<f64>,
    pub idle_percent: Option<f64>,
}

/// Share of the time in which at least one thread waited.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Pressure {
    pub memory: Verdict,
    pub cpu_percent: Option<f64>,
    pub io_percent: Option<f64>,
}

/// A series that changed much.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mover {
    /// Its name.
    pub series: String,
    /// Powers of ten between its least and its most, after a floor was added to both.
    pub swing: f64,
    /// How it changed.
    #[serde(flatten)]
    pub change: SeriesChange,
    /// Other series that changed by the same at the same time.
    pub alike: Vec<String>,
}

/// How a series changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum SeriesChange {
    /// Per second.
    Rate { unit: &'static str, quiet: f64, peak: f64, peak_at_seconds: f64, active_percent: f64 },
    /// Bytes where the unit is bytes.
    Level { unit: &'static str, begin: f64, end: f64, least: f64, most: f64 },
}

/// What the recording itself cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Cost {
    pub cpu_seconds_per_sample: Option<f64>,
    /// Of one core.
    pub sampler_percent: Option<f64>,
    /// Of one core, with the writing of the file.
    pub process_percent: Option<f64>,
    pub wakeup_p50_seconds: Option<f64>,
    pub wakeup_p99_seconds: Option<f64>,
    pub wakeup_max_seconds: Option<f64>,
    pub took_p50_seconds: Option<f64>,
    pub took_p99_seconds: Option<f64>,
}

/// Something to try.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Advice {
    /// Name of the line in the table of advice.
    pub name: &'static str,
    /// What in this recording speaks for it.
    pub because: String,
    pub commands: Vec<String>,
}
