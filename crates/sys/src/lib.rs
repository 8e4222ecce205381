//! The interface to the operating system: all `unsafe` and all system calls of the Rust crates, each behind a safe
//! function that documents its guarantee.

pub mod allocation_counts;
pub mod allocation_log;
pub mod apply_table;
pub mod balancing;
pub mod cache;
pub mod chain;
pub mod children;
pub mod clock;
pub mod command;
pub mod cpu_timer;
pub mod executable;
pub mod fault_cost;
pub mod file;
pub mod file_pages;
mod futex;
pub mod gate;
pub mod guard;
mod harmless;
pub mod huge_pages;
mod image;
mod inherited;
pub mod input;
pub mod java;
pub mod lock;
pub mod loops;
pub mod mark;
pub mod memory;
pub mod migrate;
pub mod mpi_calls;
pub mod output;
pub mod pages;
pub mod perf;
pub mod permissions;
pub mod policy;
pub mod poll;
pub mod proc;
pub mod ptrace;
pub mod pty;
pub mod registers;
pub mod remote;
pub mod resident;
pub mod root;
pub mod sample_ring;
pub mod sched;
mod shared_file;
mod shared_ring;
pub mod signal;
pub mod start;
pub mod start_notice;
pub mod stdio;
pub mod supervise;
pub mod tag;
mod thread_timer;
pub mod ticks;
pub mod tty;
pub mod user;
pub mod watch;
pub mod window;

pub use root::{ReadError, RootFile, SysRoot};

/// The result of a C call, or the error in errno.
fn check(result: i64) -> std::io::Result<i64> {
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}
