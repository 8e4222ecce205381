//! Moves what runs: busy threads to cores of their own, and pages to the threads that use them. It observes first, moves pages
//! in pieces that threads hardly notice, and writes down how to undo everything before it changes anything.
//!
//! The program itself is never stopped; the kernel lets a thread wait while a page that it uses is copied.

mod choice;
mod cores;
mod cured;
mod error;
mod moving;
mod observed;
mod pacer;
mod pages;
mod parts;
mod recent;
mod record;
mod report;
mod restore;
mod session;
mod shared_memory;
mod threads;
mod watch;

pub use error::MoveError;
pub use pacer::Pacer;
pub use parts::{MovablePart, PartPurpose, SharedRange};
pub use record::{KeptRecord, MalformedRecord, MoveRecord, PageRange, RecordError, ThreadMask};
pub use report::{LeftPages, MoveReport, NotCured, PartMoved, RemoteSamples, Restored, StoppedBy};
pub use restore::restore;
pub use session::{MoveSession, MoveSettings, WatchEnd};
pub use threads::{BusyThread, FreeCore, ThreadDecision, ThreadReason, plan};
