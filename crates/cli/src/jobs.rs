//! The jobs of this machine, for the verbs that tell of them.

use numakit_jobs::{JobSamples, JobWatch};
use numakit_model::{Fix, Topology, Unavailable};
use numakit_sys::SysRoot;

/// Watches jobs with this number of samples a second, as far as that is permitted.
pub fn watch(root: &SysRoot, topology: &Topology, rate: u32) -> Result<JobWatch, Unavailable> {
    let samples = match rate {
        0 => {
            let fix = Fix::CommandLine("give --sample-rate 19".to_owned());
            Err(Unavailable::new("samples of jobs", "no samples are taken", fix))
        }
        _ if !root.is_host() => {
            let fix = Fix::CommandLine("omit --sysroot".to_owned());
            Err(Unavailable::new("samples of jobs", "the machine is another one", fix))
        }
        rate => JobSamples::start(topology, rate),
    };
    JobWatch::new(root, topology, samples)
}
