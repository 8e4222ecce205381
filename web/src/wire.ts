// Made from crates/server/src/wire.rs; do not edit. To make it again:
// UPDATE=1 cargo test -p numakit-server wire

/**
 * Nanoseconds since 1970. A page computes with floating-point numbers; what it sends is taken
 * as the nearest whole number.
 */
export type Ns = number;

/**
 * What a client may do.
 */
export type Role = "viewer" | "controller";

/**
 * Where samples come from.
 */
export type SourceKind = "live" | "recording";

/**
 * A metric and the places that it is measured at.
 */
export type MetricInfo = { 
/**
 * `sensor.metric`.
 */
name: string, 
/**
 * The sensor.
 */
sensor: string, 
/**
 * Unit of the raw value; of a counter, values are in this unit per second.
 */
unit: string, 
/**
 * `counter`, `gauge` or `rate`.
 */
kind: "counter" | "gauge" | "rate", 
/**
 * What there is one value of.
 */
scope: string, 
/**
 * One sentence.
 */
help: string, 
/**
 * The file or interface that it is read from.
 */
source: string, 
/**
 * The shortest time over which a rate means something.
 */
resolution_ns: number, 
/**
 * The most that it can be per second: what it is shown as a percentage of.
 */
maximum?: number, 
/**
 * `node0`, `cpu12`; empty for the machine.
 */
instances: Array<string>, };

/**
 * A figure that is computed from metrics.
 */
export type FormulaInfo = { 
/**
 * Its name.
 */
name: string, 
/**
 * What it tells.
 */
help: string, 
/**
 * What it gives, in base units: `percent`, `bytes`, `bytes/s` ...
 */
unit: string, 
/**
 * As in [`MetricInfo`].
 */
instances: Array<string>, };

/**
 * What could not be measured, and why.
 */
export type AbsentInfo = { 
/**
 * `sensor` or `sensor.metric`.
 */
name: string, 
/**
 * What is missing.
 */
missing: string, 
/**
 * What was looked at and what it said.
 */
seen: string, 
/**
 * What would make it available.
 */
fix: string, };

/**
 * A source. Its series are numbered by running through the metrics and their instances in
 * order, then through the formulas and theirs.
 */
export type SourceInfo = { 
/**
 * Its number.
 */
id: number, 
/**
 * Where its samples come from.
 */
kind: SourceKind, 
/**
 * What people call it.
 */
name: string, 
/**
 * Host name.
 */
host: string, 
/**
 * Kernel release.
 */
kernel: string, 
/**
 * The command under observation.
 */
command: string | null, 
/**
 * The program that samples, with its version.
 */
program: string, 
/**
 * Start.
 */
started_ns: Ns, 
/**
 * The last row of a recording; `null` while samples come in.
 */
ended_ns: Ns | null, 
/**
 * Interval at the start; 0 where not known.
 */
interval_ns: number, 
/**
 * Base page size in bytes.
 */
page_size: number, 
/**
 * The machine as JSON, `null` where it is not known.
 */
topology: unknown, 
/**
 * What is measured.
 */
metrics: Array<MetricInfo>, 
/**
 * What is computed.
 */
formulas: Array<FormulaInfo>, 
/**
 * What is not there.
 */
absent: Array<AbsentInfo>, };

/**
 * A running recording.
 */
export type RecordingState = { 
/**
 * The file on the server.
 */
path: string, 
/**
 * Its size.
 */
bytes: number, };

/**
 * What is kept of the first source.
 */
export type HistoryState = { 
/**
 * Oldest row; 0 where there is none.
 */
from_ns: Ns, 
/**
 * Latest row.
 */
to_ns: Ns, 
/**
 * From here on every row is at hand.
 */
full_from_ns: Ns, 
/**
 * Memory in use.
 */
bytes: number, 
/**
 * Memory that it may use.
 */
budget: number, };

/**
 * Whether a sensor is read.
 */
export type SensorState = { 
/**
 * Its name; the orders `enable` and `disable` take it.
 */
name: string, 
/**
 * Whether it is read.
 */
on: boolean, };

/**
 * How the observation goes: one state for all clients.
 */
export type State = { 
/**
 * Present interval; 0 where nothing is sampled.
 */
interval_ns: number, 
/**
 * Whether sampling is paused.
 */
paused: boolean, 
/**
 * The recording that is written.
 */
recording: RecordingState | null, 
/**
 * Samples taken.
 */
samples: number, 
/**
 * Ticks that were missed.
 */
lost: number, 
/**
 * Whether the sampler has real-time priority.
 */
realtime: boolean, 
/**
 * The sensors that are sampled.
 */
sensors: Array<SensorState>, 
/**
 * Clients that are connected.
 */
clients: number, 
/**
 * What is kept.
 */
history: HistoryState, };

/**
 * Text at a time.
 */
export type Label = { 
/**
 * Its number within the source.
 */
id: number, 
/**
 * When.
 */
time_ns: Ns, 
/**
 * The text; what starts with `numakit:` the recorder noted.
 */
text: string, };

/**
 * What a client may ask for.
 */
export type Limits = { 
/**
 * Longest message in bytes.
 */
message_bytes: number, 
/**
 * Most series of a watch or fetch.
 */
series: number, 
/**
 * Most values of one answer: series times buckets.
 */
values: number, 
/**
 * Most watches at once.
 */
watches: number, 
/**
 * Most viewers; places for control are apart.
 */
clients: number, 
/**
 * Longest label in bytes.
 */
label_bytes: number, 
/**
 * Largest recording that may be sent.
 */
recording_bytes: number, };

/**
 * Server to page.
 */
export type FromServer = { "type": "hello", 
/**
 * [`PROTOCOL`].
 */
protocol: number, 
/**
 * What this client may do.
 */
role: Role, 
/**
 * Changes with every start of the server.
 */
instance: string, 
/**
 * Everything to look at.
 */
sources: Array<SourceInfo>, 
/**
 * How it goes.
 */
state: State, 
/**
 * What may be asked for.
 */
limits: Limits, } | { "type": "state" } & State | { "type": "labels", 
/**
 * The source.
 */
source: number, 
/**
 * The labels.
 */
labels: Array<Label>, 
/**
 * Whether those before are forgotten.
 */
all: boolean, } | { "type": "reply", 
/**
 * That number.
 */
id: number, 
/**
 * Whether it was done.
 */
ok: boolean, 
/**
 * What there is to say.
 */
text: string, } | { "type": "notice", 
/**
 * What.
 */
text: string, } | { "type": "source", 
/**
 * That source.
 */
source: SourceInfo, } | { "type": "bye", 
/**
 * Why.
 */
reason: string, };

/**
 * Page to server.
 */
export type ToServer = { "type": "watch", 
/**
 * Number of the watch.
 */
id: number, 
/**
 * The source.
 */
source: number, 
/**
 * Its series.
 */
series: Array<number>, 
/**
 * Length of a bucket: whole milliseconds.
 */
step_ns: Ns, 
/**
 * Begin of the first bucket.
 */
from_ns: Ns, 
/**
 * Whether the last bucket is sent before it is complete, and again as it grows.
 */
partial?: boolean, } | { "type": "unwatch", 
/**
 * Number of the watch.
 */
id: number, } | { "type": "fetch", 
/**
 * Number of the answer.
 */
id: number, 
/**
 * The source.
 */
source: number, 
/**
 * Its series.
 */
series: Array<number>, 
/**
 * Begin.
 */
from_ns: Ns, 
/**
 * End.
 */
to_ns: Ns, 
/**
 * Most buckets.
 */
buckets: number, } | { "type": "order", 
/**
 * Number of the reply.
 */
id: number, 
/**
 * The order.
 */
line: string, } | { "type": "label", 
/**
 * Number of the reply.
 */
id: number, 
/**
 * The source.
 */
source: number, 
/**
 * When; left out: now, and a running recording gets it too.
 */
time_ns?: Ns, 
/**
 * The text.
 */
text: string, } | { "type": "edit_label", 
/**
 * Number of the reply.
 */
id: number, 
/**
 * The source.
 */
source: number, 
/**
 * The label.
 */
label: number, 
/**
 * Its new text.
 */
text: string, } | { "type": "remove_label", 
/**
 * Number of the reply.
 */
id: number, 
/**
 * The source.
 */
source: number, 
/**
 * The label.
 */
label: number, };

/**
 * Body of `POST /session`.
 */
export type Login = { 
/**
 * The token of the address.
 */
token: string, };

/**
 * Answer to it.
 */
export type LoggedIn = { 
/**
 * What the token allows.
 */
role: Role, };

/**
 * What a column of a frame holds.
 */
export type What = "min" | "max" | "mean" | "value" | "time";

/**
 * How a column is stored.
 */
export type ColumnType = "const" | "u8" | "u16" | "u32" | "f32" | "f64";

/**
 * A column of a frame: value = base + scale * stored. The greatest integer of a type, and NaN,
 * stand for nothing measured.
 */
export type FrameColumn = { 
/**
 * The series; 0 for times.
 */
series: number, 
/**
 * What of it.
 */
what: What, 
/**
 * How it is stored.
 */
type: ColumnType, 
/**
 * `null`: nothing was measured at all.
 */
base: number | null, 
/**
 * Factor.
 */
scale: number, 
/**
 * Where it begins in the part of the columns: a multiple of 8.
 */
at: number, };

/**
 * What the rows of a frame are.
 */
export type FrameKind = "grid" | "raw";

/**
 * The header of a frame.
 */
export type FrameHeader = { 
/**
 * Number of the watch or fetch.
 */
id: number, 
/**
 * The source.
 */
source: number, 
/**
 * Counts the frames made for this client.
 */
seq: number, 
/**
 * Frames that this client lost so far because it was too slow.
 */
dropped: number, 
/**
 * What the rows are.
 */
kind: FrameKind, 
/**
 * Of a watch: number of the first bucket; bucket `k` begins at `k * step_ns`.
 */
first?: number, 
/**
 * Of a fetch: begin of the first bucket, or what times count from.
 */
from_ns?: Ns, 
/**
 * Length of a bucket.
 */
step_ns?: Ns, 
/**
 * Rows of each column.
 */
rows: number, 
/**
 * The columns.
 */
columns: Array<FrameColumn>, };

/**
 * A stretch of time: its first row, or the begin of its first bucket, and the end of it.
 */
export type Stretch = { 
/**
 * Begin.
 */
from_ns: Ns, 
/**
 * What comes after its last row or bucket.
 */
to_ns: Ns, 
/**
 * Rows or buckets.
 */
rows: number, };

/**
 * A recording in a standalone file. Its blocks follow each other: for each stretch of time
 * the times of its rows, where every row is kept, and a frame for each group of series.
 */
export type Contained = { 
/**
 * As a server tells it.
 */
info: SourceInfo, 
/**
 * Its labels.
 */
labels: Array<Label>, 
/**
 * Its first row.
 */
from_ns: Ns, 
/**
 * Its last.
 */
to_ns: Ns, 
/**
 * Length of a bucket; 0 where every row is kept.
 */
step_ns: Ns, 
/**
 * Series of a frame.
 */
group: number, 
/**
 * Its first block.
 */
block: number, 
/**
 * Rising.
 */
stretches: Array<Stretch>, };

/**
 * Everything that a standalone file holds.
 */
export type Contents = { 
/**
 * Version of this format.
 */
format: number, 
/**
 * The recordings, numbered by their places.
 */
sources: Array<Contained>, };
