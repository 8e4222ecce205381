//! The settings of a run, as the user gives them.

use numakit_model::CpuSet;
use numakit_model::numbers::NumberStyle;
use std::time::Duration;
use thiserror::Error;

/// The smallest memory with which there is something to measure.
const MIN_SIZE: u64 = 64 << 10;
/// No machine has more on a node.
const MAX_SIZE: u64 = 1 << 44;
const MIN_TIME: Duration = Duration::from_millis(1);
const MAX_TIME: Duration = Duration::from_secs(3600);
/// More runs of the benchmarks say nothing new.
pub const MAX_RUNS: u32 = 99;

/// A request that no machine can meet.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BenchError {
    /// A size that makes no sense.
    #[error("a size of {given} is outside of {from} to {to}; give a size such as 256M, or omit --size")]
    Size {
        /// What was given.
        given: String,
        /// The least.
        from: String,
        /// The most.
        to: String,
    },
    /// A word that is not a size.
    #[error("'{0}' is not a size; give bytes or a number with K, M, G or T, such as 256M")]
    NotASize(String),
    /// A time that makes no sense.
    #[error(
        "a time of {given:?} is outside of {MIN_TIME:?} to {MAX_TIME:?}; give a time such as 500ms, or omit --time"
    )]
    Time {
        /// What was given.
        given: Duration,
    },
    /// No runs, or too many.
    #[error("{0} runs are outside of 1 to {MAX_RUNS}; give a number such as --runs 5, or omit --runs")]
    Runs(u32),
    /// No benchmark of this name.
    #[error("there is no benchmark '{word}'; there are: {known}")]
    Unknown {
        /// What was given.
        word: String,
        /// All names.
        known: String,
    },
}

/// What is measured, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BenchSettings {
    /// Only these CPUs.
    pub cpus: Option<CpuSet>,
    /// Only these nodes, as places of CPUs and of memory.
    pub nodes: Option<CpuSet>,
    /// Bytes that are used of a node's memory; by default 4 times the caches.
    pub size: Option<u64>,
    /// How long each value is measured.
    pub time: Option<Duration>,
    /// Fewer values for a shorter time.
    pub quick: bool,
    /// How often the benchmarks run; once by default.
    pub runs: Option<u32>,
}

impl BenchSettings {
    /// Refuses what no machine can do.
    pub fn check(&self) -> Result<(), BenchError> {
        let bytes = |size: u64| NumberStyle::Bytes.words(size as f64);
        match (self.size, self.time) {
            _ if !(1..=MAX_RUNS).contains(&self.runs()) => Err(BenchError::Runs(self.runs())),
            (Some(size), _) if !(MIN_SIZE..=MAX_SIZE).contains(&size) => {
                Err(BenchError::Size { given: bytes(size), from: bytes(MIN_SIZE), to: bytes(MAX_SIZE) })
            }
            (_, Some(given)) if !(MIN_TIME..=MAX_TIME).contains(&given) => Err(BenchError::Time { given }),
            _ => Ok(()),
        }
    }

    /// Whether the results are those of the whole machine.
    pub fn is_of_machine(&self) -> bool {
        self.cpus.is_none() && self.nodes.is_none() && self.size.is_none()
    }

    /// How often the benchmarks run.
    pub fn runs(&self) -> u32 {
        self.runs.unwrap_or(1)
    }

    /// How long each value is measured.
    pub fn time(&self) -> Duration {
        self.time.unwrap_or(Duration::from_millis(if self.quick { 100 } else { 500 }))
    }

    /// Parses `4096`, `64K`, `256M`, `1GiB`.
    pub fn size_of(text: &str) -> Result<u64, BenchError> {
        let wrong = || BenchError::NotASize(text.to_owned());
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift =
            match text[digits.len()..].to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
                "" => 0,
                "k" => 10,
                "m" => 20,
                "g" => 30,
                "t" => 40,
                _ => return Err(wrong()),
            };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        number.checked_mul(1 << shift).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let of = |text| BenchSettings::size_of(text).ok();
        assert_eq!(
            [of("4096"), of("64K"), of("2MiB"), of("1g")],
            [Some(4096), Some(65536), Some(2 << 20), Some(1 << 30)]
        );
        assert_eq!([of(""), of("M"), of("-1"), of("1.5G"), of("1X"), of("99999999999T")], [None; 6]);
    }

    #[test]
    fn nonsense_is_refused_with_its_bounds() {
        let size = |size| BenchSettings { size: Some(size), ..Default::default() }.check();
        assert!(size(64 << 10).is_ok() && size(1 << 40).is_ok());
        let refused = size(1).unwrap_err().to_string();
        assert!(refused.contains("64.0 KiB to 16.0 TiB"), "{refused}");
        assert!(size(u64::MAX).is_err());
        let time = |time| BenchSettings { time: Some(time), ..Default::default() }.check();
        assert!(time(Duration::from_millis(10)).is_ok());
        let refused = time(Duration::ZERO).unwrap_err().to_string();
        assert!(refused.contains("1ms to 3600s"), "{refused}");
        let runs = |runs| BenchSettings { runs: Some(runs), ..Default::default() }.check();
        assert!(runs(1).is_ok() && runs(99).is_ok() && runs(0).is_err());
        assert!(runs(100).unwrap_err().to_string().starts_with("100 runs are outside of 1 to 99"));
    }
}
