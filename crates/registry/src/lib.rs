//! Who holds which cores. One file for the machine, its locks are the kernel's: whatever is
//! killed, what it held is free.
//!
//! - [`Registry::take`] chooses and locks cores in one step; [`Reservation`] is what was taken.
//! - [`run`] starts a program on them, keeps them until the last descendant ended, and gives the
//!   program's own end as [`Ending`].
//! - [`look`] tells who holds what, without making or changing anything.

mod audit;
pub mod busy;
mod elsewhere;
mod error;
mod follow;
mod held;
mod holding;
pub mod isolate;
mod keeper;
mod launcher;
pub mod limits;
mod message;
mod open;
pub mod place;
pub mod record;
mod scan;
mod tag;
mod take;
mod turn;

pub use error::{FileError, RegistryError, TakeError};
pub use held::{MIN_DESCRIPTOR, Reservation};
pub use holding::{BoundProcess, HolderState, Holding, ProcessId, RegistryView, Who};
pub use launcher::{Ending, RunError, Supervisor, run};
pub use open::{Registry, look, look_at};
pub use take::{CoreSelection, HolderInfo};

/// The name of a user, or the number where there is none.
pub fn user_name(id: u32) -> String {
    numakit_sys::user::name(id).unwrap_or_else(|| id.to_string())
}
