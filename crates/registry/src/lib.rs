//! Which program holds which cores: one file for the machine, in which each core is a byte with a kernel lock.
//! When a process is killed, its locks are released.
//!
//! - [`Registry::take`] selects and locks cores in one step and returns a [`Reservation`].
//! - [`Registration`] keeps it in the file that has the registry's name, for the process that supervises the program.
//! - [`inspect`] reads who holds what, without creating or changing anything.

mod allocation_lock;
mod audit;
mod error;
mod follow;
mod holding;
pub mod location;
mod open;
pub mod record;
mod removed;
mod reservation;
mod scan;
mod tag;
mod take;

pub use audit::SUPERVISOR_NAME;
pub use error::{FileError, RegistryError, TakeError};
pub use follow::Registration;
pub use holding::{BoundProcess, Holder, HolderState, Holding, ProcessId, RegistryView};
pub use open::{Registry, inspect, inspect_at};
pub use reservation::{MIN_DESCRIPTOR, Reservation};
pub use take::{CoreSelection, HolderInfo};

/// The name of a user, or the number if there is no name.
pub fn user_name(id: u32) -> String {
    numakit_sys::user::name(id).unwrap_or_else(|| id.to_string())
}
