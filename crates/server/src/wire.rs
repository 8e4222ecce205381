//! Every message between page and server. `web/src/wire.ts` is generated from this file.
//!
//! Text is JSON, one message each; binary messages are frames (see `frame.rs`).

mod compared;
mod findings;
mod processes;

pub use compared::{ComparedInfo, ComparedRange, DifferenceInfo};
pub use findings::{EvidenceInfo, FindingInfo, RangeFindings, UntoldInfo};
pub use processes::{MemoryUnknown, ProcessInfo, ProcessList};

use crate::client_request_error::ClientRequestError;
use serde::{Deserialize, Deserializer, Serialize};
#[cfg(test)]
use ts_rs::TS;

/// Version of this protocol, which the name of the subprotocol contains.
pub const PROTOCOL: u32 = 1;
/// Name of the WebSocket's subprotocol.
pub const SUBPROTOCOL: &str = "numakit.1";

/// Maximum length of a client's message in bytes.
pub const MESSAGE_BYTES: usize = 256 * 1024;
/// Maximum number of series of one watch or fetch.
pub const SERIES: usize = 4096;
/// Maximum number of values of one answer: series times buckets.
pub const VALUES: usize = 2_000_000;
/// Maximum number of watches of one client.
pub const WATCHES: usize = 64;
/// Maximum number of viewers.
pub const VIEWERS: usize = 16;
/// Maximum number of controllers, in addition to the viewers.
pub const CONTROLLERS: usize = 8;
/// Maximum length of a label in bytes.
pub const LABEL_BYTES: usize = 4096;
/// Maximum size of an uploaded recording in bytes.
pub const RECORDING_BYTES: u64 = 1 << 30;
/// Maximum number of sources.
pub const SOURCES: usize = 8;

/// Nanoseconds since 1970. A page computes with floating-point numbers, so the server rounds
/// what it receives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(TS), ts(type = "number"))]
pub struct Ns(pub u64);

impl<'de> Deserialize<'de> for Ns {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(from)?;
        let float = || number.as_f64().filter(|f| f.is_finite()).map(|f| f.round() as u64);
        number
            .as_u64()
            .or_else(float)
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("not a time in nanoseconds"))
    }
}

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// View only.
    Viewer,
    /// View and send commands.
    Controller,
}

/// Where samples come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// This machine, now.
    Live,
    /// A file.
    Recording,
}

/// A metric and its instances.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct MetricInfo {
    /// `sensor.metric`.
    pub name: String,
    /// The sensor.
    pub sensor: String,
    /// Unit of the raw value. Values of counters are in this unit per second.
    pub unit: String,
    /// `counter`, `gauge` or `rate`.
    #[cfg_attr(test, ts(type = "\"counter\" | \"gauge\" | \"rate\""))]
    pub kind: String,
    /// What each value belongs to: the machine, a node, a CPU ...
    pub scope: String,
    /// One sentence.
    pub help: String,
    /// The file or interface it is read from.
    pub source: String,
    /// The shortest time over which a rate is meaningful.
    pub resolution_ns: u64,
    /// The maximum per second, if known. The page shows percentages of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "number"))]
    pub maximum: Option<u64>,
    /// `node0`, `cpu12`; empty for the machine.
    pub instances: Vec<String>,
}

/// A derived metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct FormulaInfo {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub help: String,
    /// Its base unit: `percent`, `bytes`, `bytes/s` ...
    pub unit: String,
    /// As in [`MetricInfo`].
    pub instances: Vec<String>,
}

/// A metric or sensor that is unavailable, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct AbsentInfo {
    /// `sensor` or `sensor.metric`.
    pub name: String,
    /// What is missing.
    pub missing: String,
    /// What was checked, and the result.
    pub seen: String,
    /// The fix.
    pub fix: String,
}

/// A source of samples. Its series are numbered in the order of the metrics and their instances,
/// followed by the formulas and theirs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct SourceInfo {
    /// Its number.
    pub id: u32,
    /// Where its samples come from.
    pub kind: SourceKind,
    /// Its display name.
    pub name: String,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// The observed command.
    pub command: Option<String>,
    /// The program that samples, with its version.
    pub program: String,
    /// Start time.
    pub started_ns: Ns,
    /// How many minutes the local time of the machine is ahead of UTC; `null`: unknown.
    pub utc_offset_minutes: Option<i32>,
    /// Time of the last row of a recording; `null` for live samples.
    pub ended_ns: Option<Ns>,
    /// How much of a recording was read so far, while it is not all; the source is sent again as it grows.
    pub read_percent: Option<u8>,
    /// Interval at the start; 0 if unknown.
    pub interval_ns: u64,
    /// Base page size in bytes.
    pub page_size: u64,
    /// The topology as JSON; `null` if unknown.
    #[cfg_attr(test, ts(type = "unknown"))]
    pub topology: serde_json::Value,
    /// The measured metrics.
    pub metrics: Vec<MetricInfo>,
    /// The derived metrics.
    pub formulas: Vec<FormulaInfo>,
    /// The unavailable metrics.
    pub absent: Vec<AbsentInfo>,
}

/// A recording that is being opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct OpeningInfo {
    /// Its display name.
    pub name: String,
    /// How much of it was read, in percent.
    pub percent: u8,
}

/// A running recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct RecordingState {
    /// The file on the server.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// The stored history of the first source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct HistoryState {
    /// Oldest row; 0 if there is none.
    pub from_ns: Ns,
    /// Newest row.
    pub to_ns: Ns,
    /// From this time on, every row is stored.
    pub full_from_ns: Ns,
    /// Memory used.
    pub bytes: u64,
    /// Memory limit.
    pub budget: u64,
}

/// Whether a sensor is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct SensorState {
    /// Its name, as used by the commands `enable` and `disable`.
    pub name: String,
    /// Whether it is read.
    pub on: bool,
}

/// The state of sampling, the same for all clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ObservationState {
    /// Current interval; 0 if nothing is sampled.
    pub interval_ns: u64,
    /// Whether sampling is paused.
    pub paused: bool,
    /// Whether sampling has ended for good: the page stays as long as somebody looks at it.
    pub ended: bool,
    /// The recording being written.
    pub recording: Option<RecordingState>,
    /// Samples taken.
    pub samples: u64,
    /// Missed ticks.
    pub lost: u64,
    /// Whether the sampler has real-time priority.
    pub realtime: bool,
    /// The sensors that are sampled.
    pub sensors: Vec<SensorState>,
    /// Number of connected clients.
    pub clients: u32,
    /// The stored history.
    pub history: HistoryState,
}

/// A text at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct WireLabel {
    /// Its number within the source.
    pub id: u64,
    /// Its time.
    pub time_ns: Ns,
    /// The text. Labels that start with `numakit:` were written by the recorder.
    pub text: String,
}

/// The limits for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ClientLimits {
    /// Maximum length of a message in bytes.
    pub message_bytes: u64,
    /// Maximum number of series of a watch or fetch.
    pub series: u32,
    /// Maximum number of values of one answer: series times buckets.
    pub values: u32,
    /// Maximum number of watches.
    pub watches: u32,
    /// Maximum number of viewers.
    pub clients: u32,
    /// Maximum length of a label in bytes.
    pub label_bytes: u32,
    /// Maximum size of an uploaded recording in bytes.
    pub recording_bytes: u64,
}

impl ClientLimits {
    /// The current limits.
    pub const ALL: Self = Self {
        message_bytes: MESSAGE_BYTES as u64,
        series: SERIES as u32,
        values: VALUES as u32,
        watches: WATCHES as u32,
        clients: VIEWERS as u32,
        label_bytes: LABEL_BYTES as u32,
        recording_bytes: RECORDING_BYTES,
    };
}

/// Server to page.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromServer {
    /// The first message.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// What this client may do.
        role: Role,
        /// Changes with every start of the server.
        instance: String,
        /// All sources.
        sources: Vec<SourceInfo>,
        /// The recordings that are being opened, in their order. Each becomes a source.
        opening: Vec<OpeningInfo>,
        /// The state of sampling.
        state: ObservationState,
        /// The limits.
        limits: ClientLimits,
    },
    /// On every change and once a second.
    State(ObservationState),
    /// Labels of a source: all, or new ones.
    Labels {
        /// The source.
        source: u32,
        /// The labels.
        labels: Vec<WireLabel>,
        /// Whether they replace all earlier ones.
        all: bool,
    },
    /// The answer to a message with this number.
    Reply {
        /// The number.
        id: u32,
        /// Whether it succeeded.
        ok: bool,
        /// The result or the error.
        text: String,
    },
    /// The answer to [`ToServer::Findings`] with this number.
    Findings {
        /// The number.
        id: u32,
        /// The source.
        source: u32,
        /// What was found.
        found: Box<RangeFindings>,
    },
    /// The answer to [`ToServer::Compare`] with this number.
    Compared {
        /// The number.
        id: u32,
        /// What differs.
        compared: Box<ComparedInfo>,
    },
    /// The processes, every two seconds after [`ToServer::Processes`].
    Processes {
        /// The processes.
        list: Box<ProcessList>,
    },
    /// A message for users.
    Notice {
        /// The text.
        text: String,
    },
    /// A new source, or one of which more was read: what was received of it before is outdated.
    Source {
        /// The source.
        source: Box<SourceInfo>,
    },
    /// The recordings that are still being opened: when one begins, advances by 1 % or is a source.
    Opening {
        /// All of them, in their order.
        opening: Vec<OpeningInfo>,
    },
    /// The last message.
    Bye {
        /// The reason.
        reason: String,
    },
}

impl FromServer {
    /// As text.
    pub fn text(&self) -> String {
        // No map has keys that are not text, so this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Page to server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToServer {
    /// Send these series in buckets of a fixed grid from a time on, including future ones.
    /// Replaces a watch with the same number.
    Watch {
        /// Number of the watch.
        id: u32,
        /// The source.
        source: u32,
        /// Its series.
        series: Vec<u32>,
        /// Length of a bucket: a multiple of 1 ms.
        step_ns: Ns,
        /// Start of the first bucket.
        from_ns: Ns,
        /// Whether the last bucket is sent before it is complete, and again as it grows.
        #[serde(default)]
        #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
        partial: bool,
    },
    /// End a watch.
    Unwatch {
        /// Number of the watch.
        id: u32,
    },
    /// Send a range once: as rows if there are at most `buckets`, otherwise as buckets.
    Fetch {
        /// Number of the answer.
        id: u32,
        /// The source.
        source: u32,
        /// Its series.
        series: Vec<u32>,
        /// Start.
        from_ns: Ns,
        /// End.
        to_ns: Ns,
        /// Maximum number of buckets.
        buckets: u32,
    },
    /// Judge a range: what is wrong in it, what it costs, and what to do.
    Findings {
        /// Number of the answer.
        id: u32,
        /// The source.
        source: u32,
        /// Start.
        from_ns: Ns,
        /// End.
        to_ns: Ns,
    },
    /// Compare two sources. If the range of the first one has all of it and both are recordings, they are compared as a whole.
    Compare {
        /// Number of the answer.
        id: u32,
        /// The source that is A.
        first: ComparedRange,
        /// The source that is B.
        second: ComparedRange,
    },
    /// Send the processes of the machine from now on, or no more.
    Processes {
        /// Number of the message.
        id: u32,
        /// Whether this client looks at them.
        on: bool,
    },
    /// A command as for `numa ctl`; controllers only.
    Order {
        /// Number of the reply.
        id: u32,
        /// The command.
        line: String,
    },
    /// Add a label; controllers only, like all that follow.
    Label {
        /// Number of the reply.
        id: u32,
        /// The source.
        source: u32,
        /// Its time. Without it: now, and an open recording gets the label too.
        #[serde(default)]
        #[cfg_attr(test, ts(optional))]
        time_ns: Option<Ns>,
        /// The text.
        text: String,
    },
    /// Change the text of a label.
    EditLabel {
        /// Number of the reply.
        id: u32,
        /// The source.
        source: u32,
        /// The label.
        label: u64,
        /// Its new text.
        text: String,
    },
    /// Remove a label.
    RemoveLabel {
        /// Number of the reply.
        id: u32,
        /// The source.
        source: u32,
        /// The label.
        label: u64,
    },
}

impl ToServer {
    /// Reads a message.
    pub fn parse(text: &[u8]) -> Result<Self, ClientRequestError> {
        if text.len() > MESSAGE_BYTES {
            return Err(ClientRequestError::Length(text.len()));
        }
        Ok(serde_json::from_slice(text)?)
    }
}

/// Body of `POST /session`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(TS))]
pub struct Login {
    /// The token in the address.
    pub token: String,
}

/// Answer to `POST /session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct LoggedIn {
    /// What the token allows.
    pub role: Role,
}

/// Content of a column of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Minimum of each bucket.
    Min,
    /// Maximum; like the mean, left out if it equals the minimum in all buckets.
    Max,
    /// Mean.
    Mean,
    /// The value of each row.
    Value,
    /// Nanoseconds after `from_ns` of each row.
    Time,
}

/// How a column is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// Nothing is stored: every value is `base`.
    Const,
    /// 8-bit integers.
    U8,
    /// 16-bit integers.
    U16,
    /// 32-bit integers.
    U32,
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
}

/// A column of a frame: value = base + scale * stored. The largest integer of a type and NaN mean
/// that nothing was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct FrameColumn {
    /// The series; 0 for times.
    pub series: u32,
    /// Its content.
    pub what: What,
    /// How it is stored.
    #[serde(rename = "type")]
    pub kind: ColumnType,
    /// `null`: nothing was measured.
    pub base: Option<f64>,
    /// Factor.
    pub scale: f64,
    /// Offset within the columns, a multiple of 8.
    pub at: u32,
}

/// What the rows of a frame are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// Buckets of `step_ns`.
    Grid,
    /// Samples.
    Raw,
}

/// The header of a frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct FrameHeader {
    /// Number of the watch or fetch.
    pub id: u32,
    /// The source.
    pub source: u32,
    /// Number of this frame for this client.
    pub seq: u64,
    /// Number of frames dropped so far because this client was too slow.
    pub dropped: u64,
    /// What the rows are.
    pub kind: FrameKind,
    /// For a watch: number of the first bucket; bucket `k` starts at `k * step_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub first: Option<u64>,
    /// For a fetch: start of the first bucket, or the time that row times are relative to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub from_ns: Option<Ns>,
    /// Length of a bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub step_ns: Option<Ns>,
    /// Rows of each column.
    pub rows: u32,
    /// The columns.
    pub columns: Vec<FrameColumn>,
}

#[cfg(test)]
mod tests;
