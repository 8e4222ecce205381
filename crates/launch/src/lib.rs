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

pub use begin::{BeginError, Ready, Wait, Wish};
pub use check::{CheckError, Checked, check};
pub use choice::{Choice, Outcome};
pub use environment::{Change, Environment};
pub use error::LaunchError;
pub use launch::{Job, Launch};
pub use options::Options;
pub use program::{Obstacle, Program};
pub use replace::{ReplaceError, Replaced};
