//! Placement requests.

use crate::check::local_rank;
use crate::lists::{ListError, NumberList};
use numakit_model::plan::Mode;
use numakit_model::suggest;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// What to place, and how. The default is one process of one thread, on the nearest cores,
/// with local memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlacementRequest {
    /// Cores for all processes together; by default those for all threads.
    pub cores: Option<Cores>,
    /// Processes: the ranks of an MPI program.
    pub processes: u32,
    /// Threads of each process; by default as many as fit on its cores.
    pub threads: Option<u32>,
    /// PUs of each core that get a thread.
    pub threads_per_core: u32,
    /// Use every Nth core of a package.
    pub stride: u32,
    /// Which cores.
    pub policy: CorePolicy,
    /// The memory policy.
    pub memory: MemoryRequest,
    /// Only these CPUs.
    pub cpus: Option<NumberList>,
    /// Only CPUs of these nodes.
    pub nodes: Option<NumberList>,
    /// No core that has one of these CPUs.
    pub exclude: Option<NumberList>,
}

impl PlacementRequest {
    /// The request for a program that starts now. Without cores and threads, the program gets all free cores; if an MPI
    /// launcher set these variables, the policy is the one for its rank.
    pub fn for_program(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        if self.cores.is_none() && self.threads.is_none() {
            self.cores = Some(Cores::Auto);
        }
        if let Some(rank) = local_rank(variable).filter(|_| self.processes == 1) {
            self.policy = self.policy.of_rank(rank);
        }
        self
    }
}

impl Default for PlacementRequest {
    fn default() -> Self {
        Self {
            cores: None,
            processes: 1,
            threads: None,
            threads_per_core: 1,
            stride: 1,
            policy: CorePolicy::default(),
            memory: MemoryRequest::default(),
            cpus: None,
            nodes: None,
            exclude: None,
        }
    }
}

/// How many cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// This number.
    Count(u32),
    /// All free cores.
    Auto,
    /// All cores that the process may use. The request is refused if a program holds one of them.
    All,
}

/// Which cores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CorePolicy {
    /// Nearest nodes first, each filled before the next.
    #[default]
    Compact,
    /// Round-robin on nodes that are far apart.
    Scatter,
    /// The same number on each node and on each cache of a node, neighbours together.
    Balanced,
    /// On as many parts of a level as possible, otherwise near each other.
    Spread(Level),
    /// Balanced on as many nodes as provide this many bytes of memory.
    Memory(u64),
    /// Nearest to a device; with [`RANK`] in its name, each process nearest to its own device.
    Near(String),
}

/// The placeholder for the number of a process in the name of a device.
pub const RANK: &str = "{rank}";

/// A level of the machine: parts that cores share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Level {
    L2,
    L3,
    L4,
    Unit,
    Cluster,
    Die,
    Node,
    Package,
    Book,
    Drawer,
    Board,
}

impl Level {
    /// All levels, each with its word and the name of one of its parts.
    pub const ALL: [(Self, &'static str, &'static str); 11] = [
        (Self::Unit, "unit", "unit"),
        (Self::L2, "l2", "L2 cache"),
        (Self::Cluster, "cluster", "cluster"),
        (Self::L3, "l3", "L3 cache"),
        (Self::L4, "l4", "L4 cache"),
        (Self::Die, "die", "die"),
        (Self::Node, "node", "node"),
        (Self::Package, "package", "package"),
        (Self::Book, "book", "book"),
        (Self::Drawer, "drawer", "drawer"),
        (Self::Board, "board", "board"),
    ];

    /// Its word and the name of one of its parts.
    pub fn names(self) -> (&'static str, &'static str) {
        Self::ALL.iter().find(|(level, ..)| *level == self).map_or(("", ""), |(_, word, part)| (word, part))
    }
}

/// The memory policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryRequest {
    /// How nodes are used.
    pub mode: Mode,
    /// Which nodes; by default those of the threads of each process.
    pub nodes: Option<NumberList>,
}

/// An invalid value or combination of values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    /// Not a number, or 0.
    #[error("{what} '{value}' is not a number of at least 1; {fix}")]
    NotANumber {
        /// What is counted.
        what: &'static str,
        /// The value.
        value: String,
        /// What to write.
        fix: &'static str,
    },
    /// An unknown word.
    #[error("{what} '{value}' is not known; {fix}")]
    Unknown {
        /// What was expected.
        what: &'static str,
        /// The value.
        value: String,
        /// What to write.
        fix: String,
    },
    /// Parts of the request that exclude each other.
    #[error("{problem}; {fix}")]
    Contradiction {
        /// Which parts, with their values.
        problem: String,
        /// What to write.
        fix: String,
    },
    /// An invalid list.
    #[error(transparent)]
    List(#[from] ListError),
}

/// Parses a number of at least 1, for `what` such as `processes`.
pub fn number(what: &'static str, word: &str) -> Result<u32, RequestError> {
    let digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let value = if digits { word.parse().ok().filter(|&n| n >= 1) } else { None };
    value.ok_or_else(|| RequestError::NotANumber {
        what,
        value: word.to_owned(),
        fix: "give a whole number such as 4",
    })
}

impl FromStr for Cores {
    type Err = RequestError;
    fn from_str(word: &str) -> Result<Self, RequestError> {
        match word {
            "auto" => Ok(Self::Auto),
            "all" => Ok(Self::All),
            _ => number("number of cores", word).map(Self::Count).map_err(|_| RequestError::NotANumber {
                what: "number of cores",
                value: word.to_owned(),
                fix: "give a whole number such as 4, 'auto' for all that are free, or 'all'",
            }),
        }
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Auto => f.write_str("auto"),
            Self::All => f.write_str("all"),
        }
    }
}

const POLICIES: [&str; 6] = ["compact", "scatter", "balanced", "spread", "memory", "near"];

impl CorePolicy {
    /// The policy of one rank: its number replaces the placeholder in the name of the device.
    #[must_use]
    pub fn of_rank(&self, rank: u32) -> Self {
        match self {
            Self::Near(device) => Self::Near(device.replace(RANK, &rank.to_string())),
            other => other.clone(),
        }
    }
}

impl FromStr for CorePolicy {
    type Err = RequestError;
    fn from_str(text: &str) -> Result<Self, RequestError> {
        let (name, value) = text.split_once(':').map_or((text, None), |(n, v)| (n, Some(v)));
        match (name, value.map(str::trim)) {
            ("compact", None) => Ok(Self::Compact),
            ("scatter", None) => Ok(Self::Scatter),
            ("balanced", None) => Ok(Self::Balanced),
            ("spread", Some(level)) => level_of(text, level).map(Self::Spread),
            ("spread", None) => Err(unknown_policy(text, "name what to spread over: spread:l3")),
            ("memory", Some(size)) => bytes(size).map(Self::Memory),
            ("near", Some(device)) if !device.is_empty() => Ok(Self::Near(device.to_owned())),
            ("memory", None) => Err(unknown_policy(text, "give the size: memory:100G")),
            ("near", _) => Err(unknown_policy(text, "name the device: near:0000:3b:00.0")),
            ("compact" | "scatter" | "balanced", Some(_)) => {
                Err(unknown_policy(text, &format!("'{name}' takes nothing after it")))
            }
            _ => Err(unknown_policy(text, &policies(name))),
        }
    }
}

fn policies(name: &str) -> String {
    match suggest::nearest(name, POLICIES, 1).first() {
        Some(near) if !name.is_empty() => format!("did you mean '{near}'?"),
        _ => "policies are compact, scatter, balanced, spread:LEVEL, memory:SIZE and near:DEVICE".to_owned(),
    }
}

fn level_of(text: &str, name: &str) -> Result<Level, RequestError> {
    let lower = name.to_ascii_lowercase();
    let words = || Level::ALL.iter().map(|(_, word, _)| *word);
    Level::ALL.iter().find(|(_, word, _)| *word == lower).map(|(level, ..)| *level).ok_or_else(|| {
        let fix = match suggest::nearest(&lower, words(), 1).first() {
            Some(near) if lower.len() > 2 => format!("did you mean 'spread:{near}'?"),
            _ => format!("levels are {}", words().collect::<Vec<_>>().join(", ")),
        };
        unknown_policy(text, &fix)
    })
}

fn unknown_policy(text: &str, fix: &str) -> RequestError {
    RequestError::Unknown { what: "policy", value: text.to_owned(), fix: fix.to_owned() }
}

impl fmt::Display for CorePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compact => f.write_str("compact"),
            Self::Scatter => f.write_str("scatter"),
            Self::Balanced => f.write_str("balanced"),
            Self::Spread(level) => write!(f, "spread:{}", level.names().0),
            Self::Memory(bytes) => write!(f, "memory:{}", size(*bytes)),
            Self::Near(device) => write!(f, "near:{device}"),
        }
    }
}

const UNITS: [(u64, &str); 5] = [(50, "P"), (40, "T"), (30, "G"), (20, "M"), (10, "K")];

/// `10G`, `512MiB`, `1.5T`: binary units; a bare number is bytes.
fn bytes(text: &str) -> Result<u64, RequestError> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_uppercase();
    let unit = unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(&unit);
    let shift = match UNITS.iter().find(|(_, name)| *name == unit) {
        Some((shift, _)) => Some(*shift),
        None => unit.is_empty().then_some(0),
    };
    let most = 1u64 << 60;
    // Whole numbers are exact; only fractions go through floating point.
    let whole =
        digits.parse::<u64>().ok().zip(shift).and_then(|(value, shift)| value.checked_mul(1 << shift));
    let fraction = || {
        let value: f64 = digits.parse().ok().filter(|_| digits.contains('.') && !digits.starts_with('.'))?;
        Some((value * (1u64 << shift?) as f64).min(most as f64 * 2.0) as u64)
    };
    match whole.or_else(fraction) {
        Some(value) if (1..=most).contains(&value) => Ok(value),
        _ => Err(RequestError::NotANumber {
            what: "size of memory",
            value: text.to_owned(),
            fix: "write it like 512M, 10G or 2T",
        }),
    }
}

/// The shortest exact form that [`bytes`] reads.
pub(crate) fn size(bytes: u64) -> String {
    let whole = UNITS.iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() as u64 >= *shift);
    whole.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

const MODES: [(&str, Mode); 5] = [
    ("local", Mode::Local),
    ("bind", Mode::Bind),
    ("prefer", Mode::Prefer),
    ("interleave", Mode::Interleave),
    ("weighted", Mode::Weighted),
];

impl FromStr for MemoryRequest {
    type Err = RequestError;
    fn from_str(text: &str) -> Result<Self, RequestError> {
        let (name, nodes) = text.split_once(':').map_or((text, None), |(n, v)| (n, Some(v)));
        let Some((_, mode)) = MODES.iter().find(|(word, _)| *word == name) else {
            let near = suggest::nearest(name, MODES.map(|(word, _)| word), 1);
            let fix = match near.first() {
                Some(near) if !name.is_empty() => format!("did you mean '{near}'?"),
                _ => {
                    "memory is local, bind, prefer, interleave or weighted, with nodes as in bind:0-1".into()
                }
            };
            return Err(RequestError::Unknown { what: "memory", value: text.to_owned(), fix });
        };
        if *mode == Mode::Local && nodes.is_some() {
            return Err(RequestError::Contradiction {
                problem: format!("memory '{text}' is local to the threads and names nodes"),
                fix: "write 'local', or 'prefer' with the nodes".to_owned(),
            });
        }
        let nodes = nodes.map(NumberList::from_str).transpose()?;
        Ok(Self { mode: *mode, nodes })
    }
}

impl fmt::Display for MemoryRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.nodes {
            Some(nodes) => write!(f, "{}:{nodes}", self.mode),
            None => write!(f, "{}", self.mode),
        }
    }
}

/// Serialised as the word of the command line.
macro_rules! as_word {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )*};
}

as_word!(Cores, CorePolicy, MemoryRequest, NumberList);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policy(text: &str) -> String {
        text.parse::<CorePolicy>().map_or_else(|e| e.to_string(), |p| p.to_string())
    }

    #[test]
    fn numbers_are_at_least_one() {
        assert_eq!(number("stride", "4"), Ok(4));
        for bad in ["0", "-1", "", "x", "+1", "1.5", "4294967296", " 1"] {
            let error = number("stride", bad).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("stride '{bad}' is not a number of at least 1; give a whole number such as 4")
            );
        }
    }

    #[test]
    fn cores_are_a_number_or_a_word() {
        assert_eq!("6".parse(), Ok(Cores::Count(6)));
        assert_eq!("auto".parse(), Ok(Cores::Auto));
        assert_eq!("all".parse(), Ok(Cores::All));
        let error = "-6".parse::<Cores>().unwrap_err().to_string();
        assert!(error.contains("'-6'") && error.contains("'auto'"), "{error}");
    }

    #[test]
    fn policies_and_what_is_wrong_with_others() {
        for good in [
            "compact",
            "scatter",
            "balanced",
            "spread:l2",
            "spread:package",
            "memory:10G",
            "near:pci 0000:3b:00.0",
            "near:gpu{rank}",
        ] {
            assert_eq!(policy(good), good);
        }
        assert_eq!(policy("memory:512MiB"), "memory:512M");
        assert_eq!(policy("memory:1.5t"), "memory:1536G");
        assert_eq!(policy("memory:1000"), "memory:1000");
        assert_eq!(policy("spread:L3"), "spread:l3");
        let near: CorePolicy = "near:gpu{rank}".parse().unwrap();
        assert_eq!(near.of_rank(3).to_string(), "near:gpu3");
        assert_eq!(CorePolicy::Scatter.of_rank(3), CorePolicy::Scatter);
        assert_eq!(policy("spread"), "policy 'spread' is not known; name what to spread over: spread:l3");
        assert_eq!(
            policy("spread:pakage"),
            "policy 'spread:pakage' is not known; did you mean 'spread:package'?"
        );
        assert!(policy("spread:l7").contains("levels are unit, l2, cluster, l3"), "{}", policy("spread:l7"));
        assert_eq!(policy("compat"), "policy 'compat' is not known; did you mean 'compact'?");
        assert_eq!(policy("near:"), "policy 'near:' is not known; name the device: near:0000:3b:00.0");
        assert_eq!(policy("memory"), "policy 'memory' is not known; give the size: memory:100G");
        assert_eq!(policy("scatter:2"), "policy 'scatter:2' is not known; 'scatter' takes nothing after it");
        for bad in ["0", "-1G", "10X", "", "1e9", "99999P", ".5G", "1..5G"] {
            let error = policy(&format!("memory:{bad}"));
            assert!(error.contains("write it like 512M") && error.contains(bad), "{error}");
        }
        assert!(policy("").contains("policies are compact"), "{}", policy(""));
    }

    #[test]
    fn memory_with_and_without_nodes() {
        for good in
            ["local", "bind", "prefer:0", "interleave:0-3", "weighted:!1", "bind:+0-1", "interleave:all"]
        {
            assert_eq!(good.parse::<MemoryRequest>().unwrap().to_string(), good);
        }
        for (bad, words) in [
            ("local:0", "names nodes"),
            ("bnd", "did you mean 'bind'?"),
            ("bind:", "empty"),
            ("", "memory is local, bind"),
            ("bind:x", "'x'"),
        ] {
            let error = bad.parse::<MemoryRequest>().unwrap_err().to_string();
            assert!(error.contains(words), "{bad}: {error}");
        }
    }

    #[test]
    fn a_request_is_read_back_from_its_json() {
        let request = PlacementRequest {
            cores: Some(Cores::Auto),
            policy: CorePolicy::Memory(10 << 30),
            memory: "bind:0-1".parse().unwrap(),
            cpus: Some("!0-3".parse().unwrap()),
            ..PlacementRequest::default()
        };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<PlacementRequest>(&text).unwrap(), request);
        assert_eq!(serde_json::from_str::<PlacementRequest>("{}").unwrap(), PlacementRequest::default());
        assert!(serde_json::from_str::<PlacementRequest>(r#"{"policy": "nearby"}"#).is_err());
    }

    proptest! {
        #[test]
        fn any_word_is_read_or_refused(word in ".{0,40}") {
            let _ = word.parse::<Cores>();
            if let Ok(policy) = word.parse::<CorePolicy>() {
                prop_assert_eq!(policy.to_string().parse::<CorePolicy>(), Ok(policy));
            }
            if let Ok(memory) = word.parse::<MemoryRequest>() {
                prop_assert_eq!(memory.to_string().parse::<MemoryRequest>(), Ok(memory));
            }
        }

        #[test]
        fn sizes_are_read_back(bytes in 1u64..(1 << 50)) {
            let policy = CorePolicy::Memory(bytes);
            prop_assert_eq!(policy.to_string().parse::<CorePolicy>(), Ok(policy));
        }
    }

    #[test]
    fn a_program_gets_all_free_cores_and_behind_a_launcher_the_policy_of_its_rank() {
        let near =
            || PlacementRequest { policy: "near:gpu{rank}".parse().unwrap(), ..PlacementRequest::default() };
        let rank = |name: &str| (name == "SLURM_LOCALID").then(|| "3".to_owned());
        let request = near().for_program(rank);
        assert_eq!((request.cores, request.policy.to_string()), (Some(Cores::Auto), "near:gpu3".to_owned()));
        let requested = PlacementRequest { threads: Some(2), processes: 2, ..near() };
        assert_eq!(requested.clone().for_program(rank), requested);
        assert_eq!(near().for_program(|_| None).policy, near().policy);
    }
}
