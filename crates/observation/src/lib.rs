//! A running observation: the program, which is started or attached to; the sampler and its recording, or the samples of the
//! program's instructions; and the control commands that it receives. `record`, `live`, `top`, `stat`, `explain` and
//! `file spread --by-use` differ in what they ask it to collect: a [`request`] for series, or [`samples`].
//!
//! # Threads of a running `numa record`
//!
//! | thread | does | never |
//! |---|---|---|
//! | main | waits for signals, control commands and the end of the observed command | reads a sensor |
//! | `sampler` | sleeps until the next tick, reads the sensors, writes the row into each ring buffer | allocates, locks, or writes to a file by a system call |
//! | `reader-N` | only with counters of several packages: one thread on each package reads its counters for the sampler | does anything else |
//! | `task-walker` | only with observed processes: reads their memory and threads, puts the values into atomics, and sleeps at least 19 times as long as it worked (after its first walk) | makes the sampler wait |
//! | `access-observer` | only with observed processes: takes samples of instructions by their method every 5 ms, finds what they waited for, and puts sums into atomics every 50 ms, at most for a twentieth of the time; looks at fewer samples if that takes more than a tenth of a CPU | makes the sampler or the program wait |
//! | `writer` | takes rows from the ring buffer, encodes and compresses batches, appends them to the file | makes the sampler wait |
//!
//! Only the sampler calls sensors; while the `reader-N` threads read for it, it waits. It sleeps until an
//! absolute time, so ticks do not drift. A control command ends the sleep early (decision 2). The sampler and the walker go to
//! other CPUs than those on which observed threads run, while there are some. If the writer falls behind and the ring buffer is
//! full, the sampler drops rows and counts them, and a label in the recording says how many.
//!
//! `numa show` decodes batches in a thread `decoder`, two ahead of the thread that tallies them column by column; most
//! columns have one value in a whole batch. `numa mcp` has one thread for the protocol, and one more for each question
//! that is being answered.
//!
//! `numa stat` has a thread `printer` with a ring buffer of its own. `numa live` has two more threads, which
//! run on the sampler's CPUs: `ingest` takes rows from a ring buffer, computes rates and derived metrics,
//! and appends them to the history; `server` answers all clients. While a client looks at the list of processes, a
//! thread `processes` measures them every two seconds, with pauses of nine times the time it takes. A client that reads too
//! slowly loses frames, which are counted, and delays nobody.

pub mod client;
pub mod control_command;
mod endpoint;
mod folder;
pub mod interval;
mod lines;
pub mod names;
mod node_names;
mod recording;
pub mod request;
pub mod run_directory;
mod sampled_program;
pub mod samples;
mod session;
pub mod setup;
mod stopping;

pub use control_command::{ControlCommand, ParseCommandError};
pub use endpoint::Endpoint;
pub use folder::{Folder, FolderError};
pub use interval::IntervalError;
pub use lines::LineBuffer;
pub use names::RecordingNames;
pub use session::{
    ClosedRecording, ControlError, Ended, ObservationStatus, Reply, Session, SessionError, SessionHandle,
};
