//! One running observation: the sampler, the recording it fills, the command under
//! observation, and the orders that come in while it runs.

pub mod client;
mod endpoint;
mod folder;
pub mod interval;
mod lines;
pub mod names;
pub mod order;
mod recording;
pub mod run_directory;
mod session;
pub mod setup;

pub use endpoint::Endpoint;
pub use folder::{Folder, FolderError};
pub use interval::IntervalError;
pub use lines::LineBuffer;
pub use names::Names;
pub use order::{ControlCommand, OrderError};
pub use session::{
    ClosedRecording, Ended, ObeyError, ObservationStatus, Reply, Session, SessionError, Waker,
};
