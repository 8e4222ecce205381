//! A running observation: the sampler, its recording, the observed command,
//! and the control commands that it receives.

pub mod client;
pub mod control_command;
mod endpoint;
mod folder;
pub mod interval;
mod lines;
pub mod names;
mod recording;
pub mod run_directory;
mod session;
pub mod setup;

pub use control_command::{ControlCommand, ParseCommandError};
pub use endpoint::Endpoint;
pub use folder::{Folder, FolderError};
pub use interval::IntervalError;
pub use lines::LineBuffer;
pub use names::RecordingNames;
pub use session::{
    ClosedRecording, ControlError, Ended, ObservationStatus, Reply, Session, SessionError, SessionHandle,
};
