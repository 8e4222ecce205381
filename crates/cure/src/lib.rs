//! Cures: which memory policy each object of a program gets.
//!
//! `numa explain` writes a cure, `numa run --apply` reads it. It names objects so that another process
//! of the same program finds them (by build IDs and by addresses in the terms of files), and threads by their order of creation:
//! never nodes, since the next run may have others.

mod fit;
mod order;
mod parse;
#[cfg(test)]
mod testing;
pub mod together;
mod values;

pub use fit::{FittedCure, FittedObject, FittedPolicy, NoFit, RunThreads};
pub use order::{CoreOrder, NoOrder};
pub use parse::{CureError, CureFlaw, MAX_BYTES, MAX_OBJECTS, MAX_PAIRS, ObjectFlaw, parse, read};
pub use values::{
    Cure, CuredIdentity, CuredObject, CuredThreads, LeftObject, ObjectPart, ObjectPolicy, PageSize,
    PartsOver, ProgramFile, ReturnAddress, SetVariable, SharingThreads,
};

/// Pieces in which an object's use is counted: parts are given in these.
pub const FRACTIONS: u32 = 64;
