//! Settings and their options.

use serde::{Deserialize, Serialize};

/// The variable that says which schedule the runtime has.
const SCHEDULE: &str = "OMP_SCHEDULE";

/// An option of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuneOption {
    /// This number of cores, and not all that are free.
    Cores(u32),
    /// Cores of nodes that are far apart, and not those that are nearest.
    Scatter,
    /// Threads that the kernel moves among the cores.
    Unbound,
    /// Memory interleaved on the nodes of the cores.
    Interleave,
    /// The same by the weights of the nodes.
    Weighted,
    /// This number of threads on each core.
    ThreadsPerCore(u32),
    /// Huge pages for what malloc allocates.
    HugePages,
    /// No transparent huge pages.
    NoHugePages,
    /// libnumalloc with this profile.
    Allocator(String),
    /// The allocator in this file.
    Preload(String),
    /// Threads of OpenMP that wait, sleep.
    ThreadsWaitAsleep,
    /// Loops of OpenMP whose schedule is that of the runtime get a dynamic one.
    DynamicLoops,
    /// Loops of OpenMP that are not static begin with static shares, and threads without work steal.
    AdaptiveLoops,
    /// The objects that the cure in this file names get their nodes.
    Cure(String),
    /// A variable of the environment, by its name, and its value.
    Variable(String, String),
    /// Other words of `numa run`.
    Words(Vec<String>),
    /// A setting of the machine: its file, and what is written there.
    Machine(String, String),
}

/// What a setting needs beyond numa.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuneNeed {
    /// A kernel that interleaves by weights: Linux 6.9.
    WeightedInterleaving,
    /// A program that is linked dynamically and has the C library's malloc.
    OtherMalloc,
    /// A program that uses OpenMP.
    OpenMp,
    /// The file of a cure, which fits this build of the program.
    CureFile,
    /// A setting of the whole machine (root).
    MachineSetting,
}

impl TuneNeed {
    /// What a user must have, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::WeightedInterleaving => "Linux 6.9",
            Self::OtherMalloc => "a dynamic program with the C library's malloc",
            Self::OpenMp => "OpenMP",
            Self::CureFile => "its cure, for this build",
            Self::MachineSetting => "a setting of the machine",
        }
    }
}

impl TuneOption {
    /// Options of one kind exclude each other.
    fn kind(&self) -> (u8, &str) {
        let kind = match self {
            Self::Cores(_) => 0,
            Self::Scatter => 1,
            Self::Unbound => 2,
            Self::Interleave | Self::Weighted => 3,
            Self::ThreadsPerCore(_) => 4,
            Self::HugePages | Self::NoHugePages => 5,
            Self::Allocator(_) => 6,
            Self::Cure(_) => 7,
            Self::Words(_) => 8,
            Self::Machine(file, _) => return (9, file),
            // Both are a preloaded allocator.
            Self::Preload(_) => return (6, ""),
            // Both are about the schedule of the runtime.
            Self::AdaptiveLoops => return (10, SCHEDULE),
            Self::ThreadsWaitAsleep | Self::DynamicLoops | Self::Variable(..) => {
                return (10, self.variable().map_or("", |(name, _)| name));
            }
        };
        (kind, "")
    }

    /// The option that these words of `numa run` begin with, and how many words it is.
    fn of_words(words: &[String]) -> (Self, usize) {
        let value = words.get(1).map(String::as_str);
        let known = match (words[0].as_str(), value) {
            ("-c", Some(count)) => count.parse().ok().map(Self::Cores),
            ("--policy", Some("scatter")) => Some(Self::Scatter),
            ("--memory", Some("interleave")) => Some(Self::Interleave),
            ("--memory", Some("weighted")) => Some(Self::Weighted),
            ("--threads-per-core", Some(count)) => count.parse().ok().map(Self::ThreadsPerCore),
            ("--thp", Some("on")) => Some(Self::HugePages),
            ("--thp", Some("off")) => Some(Self::NoHugePages),
            ("--alloc", Some(profile)) => Some(Self::Allocator(profile.to_owned())),
            ("--loops", Some("adaptive")) => Some(Self::AdaptiveLoops),
            ("--apply", Some(file)) => Some(Self::Cure(file.to_owned())),
            ("--no-library", _) => return (Self::Unbound, 1),
            _ => None,
        };
        match known {
            Some(option) => (option, 2),
            None => (Self::Words(words.to_vec()), words.len()),
        }
    }

    fn words(&self) -> Vec<String> {
        let words = |words: [&str; 2]| words.map(str::to_owned).to_vec();
        match self {
            Self::Cores(count) => words(["-c", &count.to_string()]),
            Self::Scatter => words(["--policy", "scatter"]),
            Self::Unbound => vec!["--no-library".to_owned()],
            Self::Interleave => words(["--memory", "interleave"]),
            Self::Weighted => words(["--memory", "weighted"]),
            Self::ThreadsPerCore(count) => words(["--threads-per-core", &count.to_string()]),
            Self::HugePages => words(["--thp", "on"]),
            Self::NoHugePages => words(["--thp", "off"]),
            Self::Allocator(profile) => words(["--alloc", profile]),
            Self::Cure(file) => words(["--apply", file]),
            Self::AdaptiveLoops => words(["--loops", "adaptive"]),
            Self::Words(words) => words.clone(),
            Self::Preload(_)
            | Self::ThreadsWaitAsleep
            | Self::DynamicLoops
            | Self::Variable(..)
            | Self::Machine(..) => Vec::new(),
        }
    }

    /// Whether it is an option of `numa run`.
    fn is_of_run(&self) -> bool {
        self.variable().is_none() && !matches!(self, Self::Machine(..))
    }

    fn variable(&self) -> Option<(&str, &str)> {
        match self {
            Self::Preload(file) => Some(("LD_PRELOAD", file)),
            Self::ThreadsWaitAsleep => Some(("OMP_WAIT_POLICY", "passive")),
            Self::DynamicLoops => Some((SCHEDULE, "dynamic")),
            Self::Variable(name, value) => Some((name, value)),
            _ => None,
        }
    }

    /// The file of a setting of the machine, and what is written there.
    fn setting(&self) -> Option<(&str, &str)> {
        match self {
            Self::Machine(file, value) => Some((file, value)),
            _ => None,
        }
    }

    fn need(&self) -> Option<TuneNeed> {
        match self {
            Self::Weighted => Some(TuneNeed::WeightedInterleaving),
            Self::Allocator(_) | Self::Preload(_) => Some(TuneNeed::OtherMalloc),
            Self::ThreadsWaitAsleep | Self::DynamicLoops | Self::AdaptiveLoops => Some(TuneNeed::OpenMp),
            Self::Cure(_) => Some(TuneNeed::CureFile),
            Self::Machine(..) => Some(TuneNeed::MachineSetting),
            _ => None,
        }
    }
}

/// A setting: the words of a command line of `numa run`, and variables. The default is the program as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TuneSetting {
    is_placed: bool,
    options: Vec<TuneOption>,
}

impl TuneSetting {
    /// A setting of `numa run` with these options.
    pub fn placed(options: Vec<TuneOption>) -> Self {
        Self { is_placed: true, options }
    }

    /// The setting that a command line has: variables before it, and the words after `numa run`, if that starts the program.
    pub fn typed(variables: &[(String, String)], run: Option<&[String]>) -> Self {
        let variable = |(name, value): &(String, String)| TuneOption::Variable(name.clone(), value.clone());
        let mut options: Vec<TuneOption> = variables.iter().map(variable).collect();
        // `--thp=on` is `--thp on`.
        let parts = |word: &String| match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => vec![option.to_owned(), value.to_owned()],
            _ => vec![word.clone()],
        };
        let all: Vec<String> = run.unwrap_or_default().iter().flat_map(parts).collect();
        let mut words = all.as_slice();
        while !words.is_empty() {
            let (option, count) = TuneOption::of_words(words);
            options.push(option);
            words = &words[count..];
        }
        Self { is_placed: run.is_some(), options }
    }

    /// Whether `numa run` starts the program; otherwise it is started as it is, with the variables.
    pub fn is_placed(&self) -> bool {
        self.is_placed
    }

    /// Its options.
    pub fn options(&self) -> &[TuneOption] {
        &self.options
    }

    /// The same with one more option; `None` if it has one of the kind. A program that was not placed stays on all its CPUs, unless the
    /// option is about cores.
    #[must_use]
    pub fn with(&self, option: &TuneOption) -> Option<Self> {
        if self.options.iter().any(|other| other.kind() == option.kind()) {
            return None;
        }
        let mut setting = self.clone();
        if !self.is_placed && option.is_of_run() {
            if matches!(option, TuneOption::ThreadsPerCore(_)) {
                return None;
            }
            setting.is_placed = true;
            setting.options.extend((*option != TuneOption::Unbound).then_some(TuneOption::Unbound));
        }
        setting.options.push(option.clone());
        Some(setting)
    }

    /// Whether it has all options of another setting, and more. A setting that was not placed goes on on all CPUs.
    pub(crate) fn extends(&self, other: &Self) -> bool {
        self != other && other.options.iter().all(|option| self.options.contains(option))
    }

    /// The option that it has and another setting has not.
    pub(super) fn beyond(&self, other: &Self) -> Option<&TuneOption> {
        self.options.iter().rfind(|option| !other.options.contains(option))
    }

    /// The words after `numa run`, before the program.
    pub fn words(&self) -> Vec<String> {
        self.options.iter().flat_map(TuneOption::words).collect()
    }

    /// Variables of the environment: names and values.
    pub fn environment(&self) -> Vec<(&str, &str)> {
        self.options.iter().filter_map(TuneOption::variable).collect()
    }

    /// The settings of the machine that it changes: files and what is written there.
    pub fn machine(&self) -> Vec<(&str, &str)> {
        self.options.iter().filter_map(TuneOption::setting).collect()
    }

    /// All options of several settings together; `None` if two exclude each other.
    pub fn together(settings: &[&Self]) -> Option<Self> {
        let mut all = Self { is_placed: settings.iter().any(|one| one.is_placed), options: Vec::new() };
        for option in settings.iter().flat_map(|one| &one.options) {
            let is_same = all.options.contains(option);
            if !is_same && all.options.iter().any(|other| other.kind() == option.kind()) {
                return None;
            }
            all.options.extend((!is_same).then(|| option.clone()));
        }
        Some(all)
    }

    /// What it needs, each once.
    pub fn needs(&self) -> Vec<TuneNeed> {
        let mut needs: Vec<TuneNeed> = self.options.iter().filter_map(TuneOption::need).collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    /// How much it asks of the user, for [`crate::RaceCandidate::rank`]: 0 for the program as it is, then by its options.
    pub fn rank(&self) -> u32 {
        u32::from(self.is_placed) + self.options.len() as u32
    }
}
