//! Every message between page and server. `web/src/wire.ts` is made from this file.
//!
//! Text is JSON, one message each; binary messages are frames (see [`crate::frame`]).

use crate::asked::AskError;
use serde::{Deserialize, Deserializer, Serialize};
#[cfg(test)]
use ts_rs::TS;

/// Version of what is described here. The subprotocol is called after it.
pub const PROTOCOL: u32 = 1;
/// Name of the WebSocket's subprotocol.
pub const SUBPROTOCOL: &str = "numakit.1";

/// Longest message of a client in bytes.
pub const MESSAGE_BYTES: usize = 256 * 1024;
/// Most series of one watch or fetch.
pub const SERIES: usize = 4096;
/// Most values of one answer: series times buckets.
pub const VALUES: usize = 2_000_000;
/// Most watches of one client.
pub const WATCHES: usize = 64;
/// Most viewers at once.
pub const VIEWERS: usize = 16;
/// Most clients with control, beside them.
pub const CONTROLLERS: usize = 8;
/// Longest label in bytes.
pub const LABEL_BYTES: usize = 4096;
/// Largest recording that may be sent.
pub const RECORDING_BYTES: u64 = 1 << 30;
/// Most sources at once.
pub const SOURCES: usize = 8;

/// Nanoseconds since 1970. A page computes with floating-point numbers; what it sends is taken
/// as the nearest whole number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(TS), ts(type = "number"))]
pub struct Ns(pub u64);

impl<'de> Deserialize<'de> for Ns {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(from)?;
        let float = || number.as_f64().filter(|f| f.is_finite()).map(|f| f.round() as u64);
        number.as_u64().or_else(float).map(Self).ok_or_else(|| serde::de::Error::custom("no time"))
    }
}

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Viewer,
    /// Look and give orders.
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

/// A metric and the places that it is measured at.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct MetricInfo {
    /// `sensor.metric`.
    pub name: String,
    /// The sensor.
    pub sensor: String,
    /// Unit of the raw value; of a counter, values are in this unit per second.
    pub unit: String,
    /// `counter`, `gauge` or `rate`.
    #[cfg_attr(test, ts(type = "\"counter\" | \"gauge\" | \"rate\""))]
    pub kind: String,
    /// What there is one value of.
    pub scope: String,
    /// One sentence.
    pub help: String,
    /// The file or interface that it is read from.
    pub source: String,
    /// The shortest time over which a rate means something.
    pub resolution_ns: u64,
    /// The most that it can be per second: what it is shown as a percentage of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "number"))]
    pub maximum: Option<u64>,
    /// `node0`, `cpu12`; empty for the machine.
    pub instances: Vec<String>,
}

/// A figure that is computed from metrics.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct FormulaInfo {
    /// Its name.
    pub name: String,
    /// What it tells.
    pub help: String,
    /// What it gives, in base units: `percent`, `bytes`, `bytes/s` ...
    pub unit: String,
    /// As in [`MetricInfo`].
    pub instances: Vec<String>,
}

/// What could not be measured, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct AbsentInfo {
    /// `sensor` or `sensor.metric`.
    pub name: String,
    /// What is missing.
    pub missing: String,
    /// What was looked at and what it said.
    pub seen: String,
    /// What would make it available.
    pub fix: String,
}

/// A source. Its series are numbered by running through the metrics and their instances in
/// order, then through the formulas and theirs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct SourceInfo {
    /// Its number.
    pub id: u32,
    /// Where its samples come from.
    pub kind: SourceKind,
    /// What people call it.
    pub name: String,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// The command under observation.
    pub command: Option<String>,
    /// The program that samples, with its version.
    pub program: String,
    /// Start.
    pub started_ns: Ns,
    /// The last row of a recording; `null` while samples come in.
    pub ended_ns: Option<Ns>,
    /// Interval at the start; 0 where not known.
    pub interval_ns: u64,
    /// Base page size in bytes.
    pub page_size: u64,
    /// The machine as JSON, `null` where it is not known.
    #[cfg_attr(test, ts(type = "unknown"))]
    pub topology: serde_json::Value,
    /// What is measured.
    pub metrics: Vec<MetricInfo>,
    /// What is computed.
    pub formulas: Vec<FormulaInfo>,
    /// What is not there.
    pub absent: Vec<AbsentInfo>,
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

/// What is kept of the first source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct HistoryState {
    /// Oldest row; 0 where there is none.
    pub from_ns: Ns,
    /// Latest row.
    pub to_ns: Ns,
    /// From here on every row is at hand.
    pub full_from_ns: Ns,
    /// Memory in use.
    pub bytes: u64,
    /// Memory that it may use.
    pub budget: u64,
}

/// Whether a sensor is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct SensorState {
    /// Its name; the orders `enable` and `disable` take it.
    pub name: String,
    /// Whether it is read.
    pub on: bool,
}

/// How the observation goes: one state for all clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct State {
    /// Present interval; 0 where nothing is sampled.
    pub interval_ns: u64,
    /// Whether sampling is paused.
    pub paused: bool,
    /// The recording that is written.
    pub recording: Option<RecordingState>,
    /// Samples taken.
    pub samples: u64,
    /// Ticks that were missed.
    pub lost: u64,
    /// Whether the sampler has real-time priority.
    pub realtime: bool,
    /// The sensors that are sampled.
    pub sensors: Vec<SensorState>,
    /// Clients that are connected.
    pub clients: u32,
    /// What is kept.
    pub history: HistoryState,
}

/// Text at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct Label {
    /// Its number within the source.
    pub id: u64,
    /// When.
    pub time_ns: Ns,
    /// The text; what starts with `numakit:` the recorder noted.
    pub text: String,
}

/// What a client may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct Limits {
    /// Longest message in bytes.
    pub message_bytes: u64,
    /// Most series of a watch or fetch.
    pub series: u32,
    /// Most values of one answer: series times buckets.
    pub values: u32,
    /// Most watches at once.
    pub watches: u32,
    /// Most viewers; places for control are apart.
    pub clients: u32,
    /// Longest label in bytes.
    pub label_bytes: u32,
    /// Largest recording that may be sent.
    pub recording_bytes: u64,
}

impl Limits {
    /// Those in force.
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
        /// Everything to look at.
        sources: Vec<SourceInfo>,
        /// How it goes.
        state: State,
        /// What may be asked for.
        limits: Limits,
    },
    /// On every change and once a second.
    State(State),
    /// Labels of a source: all there are, or new ones.
    Labels {
        /// The source.
        source: u32,
        /// The labels.
        labels: Vec<Label>,
        /// Whether those before are forgotten.
        all: bool,
    },
    /// The answer to what had this number.
    Reply {
        /// That number.
        id: u32,
        /// Whether it was done.
        ok: bool,
        /// What there is to say.
        text: String,
    },
    /// Something that everybody should know.
    Notice {
        /// What.
        text: String,
    },
    /// A new source.
    Source {
        /// That source.
        source: Box<SourceInfo>,
    },
    /// The last message.
    Bye {
        /// Why.
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
    /// Send these series in buckets of a fixed grid from there on, and new ones as they come.
    /// A watch of the same number is replaced.
    Watch {
        /// Number of the watch.
        id: u32,
        /// The source.
        source: u32,
        /// Its series.
        series: Vec<u32>,
        /// Length of a bucket: whole milliseconds.
        step_ns: Ns,
        /// Begin of the first bucket.
        from_ns: Ns,
        /// Whether the last bucket is sent before it is complete, and again as it grows.
        #[serde(default)]
        #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
        partial: bool,
    },
    /// Send no more.
    Unwatch {
        /// Number of the watch.
        id: u32,
    },
    /// Send a range once: every row where these are no more than `buckets`.
    Fetch {
        /// Number of the answer.
        id: u32,
        /// The source.
        source: u32,
        /// Its series.
        series: Vec<u32>,
        /// Begin.
        from_ns: Ns,
        /// End.
        to_ns: Ns,
        /// Most buckets.
        buckets: u32,
    },
    /// An order as `numa ctl` takes it; controllers only.
    Order {
        /// Number of the reply.
        id: u32,
        /// The order.
        line: String,
    },
    /// Note a text; controllers only, as what follows.
    Label {
        /// Number of the reply.
        id: u32,
        /// The source.
        source: u32,
        /// When; left out: now, and a running recording gets it too.
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
    pub fn parse(text: &[u8]) -> Result<Self, AskError> {
        if text.len() > MESSAGE_BYTES {
            return Err(AskError::Length(text.len()));
        }
        Ok(serde_json::from_slice(text)?)
    }
}

/// Body of `POST /session`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(TS))]
pub struct Login {
    /// The token of the address.
    pub token: String,
}

/// Answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct LoggedIn {
    /// What the token allows.
    pub role: Role,
}

/// What a column of a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Least value of each bucket.
    Min,
    /// Greatest; left out, with the mean, where it equals the least everywhere.
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
    /// Not at all: every value is `base`.
    Const,
    /// Integers of a byte.
    U8,
    /// Of two.
    U16,
    /// Of four.
    U32,
    /// Floating point.
    F32,
    /// The same, twice as long.
    F64,
}

/// A column of a frame: value = base + scale * stored. The greatest integer of a type, and NaN,
/// stand for nothing measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct FrameColumn {
    /// The series; 0 for times.
    pub series: u32,
    /// What of it.
    pub what: What,
    /// How it is stored.
    #[serde(rename = "type")]
    pub kind: ColumnType,
    /// `null`: nothing was measured at all.
    pub base: Option<f64>,
    /// Factor.
    pub scale: f64,
    /// Where it begins in the part of the columns: a multiple of 8.
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
    /// Counts the frames made for this client.
    pub seq: u64,
    /// Frames that this client lost so far because it was too slow.
    pub dropped: u64,
    /// What the rows are.
    pub kind: FrameKind,
    /// Of a watch: number of the first bucket; bucket `k` begins at `k * step_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub first: Option<u64>,
    /// Of a fetch: begin of the first bucket, or what times count from.
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
