//! The CPU quota of a control group: more busy threads than it is worth are throttled.

use crate::amount::Amount;
use crate::request::{Cores, PlacementRequest};
use numakit_model::Topology;

/// The cores that a request without a number of its own may take of the free ones.
pub(crate) fn cores(topology: &Topology, request: &PlacementRequest, free: u64) -> u64 {
    let width = u64::from(request.threads_per_core).max(1);
    match topology.limits.threads() {
        Some(threads) if request.cores == Some(Cores::Auto) => free.min((threads / width).max(1)),
        _ => free,
    }
}

/// What the quota means for this plan.
pub(crate) fn warning(
    topology: &Topology,
    request: &PlacementRequest,
    amount: Amount,
    free: u64,
) -> Option<String> {
    let (worth, most) = (topology.limits.cpus?, topology.limits.threads()?);
    let worth = format!("{worth} CPU{}", if worth == 1.0 { "" } else { "s" });
    let threads = amount.processes * amount.threads;
    if threads > most {
        return Some(format!(
            "{threads} threads, but the CPU quota of this control group is worth {worth}: the kernel \
             throttles all of them; ask for {most}, or raise the quota (docker run --cpus, limits.cpu of a pod)"
        ));
    }
    let is_less = request.cores == Some(Cores::Auto) && amount.all_cores() < free;
    is_less.then(|| {
        let cores = amount.all_cores();
        format!(
            "{cores} of {free} free cores are taken: the CPU quota of this control group is worth {worth}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::topology::ControlLimits;

    fn limited(cpus: f64) -> Topology {
        Topology {
            limits: ControlLimits { cpus: Some(cpus), ..ControlLimits::default() },
            ..Topology::default()
        }
    }

    fn request(cores: Cores) -> PlacementRequest {
        PlacementRequest { cores: Some(cores), ..PlacementRequest::default() }
    }

    fn amount(threads: u64) -> Amount {
        Amount { processes: 1, threads, cores: threads }
    }

    #[test]
    fn automatic_requests_take_what_the_quota_is_worth() {
        let auto = request(Cores::Auto);
        assert_eq!(cores(&limited(4.5), &auto, 128), 4);
        assert_eq!(cores(&limited(0.5), &auto, 128), 1);
        assert_eq!(cores(&limited(4.5), &auto, 3), 3);
        assert_eq!(cores(&limited(4.5), &request(Cores::Count(8)), 128), 128);
        assert_eq!(cores(&Topology::default(), &auto, 128), 128);
    }

    #[test]
    fn a_plan_says_what_the_quota_means_for_it() {
        let warning = |cpus, of: Cores, threads| warning(&limited(cpus), &request(of), amount(threads), 128);
        let many = warning(4.0, Cores::Count(8), 8).unwrap();
        assert!(
            many.starts_with("8 threads, but the CPU quota of this control group is worth 4 CPUs"),
            "{many}"
        );
        assert!(warning(4.5, Cores::Auto, 4).unwrap().starts_with("4 of 128 free cores are taken"));
        assert_eq!(warning(4.5, Cores::Count(4), 4), None);
        assert_eq!(super::warning(&Topology::default(), &request(Cores::Auto), amount(128), 128), None);
    }
}
