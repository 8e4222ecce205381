//! Lines that CPUs hand each other: from one to another, and from all to all at a barrier.

pub(crate) mod barrier;
mod barriers;
pub(crate) mod c2c;
mod c2c_groups;
