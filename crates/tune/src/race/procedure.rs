//! The numbers of the procedure. They were found by simulated races: docs/decisions/0035-settings-race-in-rounds.md. Another number that
//! changes which run is next needs another [`super::PROCEDURE_VERSION`].

/// After its first run a candidate is out if that cost this many times what the best one's did: no usual disturbance does that.
pub(super) const FIRST_CUT: f64 = 3.0;
/// A candidate is out if it is behind by more than this many standard errors.
pub(super) const BEHIND: f64 = 1.2;
/// A candidate is out if it gains too little even with this many standard errors more: after two runs, after more.
pub(super) const GAINLESS: [f64; 2] = [0.0, -0.7];
/// The rounds end after this many.
pub(super) const ROUNDS: usize = 5;
/// Costs that differ by less than this part are equal: the rounds end if errors are smaller, and the simpler candidate leads.
pub(super) const EQUAL: f64 = 0.004;
/// The leader is confirmed if its gain is worth it even with this many standard errors less.
pub(super) const PROMISING: f64 = 0.3;
/// After a confirmation, another candidate is confirmed too if it is ahead of what was won by this many standard errors.
pub(super) const AHEAD: f64 = 1.5;
/// At most this many candidates are confirmed.
pub(super) const CONFIRMATIONS: usize = 2;
/// The fewest and the most pairs by which a gain is confirmed.
pub(super) const PAIRS: [usize; 2] = [7, 16];
/// From this many pairs on, a confirmation ends if it is hopeless.
pub(super) const FEW_PAIRS: usize = 4;
/// It is hopeless if the gain is not worth it even with this many standard errors more.
pub(super) const HOPELESS: f64 = 0.3;
/// A run that was spoiled this many times in a row is left out.
pub(super) const TRIES: u32 = 3;

/// By how many standard errors a race of these candidates may be more patient than one of a dozen: the best one of a few gains less by chance.
pub(super) fn patience(candidates: usize) -> f64 {
    let best_by_chance = |count: f64| 0.75 * (2.0 * count.max(1.0).ln()).sqrt();
    best_by_chance(12.0) - best_by_chance(candidates as f64 - 1.0)
}
