//! A NUMA machine for everyone: boots Linux in QEMU on a machine of a given shape, runs commands
//! in it, and brings back what they gave. Neither root nor NUMA hardware is needed.
//!
//! ```no_run
//! use numakit_guest::{Guest, Shape, programs};
//!
//! let numa = programs::numa()?;
//! let boot = Guest::new(Shape::named("four")?).program(&numa).step("topo", &["numa", "topo"]).boot()?;
//! assert!(boot["topo"].succeeded().contains("4 nodes"));
//! # Ok::<(), numakit_guest::Failure>(())
//! ```
#![allow(clippy::print_stderr, clippy::print_stdout, clippy::disallowed_methods)]

mod boot;
mod console;
mod contents;
mod failure;
mod fetch;
mod folder;
mod guest;
mod image;
mod initramfs;
mod machine;
mod packages;
mod parts;
pub mod place;
pub mod programs;
mod run;
pub mod runtimes;
mod shape;
mod simulated;
mod traffic;

pub use boot::{Boot, Status, Step, or_skipped};
pub use failure::{Console, Failure};
pub use guest::Guest;
pub use parts::{Part, Parts};
pub use run::Streams;
pub use shape::{Attribute, Confined, Node, Shape, ShapeError};
pub use simulated::{Simulation, available as simulation_available};
pub use traffic::{Lines, Matrix, Traffic};
