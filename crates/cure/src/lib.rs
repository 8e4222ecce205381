//! Cures: which memory policy each object of a program gets.
//!
//! `numa explain` writes a cure, `numa run --apply` and `numa move --apply` read it. It names objects so that another process
//! of the same program finds them (by build IDs and by addresses in the terms of files), and threads by their order of creation:
//! never nodes, since the next run may have others.

mod values;

pub use values::{
    Cure, CuredObject, CuredThreads, Identity, LeftObject, ObjectPolicy, PageSize, Part, PartsOver,
    ProgramFile, ReturnAddress, SetVariable,
};

/// Pieces in which an object's use is counted: parts are given in these.
pub const FRACTIONS: u32 = 64;
