//! Options of a launch other than cores and memory, and their syntax.

use crate::LaunchError;
use crate::apply::RunCure;
use crate::collectives::{Collectives, CollectivesOption};
use crate::loops::AdaptiveLoops;
use numakit_sys::SysRoot;
use numakit_sys::huge_pages::{HugePages, SETTING, Setting};
use numakit_sys::start::{Scheduler, max_stack};
use std::path::PathBuf;
use thiserror::Error;

/// Options of a launch other than cores and memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunOptions {
    /// When the kernel uses huge pages.
    pub huge_pages: Option<HugePages>,
    /// The stack size limit in bytes.
    pub stack: Option<u64>,
    /// The scheduling class.
    pub scheduler: Option<Scheduler>,
    /// The timer slack in nanoseconds.
    pub timer_slack: Option<u64>,
    /// The program runs without its memory policy if policies are refused.
    pub memory_try: bool,
    /// Other programs may use the program's cores too.
    pub shared: bool,
    /// Processes that the program starts are not placed.
    pub no_inherit: bool,
    /// The main thread may run on all CPUs of the program.
    pub no_bind_main: bool,
    /// The library prints what it does.
    pub verbose: bool,
    /// The allocator that replaces the program's own.
    pub allocator: Option<Allocator>,
    /// What its objects get.
    pub cure: Option<RunCure>,
    /// How its OpenMP loops run; `None` as the program says.
    pub loops: Option<AdaptiveLoops>,
    /// What writes down its calls of MPI.
    pub mpi: Option<MpiObserver>,
    /// Its collectives of MPI; `None` for those of its MPI.
    pub collectives: Option<Collectives>,
}

/// An allocator that a program preloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocator {
    /// Its library.
    pub library: PathBuf,
    /// Its profile.
    pub profile: &'static str,
}

/// The library that writes down calls of MPI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiObserver {
    /// The library.
    pub library: PathBuf,
    /// The variable that names the file to it, and its value.
    pub variable: (&'static str, String),
}

impl RunOptions {
    /// Whether something is to be read when the program has ended, so that this process must not become the program.
    pub(crate) fn is_awaited(&self) -> bool {
        let measures = |collectives: &Collectives| collectives.which == CollectivesOption::Measure;
        self.mpi.is_some() || self.collectives.as_ref().is_some_and(measures)
    }

    /// Refuses options that the kernel or a limit would refuse later. The text is a warning if the machine's setting
    /// of huge pages prevents the option.
    pub fn check(&self, root: &SysRoot) -> Result<Option<String>, LaunchError> {
        if let (Some(requested), Some(limit)) = (self.stack, max_stack())
            && requested > limit
        {
            return Err(LaunchError::Stack { requested, limit });
        }
        let Some(huge_pages) = self.huge_pages else { return Ok(None) };
        huge_pages.attempt().map_err(|error| LaunchError::HugePages { huge_pages, error })?;
        Ok(prevented(huge_pages, Setting::read(root)))
    }
}

/// Why the machine's setting prevents a mode of huge pages.
fn prevented(requested: HugePages, setting: Option<Setting>) -> Option<String> {
    let effect = match (requested, setting) {
        (HugePages::Off, _)
        | (HugePages::On, Some(Setting::Always))
        | (HugePages::Advised, Some(Setting::Always | Setting::Advised)) => return None,
        (_, None) => return Some("this kernel has no huge pages, so --thp has no effect".to_owned()),
        (_, Some(Setting::Never)) => "the program gets no huge pages",
        (_, Some(Setting::Advised)) => {
            "only malloc gets huge pages, and memory for which the program calls madvise"
        }
    };
    let setting = setting.map_or_else(String::new, |setting| setting.to_string());
    Some(format!("{effect}, because the machine is set to '{setting}'; as root: echo always > {SETTING}"))
}

/// Why the kernel does not use huge pages for all memory, and the fix.
pub fn few_huge_pages(setting: Option<Setting>) -> Option<String> {
    let (now, fix) = match setting {
        Some(Setting::Always) => return None,
        Some(setting) => (
            format!("set to '{setting}'"),
            format!(
                "as root: echo always > {SETTING}, or give --no-thp if the program runs better without them"
            ),
        ),
        None => (
            "not supported by this kernel".to_owned(),
            "use a kernel that is built with CONFIG_TRANSPARENT_HUGEPAGE".to_owned(),
        ),
    };
    Some(format!("transparent huge pages are {now}, which may reduce performance; {fix}"))
}

/// An invalid value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// A real-time class without its priority.
    #[error("'{text}' has no priority from 1 to 99; write {class}:10")]
    Priority {
        /// The value.
        text: String,
        /// The class.
        class: String,
    },
    /// An unknown scheduling class.
    #[error("'{0}' is not one of other, batch, idle, fifo:N and rr:N")]
    Class(String),
    /// A stack that is too small for a thread.
    #[error("{0} bytes are too few for a stack; give at least 16K")]
    SmallStack(u64),
    /// Not a size.
    #[error("'{0}' is not a size such as 16M")]
    Size(String),
}

/// Parses a scheduling class: `other`, `batch`, `idle`, `fifo:N` or `rr:N`.
pub fn scheduler(text: &str) -> Result<Scheduler, OptionError> {
    let (name, priority) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
    let level = || match priority.map(str::parse) {
        Some(Ok(level @ 1..=99)) => Ok(level),
        _ => Err(OptionError::Priority { text: text.to_owned(), class: name.to_owned() }),
    };
    match (name, priority) {
        ("other", None) => Ok(Scheduler::Other),
        ("batch", None) => Ok(Scheduler::Batch),
        ("idle", None) => Ok(Scheduler::Idle),
        ("fifo", _) => level().map(Scheduler::Fifo),
        ("rr", _) => level().map(Scheduler::RoundRobin),
        _ => Err(OptionError::Class(text.to_owned())),
    }
}

/// The smallest stack of a thread in glibc.
const MIN_STACK: u64 = 16 << 10;

/// Parses a size: bytes, or with K, M or G.
pub fn size(text: &str) -> Result<u64, OptionError> {
    let trimmed = text.trim_end_matches("iB");
    let (digits, factor) = match trimmed.as_bytes().last() {
        Some(b'K' | b'k') => (&trimmed[..trimmed.len() - 1], 1u64 << 10),
        Some(b'M' | b'm') => (&trimmed[..trimmed.len() - 1], 1 << 20),
        Some(b'G' | b'g') => (&trimmed[..trimmed.len() - 1], 1 << 30),
        _ => (trimmed, 1),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes.ok_or_else(|| OptionError::Size(text.to_owned()))
}

/// Parses the size of a stack.
pub fn stack(text: &str) -> Result<u64, OptionError> {
    match size(text)? {
        bytes if bytes >= MIN_STACK => Ok(bytes),
        bytes => Err(OptionError::SmallStack(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_sizes_are_read() {
        assert_eq!(scheduler("batch"), Ok(Scheduler::Batch));
        assert_eq!(scheduler("fifo:7"), Ok(Scheduler::Fifo(7)));
        assert_eq!(scheduler("rr:99"), Ok(Scheduler::RoundRobin(99)));
        for bad in ["", "fifo", "fifo:0", "fifo:100", "batch:1", "rr:x", "deadline"] {
            assert!(scheduler(bad).is_err(), "{bad}");
        }
        assert_eq!((stack("16M"), stack("64KiB"), stack("65536")), (Ok(16 << 20), Ok(64 << 10), Ok(65536)));
        for bad in ["", "0", "M", "-1", "1K", "99999999999G", "16T"] {
            assert!(stack(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn few_huge_pages_have_a_reason_and_a_fix() {
        assert_eq!(few_huge_pages(Some(Setting::Always)), None);
        assert!(few_huge_pages(Some(Setting::Never)).unwrap().contains("set to 'never'"));
        assert!(few_huge_pages(Some(Setting::Advised)).unwrap().contains("as root: echo always > /sys/"));
        assert!(few_huge_pages(None).unwrap().contains("not supported"));
    }

    #[test]
    fn a_setting_that_prevents_huge_pages_is_a_warning() {
        use HugePages::{Advised, Off, On};
        for (requested, setting) in [
            (Off, None),
            (Off, Some(Setting::Never)),
            (On, Some(Setting::Always)),
            (Advised, Some(Setting::Advised)),
        ] {
            assert_eq!(prevented(requested, setting), None);
        }
        assert!(
            prevented(On, Some(Setting::Never)).unwrap().contains("set to 'never'; as root: echo always")
        );
        assert!(prevented(On, Some(Setting::Advised)).unwrap().contains("only malloc gets huge pages"));
        assert!(prevented(Advised, None).unwrap().contains("no huge pages"));
    }

    #[test]
    fn a_stack_above_the_limit_is_refused() {
        let options = RunOptions { stack: Some(u64::MAX), ..RunOptions::default() };
        match max_stack() {
            None => numakit_skips::MACHINE.skip("stacks are not limited here"),
            Some(_) => assert!(matches!(options.check(&SysRoot::host()), Err(LaunchError::Stack { .. }))),
        }
    }
}
