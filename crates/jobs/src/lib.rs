//! Jobs: containers, pods, Slurm jobs, units of systemd, control groups, or else the sessions of users. Which there are, where their
//! memory is and their threads run, what they wait for, and which of them NUMA slows down.
//!
//! [`JobWatch`] looks at all processes in rounds and adds them up by job. [`JobSamples`] takes samples of the whole machine in a
//! thread of its own, where that is permitted. What a job's numbers mean is judged by `numakit-findings` alone.

mod group;
mod job;
mod judged;
mod name;
mod samples;
mod watch;

pub use group::GroupMemory;
pub use job::{Job, JobFinding, JobTime, Unjudged};
pub use name::{JobNames, MAX_NAME};
pub use samples::{JobSamples, SamplesCost};
pub use watch::{DETAILED, JobBoard, JobWatch, JobsNow, OTHER, SHOWN};
