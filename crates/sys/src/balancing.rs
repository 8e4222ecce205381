//! The kernel's automatic NUMA balancing, switched on for a moment: it marks pages, and the next use of each marked page is
//! a fault that tells which thread used it. This is a setting of the whole machine, so it is restored on every way out.
//! Meanwhile a file has the settings from before; if a program is killed, a later one finds there what is still switched on.

use crate::proc::TaskDir;
use crate::{SysRoot, shared_ring};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

const MODE: &str = "proc/sys/kernel/numa_balancing";
/// Where the settings of the scan are, since Linux 5.13 and before it.
const SCANS: [&str; 2] = ["sys/kernel/debug/sched/numa_balancing/", "proc/sys/kernel/numa_balancing_"];
/// Settings with which the kernel marks all pages of a process four times a second.
const SCAN: [(&str, &str); 4] = [
    ("scan_delay_ms", "50"),
    ("scan_period_max_ms", "250"),
    ("scan_period_min_ms", "250"),
    ("scan_size_mb", "256"),
];
/// The mode that marks pages of all nodes.
const NORMAL: u32 = 1;
/// The file with the settings from before, as long as balancing is switched on.
const BEFORE: &str = "run/numakit-balancing";

/// Files with what they contain.
type Settings = Vec<(PathBuf, String)>;

/// Why balancing cannot be switched on.
#[derive(Debug, Error)]
pub enum BalancingError {
    /// The kernel has no balancing.
    #[error("this kernel has no NUMA balancing; boot a kernel that is built with CONFIG_NUMA_BALANCING")]
    Missing,
    /// Another program has switched balancing on.
    #[error("process {0} has switched NUMA balancing on; wait until it has ended")]
    Busy(u32),
    /// A program that was killed has left balancing switched on.
    #[error("{0}")]
    Left(LeftBehind),
    /// A file cannot be written.
    #[error(
        "cannot write {path}: {error}; NUMA balancing is a setting of the whole machine: run numa as root, outside of containers"
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// What a program that was killed has left on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("kernel.numa_balancing is still switched on by process {process}, which was killed; as root: {}", self.command())]
pub struct LeftBehind {
    /// The program.
    pub process: u32,
    /// The files of the settings, with what they contained before.
    before: Settings,
    record: PathBuf,
}

impl LeftBehind {
    /// The command that restores what was there before.
    pub fn command(&self) -> String {
        let restore = |(path, value): &(PathBuf, String)| format!("echo {value} >{}; ", path.display());
        let all: String = self.before.iter().map(restore).collect();
        format!("{all}rm {}", self.record.display())
    }
}

/// The files of the kernel.
#[derive(Debug, Clone)]
pub struct BalancingFiles {
    top: PathBuf,
}

impl Default for BalancingFiles {
    fn default() -> Self {
        Self { top: PathBuf::from("/") }
    }
}

impl BalancingFiles {
    /// Whether balancing is switched on; `None` if the kernel has none.
    pub fn is_on(&self) -> Option<bool> {
        let mode = fs::read_to_string(self.top.join(MODE)).ok()?;
        Some(mode.trim().parse::<u32>().is_ok_and(|mode| mode & NORMAL != 0))
    }

    /// Switches balancing on until the result is dropped.
    pub fn switch_on(&self) -> Result<BalancingSwitch, BalancingError> {
        let was_on = self.is_on().ok_or(BalancingError::Missing)?;
        let before = self.settings();
        self.note(&before)?;
        let switch = BalancingSwitch { before, record: self.top.join(BEFORE), was_on };
        let wanted = SCAN.iter().map(|(name, value)| (*name, *value)).chain([("numa_balancing", "1")]);
        for (name, value) in wanted {
            let Some((path, _)) =
                switch.before.iter().find(|(path, _)| path.to_string_lossy().ends_with(name))
            else {
                continue;
            };
            fs::write(path, value).map_err(|error| BalancingError::Write { path: path.clone(), error })?;
        }
        Ok(switch)
    }

    /// The settings that are to be changed, as they are now. The switch itself is first, so that it is also restored first.
    fn settings(&self) -> Settings {
        let scan = |(name, _): &(&str, &str)| {
            let mut paths = SCANS.iter().map(|place| self.top.join(format!("{place}{name}")));
            paths.find_map(|path| Some((path.clone(), fs::read_to_string(path).ok()?)))
        };
        let mode = fs::read_to_string(self.top.join(MODE)).ok().map(|value| (self.top.join(MODE), value));
        let all = mode.into_iter().chain(SCAN.iter().filter_map(scan));
        all.map(|(path, value)| (path, value.trim().to_owned())).collect()
    }

    /// Writes down the settings from before, unless another program has done so already.
    fn note(&self, before: &[(PathBuf, String)]) -> Result<(), BalancingError> {
        let path = self.top.join(BEFORE);
        let failed = |error| BalancingError::Write { path: path.clone(), error };
        let this = std::process::id();
        let mut text = format!("{this} {}\n", started(this).unwrap_or(0));
        before.iter().for_each(|(path, value)| text.push_str(&format!("{value} {}\n", path.display())));
        match File::create_new(&path) {
            Ok(mut file) => file.write_all(text.as_bytes()).map_err(failed),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(match self.left_behind() {
                Some(left) => BalancingError::Left(left),
                None => BalancingError::Busy(read(&path).map_or(0, |(process, ..)| process)),
            }),
            Err(error) => Err(failed(error)),
        }
    }

    /// The settings that a program left on when it was killed, if there was one.
    pub fn left_behind(&self) -> Option<LeftBehind> {
        let record = self.top.join(BEFORE);
        let (process, start, before) = read(&record)?;
        has_ended(&SysRoot::host(), process, start).then_some(LeftBehind { process, before, record })
    }
}

/// When a process was started, in ticks since the boot.
fn started(process: u32) -> Option<u64> {
    Some(TaskDir::of(&SysRoot::host(), process).stat().ok()?.start)
}

/// Whether the process with this number and start has ended. If it cannot be looked at, it may still run: this process may
/// have no descriptor left, or /proc may hide processes of other users.
fn has_ended(root: &SysRoot, process: u32, start: u64) -> bool {
    match TaskDir::of(root, process).stat() {
        Ok(stat) => stat.start != start,
        Err(error) => error.is_missing() && !shared_ring::exists(process),
    }
}

/// Reads a record: the process, its start, and the files with what they contained before.
fn read(record: &Path) -> Option<(u32, u64, Settings)> {
    let text = fs::read_to_string(record).ok()?;
    let (first, rest) = text.split_once('\n')?;
    let (process, start) = first.split_once(' ')?;
    let setting =
        |line: &str| line.split_once(' ').map(|(value, path)| (PathBuf::from(path), value.to_owned()));
    Some((process.parse().ok()?, start.parse().ok()?, rest.lines().filter_map(setting).collect()))
}

/// Balancing is switched on. Dropping it restores what was there before.
#[derive(Debug)]
pub struct BalancingSwitch {
    before: Settings,
    record: PathBuf,
    /// Whether balancing was on before. The kernel then moves pages anyway.
    pub was_on: bool,
}

impl Drop for BalancingSwitch {
    fn drop(&mut self) {
        let restored = self.before.iter().filter(|(path, value)| fs::write(path, value).is_ok()).count();
        // If a setting could not be restored, the record stays, so that a later program finds it.
        if restored == self.before.len() {
            _ = fs::remove_file(&self.record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::FileTree;

    /// A folder with files as the kernel has them.
    struct Machine(PathBuf);

    impl Machine {
        fn new(name: &str, mode: &str) -> Self {
            let top = std::env::temp_dir().join(format!("numakit-balancing-{name}-{}", std::process::id()));
            for (path, value) in
                [("scan_delay_ms", "1000"), ("scan_period_max_ms", "60000"), ("scan_size_mb", "128")]
            {
                let path = top.join(format!("{}{path}", SCANS[0]));
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("{value}\n")).unwrap();
            }
            fs::create_dir_all(top.join(MODE).parent().unwrap()).unwrap();
            fs::create_dir_all(top.join("run")).unwrap();
            fs::write(top.join(MODE), format!("{mode}\n")).unwrap();
            Self(top)
        }

        fn files(&self) -> BalancingFiles {
            BalancingFiles { top: self.0.clone() }
        }

        fn values(&self) -> [String; 4] {
            let scan = |name: &str| format!("{}{name}", SCANS[0]);
            [MODE.to_owned(), scan("scan_delay_ms"), scan("scan_period_max_ms"), scan("scan_size_mb")]
                .map(|path| fs::read_to_string(self.0.join(path)).unwrap().trim().to_owned())
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_there_before_comes_back() {
        for (mode, was_on) in [("0", false), ("1", true), ("2", false)] {
            let machine = Machine::new(&format!("back-{mode}"), mode);
            let files = machine.files();
            assert_eq!(files.is_on(), Some(was_on));
            let switch = files.switch_on().unwrap();
            assert_eq!(
                (machine.values(), switch.was_on),
                (["1", "50", "250", "256"].map(str::to_owned), was_on)
            );
            // It is in use by this process, which runs.
            assert!(files.left_behind().is_none());
            let again = files.switch_on().unwrap_err();
            assert!(matches!(again, BalancingError::Busy(process) if process == std::process::id()));
            drop(switch);
            assert_eq!(machine.values(), [mode, "1000", "60000", "128"].map(str::to_owned));
            assert!(files.switch_on().is_ok());
        }
    }

    #[test]
    fn what_a_killed_program_left_on_is_told_with_the_command() {
        let machine = Machine::new("killed", "0");
        let files = machine.files();
        let switch = files.switch_on().unwrap();
        let record = machine.0.join(BEFORE);
        // As if the process had been killed, and another one had its number.
        let text = fs::read_to_string(&record).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let (process, _) = first.split_once(' ').unwrap();
        fs::write(&record, format!("{process} 1\n{rest}")).unwrap();
        std::mem::forget(switch);
        let left = files.left_behind().unwrap();
        assert_eq!(left.process, std::process::id());
        assert!(matches!(files.switch_on(), Err(BalancingError::Left(_))));
        assert!(std::process::Command::new("sh").args(["-c", &left.command()]).status().unwrap().success());
        assert_eq!(
            (machine.values(), files.left_behind()),
            (["0", "1000", "60000", "128"].map(str::to_owned), None)
        );
    }

    #[test]
    fn a_process_that_cannot_be_looked_at_has_not_ended() {
        let this = std::process::id();
        let start = started(this).unwrap();
        let root = SysRoot::host();
        assert!(!has_ended(&root, this, start) && has_ended(&root, this, start + 1));
        assert!(has_ended(&root, 4_194_305, start));
        // As /proc hides it, and as a read that fails.
        let mut tree = FileTree::new();
        assert!(!has_ended(&SysRoot::of_tree(tree.clone()), this, start));
        tree.file(&format!("/proc/{this}/stat"), "");
        assert!(!has_ended(&SysRoot::of_tree(tree), this, start));
    }

    #[test]
    fn a_kernel_without_it_is_said() {
        let machine = Machine::new("without", "0");
        fs::remove_file(machine.0.join(MODE)).unwrap();
        assert!(matches!(machine.files().switch_on(), Err(BalancingError::Missing)));
        assert_eq!(machine.files().is_on(), None);
    }
}
