//! What a user asks for.

use crate::metric::TrialMetric;
use numakit_sys::command::quoted;
use numakit_tune::{Better, RaceBudget};
use serde::{Deserialize, Serialize};

/// What runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TrialScene {
    /// A program that ends by itself.
    Program {
        /// The program and its arguments.
        words: Vec<String>,
    },
    /// A server that is started, warmed, loaded and stopped in each run.
    Server {
        /// The server and its arguments.
        server: Vec<String>,
        /// The program that loads it, with its arguments.
        load: Vec<String>,
        /// What warms it before; `None`: the load, once.
        warm: Option<Vec<String>>,
        /// A command that succeeds as soon as the server is ready.
        ready: Vec<String>,
    },
    /// Running processes, that are moved and moved back in turns.
    Running {
        /// Options that choose them, as `numa move` takes them.
        target: Vec<String>,
        /// Seconds of a turn.
        turn: f64,
    },
}

impl TrialScene {
    /// The words to which settings belong.
    pub fn words(&self) -> &[String] {
        match self {
            Self::Program { words } | Self::Server { server: words, .. } => words,
            Self::Running { target, .. } => target,
        }
    }

    /// As it is typed without a setting.
    pub fn typed(&self) -> String {
        quoted(self.words())
    }
}

/// When the result of a run is right, beside an exit status of 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TrialCheck {
    /// If what it prints matches.
    Output {
        /// A regular expression.
        pattern: String,
    },
    /// If a command succeeds, which reads on its standard input what the run printed.
    Command {
        /// As a shell takes it.
        line: String,
    },
}

impl TuneRequest {
    /// The time of a program, without a check or a budget.
    pub fn of_program(words: Vec<String>) -> Self {
        Self {
            scene: TrialScene::Program { words },
            metric: TrialMetric::WallTime,
            is_counter: false,
            better: Better::Less,
            check: None,
            budget: RaceBudget { runs: u32::MAX, seconds: None },
            worth: 0.01,
            with_verdicts: false,
            with_generic: false,
            with_machine: false,
        }
    }
}

/// What a user asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneRequest {
    /// What runs.
    pub scene: TrialScene,
    /// What is compared.
    pub metric: TrialMetric,
    /// Whether the metric of a running process is a counter, whose increase in a second counts.
    pub is_counter: bool,
    /// Which values are better.
    pub better: Better,
    /// When a result is right.
    pub check: Option<TrialCheck>,
    /// When the tuning ends at the latest.
    pub budget: RaceBudget,
    /// Gains below this one are not worth a setting.
    pub worth: f64,
    /// Whether the program is observed first, and what that advises is tried.
    pub with_verdicts: bool,
    /// Whether settings that may make any program faster are tried.
    pub with_generic: bool,
    /// Whether settings of the machine are tried.
    pub with_machine: bool,
}
