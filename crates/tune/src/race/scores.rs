//! What the rounds say of candidates: their costs without the drift of the machine, the noise of a run, and slow runs.

/// The standard deviation of a normal distribution is this many times the median of the absolute values.
const OF_MEDIAN: f64 = 1.4826;
/// No noise is believed to be below this part of the cost.
const LEAST_NOISE: f64 = 0.001;
/// A run is slow if it is above the candidate's others by more than this many times the noise, and than this part of the cost.
const SLOW_NOISES: f64 = 4.0;
const SLOW_PART: f64 = 0.08;
/// Slower runs, as a logarithm of the factor, count as this one.
const MAX_SLOW: f64 = 50.0;

/// The logarithm of the cost of each candidate; `None` for those that did not run, or whose run was spoiled each time.
pub(super) type Round = Vec<Option<f64>>;

/// What the rounds say of all candidates. Costs are logarithms, so their differences are parts.
#[derive(Debug)]
pub(super) struct Scores {
    /// The noise of all candidates together; `None` before two rounds.
    pub(super) noise: Option<Noise>,
    /// Where each candidate's cost lies; `None` for those without a run.
    pub(super) locations: Vec<Option<Location>>,
}

/// The noise of a run, as a standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Noise {
    pub(super) deviation: f64,
    /// The same, with what few runs do not tell of it.
    pub(super) careful: f64,
}

/// Where a candidate's cost lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Location {
    /// The mean of what it will do.
    pub(super) expected: f64,
    /// Runs.
    pub(super) runs: usize,
}

impl Scores {
    pub(super) fn of(rounds: &[Round], candidates: usize) -> Self {
        let drift = drift(rounds, candidates);
        let all: Vec<Vec<f64>> = (0..candidates).map(|candidate| costs(rounds, &drift, candidate)).collect();
        let noise = noise(&all);
        let slow_from = noise.map_or(SLOW_PART, |noise| (SLOW_NOISES * noise.deviation).max(SLOW_PART));
        Self { noise, locations: all.into_iter().map(|costs| location(costs, slow_from)).collect() }
    }

    /// By how much the cost of a candidate is below that of the default.
    pub(super) fn advantage(&self, candidate: usize) -> Option<f64> {
        Some(self.locations[0]?.expected - self.locations[candidate]?.expected)
    }

    /// The standard error of a candidate's difference to one with as many runs.
    pub(super) fn error(&self, candidate: usize) -> Option<f64> {
        Some(self.noise?.careful * (2.0 / self.locations[candidate]?.runs as f64).sqrt())
    }
}

/// How much more each round cost than the others: the median of what each candidate has in it above its own median, so that a slow
/// run moves neither.
fn drift(rounds: &[Round], candidates: usize) -> Vec<f64> {
    let mut drift = vec![0.0; rounds.len()];
    for _ in 0..4 {
        let middles: Vec<Option<f64>> =
            (0..candidates).map(|candidate| median(costs(rounds, &drift, candidate))).collect();
        for (round, drift) in rounds.iter().zip(&mut drift) {
            let above = round.iter().zip(&middles).filter_map(|(cost, middle)| Some((*cost)? - (*middle)?));
            *drift = median(above.collect()).unwrap_or(*drift);
        }
    }
    drift
}

fn costs(rounds: &[Round], drift: &[f64], candidate: usize) -> Vec<f64> {
    rounds.iter().zip(drift).filter_map(|(round, drift)| Some(round[candidate]? - drift)).collect()
}

/// From the median difference of two runs of one candidate.
fn noise(costs: &[Vec<f64>]) -> Option<Noise> {
    let mut differences = Vec::new();
    for of_candidate in costs {
        for (at, one) in of_candidate.iter().enumerate() {
            differences.extend(of_candidate[at + 1..].iter().map(|other| (one - other).abs()));
        }
    }
    let known: usize = costs.iter().map(|runs| runs.len().saturating_sub(1)).sum();
    let deviation = (OF_MEDIAN * median(differences)? / std::f64::consts::SQRT_2).max(LEAST_NOISE);
    Some(Noise { deviation, careful: deviation * (1.0 + 2.0 / known as f64) })
}

/// The mean. One slow run is an accident and left out, two are the candidate's own.
fn location(mut costs: Vec<f64>, slow_from: f64) -> Option<Location> {
    costs.sort_by(f64::total_cmp);
    let middle = *costs.get(costs.len().checked_sub(1)? / 2)?;
    let usual_runs = costs.partition_point(|cost| *cost <= middle + slow_from);
    let (usual, slow) = costs.split_at(usual_runs);
    let mut expected = mean(usual);
    if slow.len() > 1 {
        let part = slow.len() as f64 / costs.len() as f64;
        expected += (part * (mean(slow) - expected).min(MAX_SLOW).exp_m1()).ln_1p();
    }
    Some(Location { expected, runs: costs.len() })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[values.len() / 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(of_candidates: &[&[f64]]) -> Vec<Round> {
        let of_round = |at| of_candidates.iter().map(|costs| costs.get(at).copied()).collect();
        (0..of_candidates[0].len()).map(of_round).collect()
    }

    fn expected(of_candidates: &[&[f64]]) -> Vec<f64> {
        let scores = Scores::of(&rounds(of_candidates), of_candidates.len());
        scores.locations.iter().map(|location| location.unwrap().expected).collect()
    }

    #[test]
    fn drift_moves_no_candidate() {
        let found = expected(&[&[1.0, 1.2, 1.5], &[0.9, 1.1, 1.4], &[1.3, 1.5]]);
        assert!(
            (found[0] - found[1] - 0.1).abs() < 1e-9 && (found[2] - found[0] - 0.3).abs() < 1e-9,
            "{found:?}"
        );
    }

    #[test]
    fn one_slow_run_is_an_accident_and_two_are_the_candidates_own() {
        let steady = [0.0; 6];
        let (once, twice) = ([0.0, 0.0, 0.9, 0.0, 0.0, 0.0], [0.0, 0.4, 0.0, 0.0, 0.4, 0.0]);
        let found = expected(&[&steady, &once, &steady, &twice, &steady]);
        assert!((found[1] - found[0]).abs() < 1e-9, "{found:?}");
        let mean = (4.0 + 2.0 * 0.4_f64.exp()) / 6.0;
        assert!((found[3] - found[0] - mean.ln()).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn noise_is_that_of_all_candidates_and_slow_runs_do_not_move_it() {
        let of = |rounds: &[Round]| Scores::of(rounds, rounds[0].len()).noise.map(|noise| noise.deviation);
        let with = |last: f64| {
            let second = [0.0, 0.04, -0.04, 0.02, -0.02, 0.06, last];
            let costs: Vec<[f64; 2]> = second.iter().map(|second| [0.0, *second]).collect();
            of(&rounds(&costs.iter().map(|costs| &costs[..]).collect::<Vec<_>>())).unwrap()
        };
        assert!((0.03..0.06).contains(&with(-0.06)) && (0.02..0.08).contains(&with(1.5)), "{}", with(1.5));
        assert_eq!(of(&rounds(&[&[1.0], &[2.0]])), None);
        assert_eq!(of(&rounds(&[&[1.0, 1.0], &[2.0, 2.0]])), Some(LEAST_NOISE));
    }
}
