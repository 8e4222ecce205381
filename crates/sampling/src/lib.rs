//! Samples of running programs: where their threads are while they use CPU time, with the registers and a piece of the
//! stack. Several methods lead to them, of which the permissions of this process leave one or more; each is calibrated,
//! and all deliver the same values.

pub mod argument_flow;
pub mod blocked;
pub mod calibration;
mod calibration_file;
pub mod call_chains;
pub mod choice;
pub mod faults;
pub mod hint_faults;
pub mod in_process;
pub mod landing;
pub mod method;
pub mod open;
pub mod operand;
pub mod pages;
pub mod perf;
pub mod process;
pub mod ptrace;
pub mod result_flow;
pub mod sample;

pub use landing::Landing;
pub use method::{Losses, Method, MethodError, MethodEvent, MethodKind};
pub use sample::{MeasuredAccess, Sample, SampleSettings, StackPiece};
