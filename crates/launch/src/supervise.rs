//! Starts a program on reserved cores and holds them until its last descendant has ended: [`run`]. Two processes of ours
//! do that, the launcher and the supervisor, so that either may be killed.
//!
//! | process | does | if it is killed |
//! |---|---|---|
//! | launcher | the process that the shell waits for: passes signals to the supervisor, which sends them to the program; mirrors the program's stop and exit status | the program continues and keeps its cores |
//! | supervisor (`cores-keeper` in `ps`) | starts the program and holds the locks of the cores; it is a subreaper, so it sees the end of the program's last descendant | the launcher takes over until the program ends; after that, or without the launcher, the locks stay with the descriptor that descendants inherited; without that, the record holds the cores as long as a process has its tag |
//! | program | inherits CPU mask, memory policy, environment and the descriptor of the locks (number 100 or above) | its cores are free when its last descendant has ended |
//!
//! In the program, `libnumaplace.so` binds each thread to its core as the thread is created, and places its stack and
//! thread-local storage on that core's node (decision 11).

mod launcher;
mod message;
mod supervisor;

pub use launcher::{Ending, RunError, run};
pub use supervisor::Supervisor;
