//! From a plan to a running program.
//!
//! - [`LaunchRequest::prepare`] selects and takes cores and prepares the command.
//! - [`run`] starts a program on reserved cores, holds them until its last descendant has ended, and returns how the
//!   program itself ended: [`Ending`].

pub mod apply;
pub mod blacklist;
mod busy;
mod check;
pub mod collectives;
mod command;
pub mod environment;
mod error;
pub mod file_kind;
pub mod isolate;
pub mod limits;
pub mod loops;
pub mod options;
pub mod preload;
mod prepare;
mod program;
mod ranks;
pub mod rebind;
mod selector;
mod shell;
mod supervise;
#[cfg(test)]
mod test_topology;

pub use check::{CheckError, CheckReport, check};
pub use command::{CommandRequest, ExplainedCommand};
pub use environment::{Environment, EnvironmentChange};
pub use error::LaunchError;
pub use options::{OptionError, RunOptions};
pub use prepare::{Isolation, LaunchRequest, PreparedLaunch, StartError, Wait};
pub use program::{Obstacle, Program};
pub use rebind::{RebindError, RebindReport};
pub use selector::{CoreSelector, ExplainedPlan};
pub use supervise::{Ending, RunError, Supervisor, run};
