// Generated from crates/server/src/wire.rs; do not edit. To update it:
// UPDATE=1 cargo test -p numakit-server wire

import type { ComparedInfo, ComparedRange } from "./wire-compared";
import type { RangeFindings } from "./wire-findings";
import type { ProcessList } from "./wire-processes";

/**
 * Nanoseconds since 1970. A page computes with floating-point numbers, so the server rounds
 * what it receives.
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
 * A metric and its instances.
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
 * Unit of the raw value. Values of counters are in this unit per second.
 */
unit: string, 
/**
 * `counter`, `gauge` or `rate`.
 */
kind: "counter" | "gauge" | "rate", 
/**
 * What each value belongs to: the machine, a node, a CPU ...
 */
scope: string, 
/**
 * One sentence.
 */
help: string, 
/**
 * The file or interface it is read from.
 */
source: string, 
/**
 * The shortest time over which a rate is meaningful.
 */
resolution_ns: number, 
/**
 * The maximum per second, if known. The page shows percentages of it.
 */
maximum?: number, 
/**
 * `node0`, `cpu12`; empty for the machine.
 */
instances: Array<string>, };

/**
 * A derived metric.
 */
export type FormulaInfo = { 
/**
 * Its name.
 */
name: string, 
/**
 * One sentence.
 */
help: string, 
/**
 * Its base unit: `percent`, `bytes`, `bytes/s` ...
 */
unit: string, 
/**
 * As in [`MetricInfo`].
 */
instances: Array<string>, };

/**
 * A metric or sensor that is unavailable, and why.
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
 * What was checked, and the result.
 */
seen: string, 
/**
 * The fix.
 */
fix: string, };

/**
 * A source of samples. Its series are numbered in the order of the metrics and their instances,
 * followed by the formulas and theirs.
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
 * Its display name.
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
 * The observed command.
 */
command: string | null, 
/**
 * The program that samples, with its version.
 */
program: string, 
/**
 * Start time.
 */
started_ns: Ns, 
/**
 * How many minutes the local time of the machine is ahead of UTC; `null`: unknown.
 */
utc_offset_minutes: number | null, 
/**
 * Time of the last row of a recording; `null` for live samples.
 */
ended_ns: Ns | null, 
/**
 * How much of a recording was read so far, while it is not all; the source is sent again as it grows.
 */
read_percent: number | null, 
/**
 * Interval at the start; 0 if unknown.
 */
interval_ns: number, 
/**
 * Base page size in bytes.
 */
page_size: number, 
/**
 * The topology as JSON; `null` if unknown.
 */
topology: unknown, 
/**
 * The measured metrics.
 */
metrics: Array<MetricInfo>, 
/**
 * The derived metrics.
 */
formulas: Array<FormulaInfo>, 
/**
 * The unavailable metrics.
 */
absent: Array<AbsentInfo>, };

/**
 * A recording that is being opened.
 */
export type OpeningInfo = { 
/**
 * Its display name.
 */
name: string, 
/**
 * How much of it was read, in percent.
 */
percent: number, };

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
 * The stored history of the first source.
 */
export type HistoryState = { 
/**
 * Oldest row; 0 if there is none.
 */
from_ns: Ns, 
/**
 * Newest row.
 */
to_ns: Ns, 
/**
 * From this time on, every row is stored.
 */
full_from_ns: Ns, 
/**
 * Memory used.
 */
bytes: number, 
/**
 * Memory limit.
 */
budget: number, };

/**
 * Whether a sensor is read.
 */
export type SensorState = { 
/**
 * Its name, as used by the commands `enable` and `disable`.
 */
name: string, 
/**
 * Whether it is read.
 */
on: boolean, };

/**
 * The state of sampling, the same for all clients.
 */
export type ObservationState = { 
/**
 * Current interval; 0 if nothing is sampled.
 */
interval_ns: number, 
/**
 * Whether sampling is paused.
 */
paused: boolean, 
/**
 * Whether sampling has ended for good: the page stays as long as somebody looks at it.
 */
ended: boolean, 
/**
 * The recording being written.
 */
recording: RecordingState | null, 
/**
 * Samples taken.
 */
samples: number, 
/**
 * Missed ticks.
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
 * Number of connected clients.
 */
clients: number, 
/**
 * The stored history.
 */
history: HistoryState, };

/**
 * A text at a time.
 */
export type WireLabel = { 
/**
 * Its number within the source.
 */
id: number, 
/**
 * Its time.
 */
time_ns: Ns, 
/**
 * The text. Labels that start with `numakit:` were written by the recorder.
 */
text: string, };

/**
 * The limits for clients.
 */
export type ClientLimits = { 
/**
 * Maximum length of a message in bytes.
 */
message_bytes: number, 
/**
 * Maximum number of series of a watch or fetch.
 */
series: number, 
/**
 * Maximum number of values of one answer: series times buckets.
 */
values: number, 
/**
 * Maximum number of watches.
 */
watches: number, 
/**
 * Maximum number of viewers.
 */
clients: number, 
/**
 * Maximum length of a label in bytes.
 */
label_bytes: number, 
/**
 * Maximum size of an uploaded recording in bytes.
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
 * All sources.
 */
sources: Array<SourceInfo>, 
/**
 * The recordings that are being opened, in their order. Each becomes a source.
 */
opening: Array<OpeningInfo>, 
/**
 * The state of sampling.
 */
state: ObservationState, 
/**
 * The limits.
 */
limits: ClientLimits, } | { "type": "state" } & ObservationState | { "type": "labels", 
/**
 * The source.
 */
source: number, 
/**
 * The labels.
 */
labels: Array<WireLabel>, 
/**
 * Whether they replace all earlier ones.
 */
all: boolean, } | { "type": "reply", 
/**
 * The number.
 */
id: number, 
/**
 * Whether it succeeded.
 */
ok: boolean, 
/**
 * The result or the error.
 */
text: string, } | { "type": "findings", 
/**
 * The number.
 */
id: number, 
/**
 * The source.
 */
source: number, 
/**
 * What was found.
 */
found: RangeFindings, } | { "type": "compared", 
/**
 * The number.
 */
id: number, 
/**
 * What differs.
 */
compared: ComparedInfo, } | { "type": "processes", 
/**
 * The processes.
 */
list: ProcessList, } | { "type": "notice", 
/**
 * The text.
 */
text: string, } | { "type": "source", 
/**
 * The source.
 */
source: SourceInfo, } | { "type": "opening", 
/**
 * All of them, in their order.
 */
opening: Array<OpeningInfo>, } | { "type": "bye", 
/**
 * The reason.
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
 * Length of a bucket: a multiple of 1 ms.
 */
step_ns: Ns, 
/**
 * Start of the first bucket.
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
 * Start.
 */
from_ns: Ns, 
/**
 * End.
 */
to_ns: Ns, 
/**
 * Maximum number of buckets.
 */
buckets: number, } | { "type": "findings", 
/**
 * Number of the answer.
 */
id: number, 
/**
 * The source.
 */
source: number, 
/**
 * Start.
 */
from_ns: Ns, 
/**
 * End.
 */
to_ns: Ns, } | { "type": "compare", 
/**
 * Number of the answer.
 */
id: number, 
/**
 * The source that is A.
 */
first: ComparedRange, 
/**
 * The source that is B.
 */
second: ComparedRange, } | { "type": "processes", 
/**
 * Number of the message.
 */
id: number, 
/**
 * Whether this client looks at them.
 */
on: boolean, } | { "type": "order", 
/**
 * Number of the reply.
 */
id: number, 
/**
 * The command.
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
 * Its time. Without it: now, and an open recording gets the label too.
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
 * The token in the address.
 */
token: string, };

/**
 * Answer to `POST /session`.
 */
export type LoggedIn = { 
/**
 * What the token allows.
 */
role: Role, };

/**
 * Content of a column of a frame.
 */
export type What = "min" | "max" | "mean" | "value" | "time";

/**
 * How a column is stored.
 */
export type ColumnType = "const" | "u8" | "u16" | "u32" | "f32" | "f64";

/**
 * A column of a frame: value = base + scale * stored. The largest integer of a type and NaN mean
 * that nothing was measured.
 */
export type FrameColumn = { 
/**
 * The series; 0 for times.
 */
series: number, 
/**
 * Its content.
 */
what: What, 
/**
 * How it is stored.
 */
type: ColumnType, 
/**
 * `null`: nothing was measured.
 */
base: number | null, 
/**
 * Factor.
 */
scale: number, 
/**
 * Offset within the columns, a multiple of 8.
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
 * Number of this frame for this client.
 */
seq: number, 
/**
 * Number of frames dropped so far because this client was too slow.
 */
dropped: number, 
/**
 * What the rows are.
 */
kind: FrameKind, 
/**
 * For a watch: number of the first bucket; bucket `k` starts at `k * step_ns`.
 */
first?: number, 
/**
 * For a fetch: start of the first bucket, or the time that row times are relative to.
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
 * A stretch of time with samples.
 */
export type Stretch = { 
/**
 * Time of its first row, or start of its first bucket.
 */
from_ns: Ns, 
/**
 * Its end: just after the last row, or the end of the last bucket.
 */
to_ns: Ns, 
/**
 * Number of rows or buckets.
 */
rows: number, };

/**
 * A recording in a standalone file. Its blocks are consecutive: for each stretch of time a block
 * with the times of its rows, if every row is kept, and a frame for each group of series.
 */
export type Contained = { 
/**
 * The source, as a server describes it.
 */
info: SourceInfo, 
/**
 * Its labels.
 */
labels: Array<WireLabel>, 
/**
 * What is found in all of it.
 */
found: RangeFindings, 
/**
 * Time of its first row.
 */
from_ns: Ns, 
/**
 * Time of its last row.
 */
to_ns: Ns, 
/**
 * Length of a bucket; 0 if every row is kept.
 */
step_ns: Ns, 
/**
 * Number of series per frame.
 */
group: number, 
/**
 * Number of its first block.
 */
block: number, 
/**
 * In ascending order.
 */
stretches: Array<Stretch>, };

/**
 * Two recordings of a standalone file compared.
 */
export type ContainedComparison = { 
/**
 * The number of A.
 */
first: number, 
/**
 * The number of B.
 */
second: number, 
/**
 * What differs.
 */
compared: ComparedInfo, };

/**
 * The content of a standalone file.
 */
export type Contents = { 
/**
 * Version of this format.
 */
format: number, 
/**
 * The recordings. Their index is their number.
 */
sources: Array<Contained>, 
/**
 * Each pair of them compared.
 */
comparisons: Array<ContainedComparison>, };
