//! Samples of running programs: where their threads are while they use CPU time, with the registers and a piece of the
//! stack. Several roads lead to them, of which the permissions of this process leave one or more; each is calibrated,
//! and all deliver the same values.

pub mod calibration;
mod calibration_file;
pub mod call_chains;
pub mod choice;
pub mod faults;
pub mod hint_faults;
pub mod in_process;
pub mod landing;
pub mod open;
pub mod operand;
pub mod pages;
pub mod perf;
pub mod process;
pub mod ptrace;
pub mod road;
pub mod sample;

pub use landing::Landing;
pub use road::{Losses, Road, RoadError, RoadEvent, RoadKind};
pub use sample::{MeasuredAccess, Sample, SampleSettings, StackPiece};
