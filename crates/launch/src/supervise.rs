//! Starts a program on reserved cores and holds them until its last descendant has ended: [`run`]. Two processes of ours
//! do that, the launcher and the supervisor, so that either may be killed.

mod launcher;
mod message;
mod supervisor;

pub use launcher::{Ending, RunError, run};
pub use supervisor::Supervisor;
