//! Fake programs on a fake machine: true gains, noise, drift, runs that something slows down, and a setting that starts badly.

use numakit_tune::{Better, Race, RaceAnswer, RaceBudget, RaceCandidate, RaceGoal, RaceSettings, RunOutcome};
use std::f64::consts::TAU;

/// Gains that are drawn from, as fractions.
pub const MIXED: [f64; 12] = [0.0, 0.0, 0.0, 0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.15, 0.30, -0.20];
/// The same with none above 5 %.
pub const SMALL: [f64; 9] = [0.0, 0.0, 0.0, 0.0, 0.01, 0.02, 0.03, 0.05, -0.20];
/// The same with none above 1 %.
pub const NONE: [f64; 6] = [0.0, 0.0, 0.0, 0.0, 0.01, -0.20];

/// How often a setting that starts badly does so, and what a bad start costs.
const BAD_STARTS: f64 = 1.0 / 3.0;
const BAD_START: f64 = 1.5;

/// What trials have in common.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The gains that are drawn from.
    pub gains: &'a [f64],
    /// The settings beside the default.
    pub candidates: usize,
    /// The standard deviation of the logarithm of a run.
    pub noise: f64,
    /// How much slower or faster the machine gets along 70 runs, and in waves over them.
    pub drift: f64,
    /// The part of all runs that something slows down, by a factor of 1.2 to 3.
    pub slowed: f64,
    /// How much longer the first run of all takes, and at most the first run of each setting.
    pub cold: [f64; 2],
    /// Whether one setting starts badly.
    pub has_bad_starts: bool,
}

impl Default for Scene<'_> {
    fn default() -> Self {
        Self {
            gains: &MIXED,
            candidates: 12,
            noise: 0.03,
            drift: 0.06,
            slowed: 0.04,
            cold: [0.3, 0.04],
            has_bad_starts: true,
        }
    }
}

/// Chance of its own: the race must not know it.
struct Chance(u64);

impl Chance {
    fn of_seed(seed: u64) -> Self {
        let mut chance = Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
        (0..20).for_each(|_| _ = chance.uniform());
        chance
    }

    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (one, other) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * one.ln()).sqrt() * (TAU * other).cos()
    }

    fn below(&mut self, end: usize) -> usize {
        (self.uniform() * end as f64) as usize
    }
}

/// A machine with a program and its settings, the default first.
pub struct Machine<'a> {
    scene: Scene<'a>,
    chance: Chance,
    /// What runs usually take.
    usual: Vec<f64>,
    bad: Option<usize>,
    slope: f64,
    wave: [f64; 2],
    has_run: Vec<bool>,
    runs: usize,
}

impl<'a> Machine<'a> {
    pub fn new(scene: Scene<'a>, seed: u64) -> Self {
        let mut chance = Chance::of_seed(seed);
        let mut usual = vec![1.0];
        for _ in 0..scene.candidates {
            usual.push(1.0 - scene.gains[chance.below(scene.gains.len())]);
        }
        let bad = Some(1 + chance.below(scene.candidates)).filter(|_| scene.has_bad_starts);
        let slope = scene.drift * (2.0 * chance.uniform() - 1.0);
        let wave = [scene.drift * chance.uniform(), chance.uniform()];
        let has_run = vec![false; usual.len()];
        Self { scene, chance, usual, bad, slope, wave, has_run, runs: 0 }
    }

    /// The seconds of the next run.
    pub fn run(&mut self, setting: usize) -> f64 {
        let along = self.runs as f64 / 70.0;
        let mut log = self.usual[setting].ln() + self.slope * along;
        log += self.wave[0] * (TAU * (self.wave[1] + along)).sin();
        log += self.scene.noise * self.chance.normal();
        if self.chance.uniform() < self.scene.slowed {
            log += (1.2 + 1.8 * self.chance.uniform()).ln();
        }
        if self.bad == Some(setting) && self.chance.uniform() < BAD_STARTS {
            log += BAD_START.ln();
        }
        if !std::mem::replace(&mut self.has_run[setting], true) {
            log += self.scene.cold[1] * self.chance.uniform();
        }
        if self.runs == 0 {
            log += self.scene.cold[0];
        }
        self.runs += 1;
        10.0 * log.exp()
    }

    /// The mean seconds of a setting, as a part of the default's.
    pub fn true_time(&self, setting: usize) -> f64 {
        let bad = self.bad == Some(setting);
        self.usual[setting] * if bad { 1.0 + BAD_STARTS * (BAD_START - 1.0) } else { 1.0 }
    }

    /// Whether a setting's true time is within 1 % (of the default's) of the best one's.
    pub fn is_right(&self, setting: usize) -> bool {
        let times = (0..self.usual.len()).map(|one| self.true_time(one));
        self.true_time(setting) - times.fold(f64::INFINITY, f64::min) <= 0.01 + 1e-9
    }
}

/// What came of a race.
pub struct Trial {
    pub answer: RaceAnswer,
    pub runs: usize,
    /// Whether the right setting was chosen.
    pub is_right: bool,
    /// Whether the published interval has the true gain; `None` if none was published.
    pub is_within: Option<bool>,
    /// Whether the median gain of ten new pairs is in the interval that is stated for it.
    pub is_again: Option<bool>,
}

/// One race.
pub fn trial(scene: Scene<'_>, seed: u64) -> Trial {
    let mut machine = Machine::new(scene, seed);
    let mut race = Race::new(RaceSettings {
        candidates: vec![RaceCandidate::default(); scene.candidates + 1],
        better: Better::Less,
        budget: RaceBudget { runs: 300, seconds: None },
        worth: 0.01,
        seed,
        goal: RaceGoal::Prove,
    })
    .unwrap();
    while let Some(next) = race.next_run() {
        let seconds = machine.run(next.candidate);
        race.tell(RunOutcome::Metric(seconds), seconds).unwrap();
    }
    let answer = race.answer();
    let (chosen, is_within, is_again) = match answer {
        RaceAnswer::Use { candidate, gain } => {
            let truth = 1.0 - machine.true_time(candidate);
            let again = median_of_ten(&mut machine, candidate);
            let is_again = (gain.again_low..=gain.again_high).contains(&again);
            (candidate, Some((gain.low..=gain.high).contains(&truth)), Some(is_again))
        }
        RaceAnswer::Nothing => (0, None, None),
        RaceAnswer::Open { .. } | RaceAnswer::DefaultFailed(_) => panic!("{answer:?}"),
    };
    Trial { answer, runs: race.runs().len(), is_right: machine.is_right(chosen), is_within, is_again }
}

/// What somebody finds who tries the answer: the median gain of ten pairs.
fn median_of_ten(machine: &mut Machine<'_>, setting: usize) -> f64 {
    let mut gains = [(); 10].map(|()| {
        let without = machine.run(0);
        1.0 - machine.run(setting) / without
    });
    gains.sort_by(f64::total_cmp);
    f64::midpoint(gains[4], gains[5])
}

/// A setting that was chosen without a race.
pub struct Chosen {
    pub setting: usize,
    pub is_right: bool,
}

/// What is usually done: the best mean of three runs of each setting, one setting after the other.
pub fn best_mean_of_three(scene: Scene<'_>, seed: u64) -> Chosen {
    let mut machine = Machine::new(scene, seed);
    let mean = |setting| (0..3).map(|_| machine.run(setting)).sum::<f64>() / 3.0;
    let means: Vec<f64> = (0..=scene.candidates).map(mean).collect();
    let setting = (0..means.len()).min_by(|one, other| means[*one].total_cmp(&means[*other])).unwrap();
    Chosen { setting, is_right: machine.is_right(setting) }
}
