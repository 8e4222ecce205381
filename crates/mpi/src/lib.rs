//! What the calls of MPI programs cost on this machine: by communicator, operation and size, who waits for whom, who sends to
//! whom, what is wrong with how the ranks run, and the order of ranks that brings talkers together.

mod findings;
mod order;
mod report;
mod rows;
mod served;
#[cfg(test)]
mod testing;

pub use findings::{MpiFinding, MpiProblem};
pub use order::{RankOrder, arranged};
pub use report::{MOST_BYTES, MpiJob, MpiRank, MpiReport, MpiSurroundings, ReportError, Talk, VERSION};
pub use rows::{CallTime, MpiRow};
pub use served::{ServedCollectives, ServedOperation};
