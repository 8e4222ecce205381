//! The jobs of this machine, for the verbs that tell of them.

use numakit_jobs::{JobSamples, JobWatch, SamplesCost};
use numakit_model::{Fix, Topology, Unavailable};
use numakit_sys::SysRoot;

/// Watches jobs with this number of samples a second at this cost, as far as that is permitted.
pub fn watch(
    root: &SysRoot,
    topology: &Topology,
    rate: u32,
    cost: SamplesCost,
) -> Result<JobWatch, Unavailable> {
    let samples = match rate {
        0 => {
            let fix = Fix::CommandLine("give --sample-rate 19".to_owned());
            Err(Unavailable::new("samples of jobs", "no samples are taken", fix))
        }
        _ if !root.is_host() => {
            let fix = Fix::CommandLine("omit --sysroot".to_owned());
            Err(Unavailable::new("samples of jobs", "the machine is another one", fix))
        }
        rate => JobSamples::start(topology, rate, cost),
    };
    JobWatch::new(root, topology, samples)
}
