//! Whole tunings, of several races each, of programs whose true times are known: how often what is chosen is as good as the best
//! setting that there is, with any number of options, and after how many runs.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use numakit_tune::candidates::{TuneOption, TuneSetting, TunedMachine, around, placements};
use numakit_tune::tuning::{TuneAnswer, Tuning, TuningPlan};
use numakit_tune::{Better, RaceBudget, RunOutcome};
use std::f64::consts::TAU;

/// A time within this part of the best one's is as good.
const AS_GOOD: f64 = 0.01;
/// What an option may make of the time of a program.
const FACTORS: [f64; 10] = [1.0, 1.0, 1.0, 1.0, 1.0, 0.97, 0.95, 0.9, 0.8, 1.15];

/// Chance of its own: the tuning must not know it.
struct Chance(u64);

impl Chance {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn of_seed(seed: u64) -> Self {
        let mut chance = Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
        (0..20).for_each(|_| _ = chance.uniform());
        chance
    }

    fn normal(&mut self) -> f64 {
        let (one, other) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * one.ln()).sqrt() * (TAU * other).cos()
    }
}

/// A program: what each option makes of its time.
struct Program {
    seed: u64,
    factors: &'static [f64],
}

impl Program {
    fn factor(&self, option: &TuneOption) -> f64 {
        let name = format!("{option:?}");
        let number =
            name.bytes().fold(self.seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        self.factors[(Chance::of_seed(number).uniform() * self.factors.len() as f64) as usize]
    }

    fn time(&self, setting: &TuneSetting) -> f64 {
        setting.options().iter().map(|option| self.factor(option)).product()
    }

    /// The time of the best setting of a machine, of all that can be had together.
    fn best(&self, machine: &TunedMachine) -> f64 {
        let mut bases = placements(machine);
        bases.push(TuneSetting::default());
        let last = |setting: &TuneSetting| setting.options().last().cloned();
        let mut more: Vec<TuneOption> = around(machine, &bases).iter().filter_map(last).collect();
        more.sort_by(|one, other| self.factor(one).total_cmp(&self.factor(other)));
        let with_all = |base: &TuneSetting| {
            let add = |setting: TuneSetting, option: &TuneOption| match setting.with(option) {
                Some(with) if self.time(&with) < self.time(&setting) => with,
                _ => setting,
            };
            self.time(&more.iter().fold(base.clone(), add))
        };
        bases.iter().map(with_all).fold(1.0, f64::min)
    }
}

/// What came of a tuning.
struct Trial {
    runs: usize,
    /// Whether what was chosen is as good as the best setting that there is.
    is_right: bool,
    /// Whether it is as good as the best one that was in a race.
    is_best_of_raced: bool,
    /// The time of what was chosen, as a part of that of the program as it is.
    chosen: f64,
    /// Whether the published interval has the true gain; `None` if none was published.
    is_within: Option<bool>,
}

fn trial(machine: &TunedMachine, factors: &'static [f64], noise: f64, seed: u64) -> Trial {
    let (program, mut chance) = (Program { seed, factors }, Chance::of_seed(seed ^ 0x5555));
    let mut tuning = Tuning::new(TuningPlan {
        remedies: Vec::new(),
        machine: Some(machine.clone()),
        better: Better::Less,
        budget: RaceBudget { runs: 400, seconds: None },
        seconds_per_run: 1.0,
        worth: 0.01,
        seed,
    })
    .unwrap();
    while let Some(next) = tuning.next_run() {
        let mut log = program.time(next.setting).ln() + noise * chance.normal();
        // Something slows down one run of 25.
        if chance.uniform() < 0.04 {
            log += (1.2 + 1.8 * chance.uniform()).ln();
        }
        tuning.tell(RunOutcome::Metric(log.exp()), log.exp()).unwrap();
    }
    let (chosen, is_within) = match tuning.answer() {
        TuneAnswer::Use { setting, gain } => {
            let time = program.time(setting);
            (time, Some((gain.low..=gain.high).contains(&(1.0 - time))))
        }
        TuneAnswer::Nothing => (1.0, None),
        other => panic!("{other:?}"),
    };
    let candidates = tuning.stages().iter().flat_map(|stage| &stage.candidates);
    let raced = candidates.map(|candidate| program.time(&candidate.setting)).fold(1.0, f64::min);
    let is_as_good = |best: f64| chosen - best <= AS_GOOD + 1e-9;
    let (is_right, is_best_of_raced) = (is_as_good(program.best(machine)), is_as_good(raced));
    Trial { runs: tuning.runs().count(), is_right, is_best_of_raced, chosen, is_within }
}

/// Percentages, and means.
struct Tally {
    right: f64,
    of_raced: f64,
    within: f64,
    runs: f64,
    chosen: f64,
}

fn tally(name: &str, machine: &TunedMachine, factors: &'static [f64], noise: f64) -> Tally {
    let trials = numakit_skips::rounds(300, 3000) as u64;
    let all: Vec<Trial> = (0..trials).map(|seed| trial(machine, factors, noise, seed)).collect();
    let mean = |of: &dyn Fn(&Trial) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let published: Vec<bool> = all.iter().filter_map(|one| one.is_within).collect();
    let found = Tally {
        right: 100.0 * mean(&|one| f64::from(u8::from(one.is_right))),
        of_raced: 100.0 * mean(&|one| f64::from(u8::from(one.is_best_of_raced))),
        within: 100.0 * published.iter().filter(|is| **is).count() as f64 / published.len().max(1) as f64,
        runs: mean(&|one| one.runs as f64),
        chosen: mean(&|one| one.chosen),
    };
    let Tally { right, of_raced, within, runs, chosen } = found;
    println!(
        "{name:28} right {right:5.1} %, of those in a race {of_raced:5.1} %, within {within:5.1} %, {runs:5.1} runs, time {chosen:.3}"
    );
    found
}

fn machine(nodes: u32, cores: u32, cores_per_cache: u32) -> TunedMachine {
    let (allocators, settings) = (vec!["libjemalloc.so.2".to_owned()], Vec::new());
    TunedMachine {
        nodes,
        cores,
        cores_per_cache,
        threads_per_core: 1,
        has_openmp: false,
        allocators,
        settings,
    }
}

#[test]
fn several_races_choose_what_is_as_good_as_the_best() {
    for (name, machine, noise, right, of_raced, runs) in [
        ("one node, noise of 0.01", machine(1, 8, 8), 0.01, 91.0, 97.0, 65.0),
        ("one node, noise of 0.03", machine(1, 8, 8), 0.03, 80.0, 89.0, 72.0),
        ("four nodes, noise of 0.03", machine(4, 32, 8), 0.03, 84.0, 93.0, 129.0),
    ] {
        let found = tally(name, &machine, &FACTORS, noise);
        assert!(found.right >= right && found.of_raced >= of_raced, "{name}");
        assert!(found.within >= 93.0 && found.runs <= runs, "{name}");
    }
}

#[test]
fn several_races_find_nothing_where_nothing_gains() {
    for (name, machine, right, runs) in [
        ("nothing, one node", machine(1, 8, 8), 99.0, 50.0),
        ("nothing, four nodes", machine(4, 32, 8), 99.0, 91.0),
    ] {
        let found = tally(name, &machine, &[1.0, 1.0, 1.0, 1.15], 0.03);
        assert!(found.right >= right && found.runs <= runs, "{name}");
    }
}
