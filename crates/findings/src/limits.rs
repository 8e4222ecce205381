//! Limits that rules of findings and of shares have in common. Scopes are those of shares; findings are about the machine.

use crate::course::Limit;
use numakit_model::Scope;
use numakit_model::thresholds::REMOTE;

/// The scopes of most shares: the smallest part that has a counter.
pub(crate) const PARTS: &[Scope] = &[Scope::Node, Scope::Package, Scope::Machine];
/// From this share on, in percent, far use, accesses or allocations are worth a finding.
pub(crate) const FAR: f64 = 100.0 * REMOTE;
/// From this share of a bandwidth on, in percent, the memory or link is saturated.
pub(crate) const SATURATED: f64 = 70.0;

const fn far(formula: &'static str, minimum: (&'static str, f64)) -> Limit {
    Limit { formula, threshold: FAR, scopes: PARTS, minimum: Some(minimum) }
}

const fn saturated(formula: &'static str, scopes: &'static [Scope]) -> Limit {
    Limit { formula, threshold: SATURATED, scopes, minimum: None }
}

pub(crate) const FAR_TIME: Limit = far("remote_time_share", ("memory_time", 0.01));
pub(crate) const FAR_PAGES: Limit = far("remote_pages_share", ("used_pages", 5.0));
pub(crate) const FAR_READS: Limit = far("remote_share", ("dram_bandwidth", 1e8));
pub(crate) const FAR_LOADS: Limit = far("load_remote_share", ("memory_loads", 1e5));
pub(crate) const FAR_TRAFFIC: Limit = far("resctrl_remote_share", ("resctrl_bandwidth", 1e8));
pub(crate) const FAR_HINTS: Limit = far("hint_remote_share", ("hint", 100.0));
pub(crate) const FAR_ALLOCATIONS: Limit = far("remote_allocation_share", ("allocations", 1e3));
pub(crate) const LINK: Limit = saturated("link_util", &[Scope::Link, Scope::Package]);
pub(crate) const CARD: Limit = saturated("card_wait", &[Scope::Device]);
pub(crate) const MEMORY: Limit = saturated("dram_util", PARTS);

impl Limit {
    /// The same limit, followed at other places.
    pub(crate) const fn at(self, scopes: &'static [Scope]) -> Self {
        Self { scopes, ..self }
    }
}
