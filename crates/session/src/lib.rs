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
pub use lines::Lines;
pub use names::Names;
pub use order::{Order, OrderError};
pub use session::{Answer, Ended, ObeyError, Recorded, Session, SessionError, Status, Waker};
