//! Settings and their options.

/// An option of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    Allocator(&'static str),
    /// The allocator in this file.
    Preload(String),
    /// Threads of OpenMP that wait, sleep.
    ThreadsWaitAsleep,
    /// Loops of OpenMP whose schedule is that of the runtime get a dynamic one.
    DynamicLoops,
}

/// What a setting needs beyond numa.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TuneNeed {
    /// A kernel that interleaves by weights: Linux 6.9.
    WeightedInterleaving,
    /// A program that is linked dynamically and has the C library's malloc.
    OtherMalloc,
    /// A program that uses OpenMP.
    OpenMp,
}

impl TuneOption {
    /// Options of one kind exclude each other.
    fn kind(&self) -> u8 {
        match self {
            Self::Cores(_) => 0,
            Self::Scatter => 1,
            Self::Unbound => 2,
            Self::Interleave | Self::Weighted => 3,
            Self::ThreadsPerCore(_) => 4,
            Self::HugePages | Self::NoHugePages => 5,
            Self::Allocator(_) | Self::Preload(_) => 6,
            Self::ThreadsWaitAsleep => 7,
            Self::DynamicLoops => 8,
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
            Self::Preload(_) | Self::ThreadsWaitAsleep | Self::DynamicLoops => Vec::new(),
        }
    }

    fn variable(&self) -> Option<(&str, &str)> {
        match self {
            Self::Preload(file) => Some(("LD_PRELOAD", file)),
            Self::ThreadsWaitAsleep => Some(("OMP_WAIT_POLICY", "passive")),
            Self::DynamicLoops => Some(("OMP_SCHEDULE", "dynamic")),
            _ => None,
        }
    }

    fn need(&self) -> Option<TuneNeed> {
        match self {
            Self::Weighted => Some(TuneNeed::WeightedInterleaving),
            Self::Allocator(_) | Self::Preload(_) => Some(TuneNeed::OtherMalloc),
            Self::ThreadsWaitAsleep | Self::DynamicLoops => Some(TuneNeed::OpenMp),
            _ => None,
        }
    }
}

/// A setting: the words of a command line of `numa run`, and variables. The default is the program as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TuneSetting {
    is_placed: bool,
    options: Vec<TuneOption>,
}

impl TuneSetting {
    /// A setting of `numa run` with these options.
    pub fn placed(options: Vec<TuneOption>) -> Self {
        Self { is_placed: true, options }
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
        if !self.is_placed && option.variable().is_none() {
            if matches!(option, TuneOption::ThreadsPerCore(_)) {
                return None;
            }
            setting.is_placed = true;
            setting.options.push(TuneOption::Unbound);
        }
        setting.options.push(option.clone());
        Some(setting)
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
