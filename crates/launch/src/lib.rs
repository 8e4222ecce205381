//! From a plan to a running program.

mod begin;
mod check;
mod choice;
pub mod environment;
mod error;
pub mod head;
mod launch;
pub mod options;
mod program;
mod ranks;
pub mod replace;
mod shell;
pub mod sufferers;

pub use begin::{BeginError, Isolated, LaunchRequest, PreparedLaunch, Wait};
pub use check::{CheckError, Checked, check};
pub use choice::{CoreSelector, ExplainedPlan};
pub use environment::{Environment, EnvironmentChange};
pub use error::LaunchError;
pub use launch::{CommandRequest, ExplainedCommand};
pub use options::{OptionError, RunOptions};
pub use program::{Obstacle, Program};
pub use replace::{ReplaceError, Replaced};
