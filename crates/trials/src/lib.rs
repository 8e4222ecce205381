//! Runs of a program with settings, one after another: started as a user would type them, measured, judged by the races of
//! `numakit_tune`, and kept in a file after each run.
//!
//! - [`TuneRequest`]: what runs, what is compared, and for how long.
//! - [`TrialRunner`]: one run.
//! - [`TuneSession`]: all of them, and [its report](TuneReport).

mod commands;
mod disturbance;
mod explained;
mod machine;
mod metric;
mod pairs;
mod report;
mod request;
mod runner;
mod session;

pub use commands::{setting_of_words, typed, words_of_line};
pub use disturbance::{Disturbance, SpoiledBy};
pub use explained::{Advised, AdvisedRemedy, advised, remedies_of};
pub use machine::{files, tuned};
pub use metric::{FigureError, TrialMetric, found, pattern, printed};
pub use pairs::{TriedRemedy, try_remedies};
pub use report::{
    CandidateSource, ReportedAnswer, ReportedCandidate, ReportedCosts, ReportedMetric, TuneReport,
};
pub use request::{TrialCheck, TrialScene, TuneRequest};
pub use runner::{MoveFailed, ProgramReach, TrialEnd, TrialError, TrialRun, TrialRunner};
pub use session::{KeptRun, MAX_FILE, SessionEnd, TuneSession, TuneSessionError};
