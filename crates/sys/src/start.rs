//! Starting a program with the settings that are applied between fork and exec.

use crate::check;
use crate::huge_pages::HugePages;
use crate::image::Image;
use crate::policy::MemoryPolicy;
use numakit_model::CpuSet;
use rustix::io::{FdFlags, fcntl_setfd, write};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;
use std::ffi::OsString;
use std::num::NonZeroU64;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::PathBuf;
use std::{fmt, io};

/// A program with its settings. The program inherits settings that are `None` from this process.
#[derive(Debug, Clone, Default)]
pub struct PreparedCommand {
    /// The program's file.
    pub file: PathBuf,
    /// The name that the program is called by, and its arguments.
    pub words: Vec<OsString>,
    /// All of the program's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// An additional variable whose value is the PID of the started process.
    pub process_variable: Option<&'static str>,
    /// The CPUs on which the program starts. The kernel allocates there what it sets up for the program.
    pub first: Option<CpuSet>,
    /// The CPUs that it may run on.
    pub cpus: Option<CpuSet>,
    /// An open descriptor that it inherits under its number; all others are closed at exec.
    pub descriptor: Option<RawFd>,
    /// An open `cgroup.procs`. The program enters that control group before anything else, as entering one may change its
    /// mask.
    pub cgroup: Option<RawFd>,
    /// Where its memory comes from.
    pub memory: Option<MemoryPolicy>,
    /// The scheduling class.
    pub scheduler: Option<Scheduler>,
    /// The timer slack in nanoseconds.
    pub timer_slack: Option<u64>,
    /// When the kernel gives it huge pages.
    pub huge_pages: Option<HugePages>,
    /// The stack limit of its main thread, and the default of other threads, in bytes.
    pub stack: Option<u64>,
    /// The tag of it and its descendants; set if possible: see [`crate::tag`].
    pub tag: Option<u64>,
}

/// A scheduling class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    /// The usual scheduling class.
    Other,
    /// For programs that compute and do not wait.
    Batch,
    /// Only while no other thread wants the CPU.
    Idle,
    /// Real-time with this priority, until it waits.
    Fifo(u32),
    /// Real-time with this priority, in time slices with others of the same priority.
    RoundRobin(u32),
}

impl Scheduler {
    fn class(self) -> (i32, i32) {
        match self {
            Self::Other => (libc::SCHED_OTHER, 0),
            Self::Batch => (libc::SCHED_BATCH, 0),
            Self::Idle => (libc::SCHED_IDLE, 0),
            Self::Fifo(priority) => (libc::SCHED_FIFO, priority as i32),
            Self::RoundRobin(priority) => (libc::SCHED_RR, priority as i32),
        }
    }

    fn set(self) -> io::Result<()> {
        let (class, priority) = self.class();
        let param = libc::sched_param { sched_priority: priority };
        // SAFETY: the parameter outlives the call.
        check(unsafe { libc::sched_setscheduler(0, class, &param) } as i64).map(drop)
    }
}

/// Steps between fork and exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The control group.
    Cgroup,
    /// The mask of CPUs.
    Cpus,
    /// The memory policy.
    Memory,
    /// The scheduling class.
    Scheduler,
    /// The timer slack.
    TimerSlack,
    /// Huge pages.
    HugePages,
    /// The limit of the stack.
    Stack,
    /// The descriptor that the program inherits.
    Descriptor,
}

const STAGES: [Stage; 8] = [
    Stage::Cgroup,
    Stage::Cpus,
    Stage::Memory,
    Stage::Scheduler,
    Stage::TimerSlack,
    Stage::HugePages,
    Stage::Stack,
    Stage::Descriptor,
];

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroup => "its control group cannot be entered",
            Self::Cpus => "its CPUs cannot be set",
            Self::Memory => "its memory policy cannot be set",
            Self::Scheduler => "its scheduling class cannot be set",
            Self::TimerSlack => "its timer slack cannot be set",
            Self::HugePages => "its use of huge pages cannot be set",
            Self::Stack => "the limit of its stack cannot be set",
            Self::Descriptor => "the descriptor of its locks cannot be inherited",
        })
    }
}

/// A step between fork and exec that failed; it is in the [`io::Error`] of [`PreparedCommand::spawn`]. An error without it
/// is one of exec.
#[derive(Debug)]
pub struct FailedStep {
    /// The step.
    pub stage: Stage,
    /// The error.
    pub error: io::Error,
    /// The fix.
    pub fix: String,
}

impl fmt::Display for FailedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.stage, self.error, self.fix)
    }
}

impl std::error::Error for FailedStep {}

/// The child returns one number, with the errno in its lower half and the stage (from 1) in the upper one.
const HALF: u32 = 16;

impl Stage {
    fn report(self, error: &io::Error) -> io::Error {
        let number = error.raw_os_error().unwrap_or(libc::EINVAL) & 0xffff;
        let stage = STAGES.iter().position(|s| *s == self).unwrap_or_default() as i32 + 1;
        io::Error::from_raw_os_error(stage << HALF | number)
    }
}

impl PreparedCommand {
    /// Starts it as a child, and returns the child's PID. It inherits the signals and streams that this process was started
    /// with. An error contains [`FailedStep`] if a setting could not be applied.
    pub fn spawn(&self) -> io::Result<u32> {
        self.image()?.start(|| self.prepare()).map_err(|error| self.decode(error))
    }

    /// Replaces this process by the program; returns only if that fails.
    pub fn exec(&self) -> io::Error {
        match self.image() {
            Ok(image) => self.decode(image.exec(|| self.prepare())),
            Err(error) => error,
        }
    }

    fn image(&self) -> io::Result<Image> {
        Image::new(&self.file, &self.words, &self.environment, self.process_variable)
    }

    /// The error for the child's number.
    fn decode(&self, error: io::Error) -> io::Error {
        let number = error.raw_os_error().unwrap_or_default();
        let stage = usize::try_from(number >> HALF).ok().and_then(|at| at.checked_sub(1));
        match stage.and_then(|at| STAGES.get(at)) {
            Some(&stage) => {
                let error = io::Error::from_raw_os_error(number & 0xffff);
                io::Error::new(error.kind(), FailedStep { stage, error, fix: self.fix(stage) })
            }
            None => error,
        }
    }

    fn fix(&self, stage: Stage) -> String {
        let fix = match stage {
            Stage::Scheduler => match self.scheduler {
                Some(Scheduler::Fifo(level) | Scheduler::RoundRobin(level)) => {
                    return format!("real-time needs root, CAP_SYS_NICE or 'ulimit -r {level}'");
                }
                _ => "omit --sched",
            },
            Stage::Cpus => {
                let cpus = self.cpus.as_ref().map(ToString::to_string).unwrap_or_default();
                return format!("CPUs {cpus} may have gone offline, or a cpuset changed; try again");
            }
            Stage::Cgroup => "omit --isolate",
            Stage::Memory => "a node may have gone offline, or a cpuset changed; try again",
            Stage::Stack => "give a smaller --stack",
            Stage::TimerSlack => "omit --slack",
            Stage::HugePages => "omit --thp",
            Stage::Descriptor => "try again, or use --share",
        };
        fix.to_owned()
    }

    /// Applies the settings in the child. Makes only system calls and does not allocate.
    fn prepare(&self) -> io::Result<()> {
        let stage = |stage: Stage, result: io::Result<()>| result.map_err(|error| stage.report(&error));
        if let Some(group) = self.cgroup {
            stage(Stage::Cgroup, enter(group))?;
        }
        if let Some(stack) = self.stack {
            stage(Stage::Stack, limit_stack(stack))?;
        }
        if let Some(huge_pages) = self.huge_pages {
            stage(Stage::HugePages, huge_pages.set())?;
        }
        if let Some(slack) = self.timer_slack {
            stage(
                Stage::TimerSlack,
                set_current_timer_slack(NonZeroU64::new(slack)).map_err(io::Error::from),
            )?;
        }
        if let Some(scheduler) = self.scheduler {
            stage(Stage::Scheduler, scheduler.set())?;
        }
        if let Some(first) = &self.first {
            // Starting on these CPUs is an optimisation, so a failure is no error.
            let _ = crate::sched::set_affinity(first);
        }
        if let Some(cpus) = &self.cpus {
            stage(Stage::Cpus, crate::sched::set_affinity(cpus))?;
        }
        if let Some(memory) = &self.memory {
            stage(Stage::Memory, memory.set())?;
        }
        if let Some(tag) = self.tag {
            let _ = crate::tag::set(tag);
        }
        if let Some(descriptor) = self.descriptor {
            // SAFETY: the caller keeps it open until exec.
            let kept = fcntl_setfd(unsafe { BorrowedFd::borrow_raw(descriptor) }, FdFlags::empty());
            stage(Stage::Descriptor, kept.map_err(io::Error::from))?;
        }
        crate::inherited::restore()
    }
}

/// Moves this process into the group.
fn enter(group: RawFd) -> io::Result<()> {
    // SAFETY: the caller keeps the group's file open until exec.
    write(unsafe { BorrowedFd::borrow_raw(group) }, b"0")?;
    Ok(())
}

fn limit_stack(bytes: u64) -> io::Result<()> {
    Ok(setrlimit(Resource::Stack, Rlimit { current: Some(bytes), ..getrlimit(Resource::Stack) })?)
}

/// The hard limit of stacks in bytes; `None` if there is no limit.
pub fn max_stack() -> Option<u64> {
    getrlimit(Resource::Stack).maximum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn shell(script: &str) -> PreparedCommand {
        let words = ["sh", "-c", script].map(OsString::from).to_vec();
        PreparedCommand {
            file: "/bin/sh".into(),
            words,
            environment: std::env::vars_os().collect(),
            ..PreparedCommand::default()
        }
    }

    /// What a shell with these settings writes to the file `$OUT`.
    fn written(mut start: PreparedCommand, name: &str) -> String {
        let path = std::env::temp_dir().join(format!("numakit-start-{name}-{}", std::process::id()));
        start.environment.push(("OUT".into(), path.clone().into()));
        assert_eq!(crate::image::reap(start.spawn().unwrap()), 0);
        let mut text = String::new();
        std::fs::File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        std::fs::remove_file(&path).unwrap();
        text
    }

    #[test]
    fn a_program_may_leave_its_first_cpu() {
        let allowed = crate::sched::affinity().unwrap();
        let last = allowed.last().unwrap();
        let start = PreparedCommand {
            first: Some(CpuSet::range(last, last)),
            cpus: Some(allowed.clone()),
            ..shell("cat /proc/self/status >$OUT 2>&1")
        };
        let text = written(start, "first");
        assert!(text.contains(&format!("Cpus_allowed_list:\t{allowed}\n")), "{text}");
        // A CPU that it may not use is not an error.
        let start = PreparedCommand { first: Some(CpuSet::range(8191, 8191)), ..shell("echo ran >$OUT") };
        assert_eq!(written(start, "nowhere"), "ran\n");
    }

    #[test]
    fn a_program_gets_its_settings() {
        let cpu = crate::sched::affinity().unwrap().last().unwrap();
        let start = PreparedCommand {
            cpus: Some(CpuSet::range(cpu, cpu)),
            memory: Some(MemoryPolicy::preferred(0)),
            scheduler: Some(Scheduler::Batch),
            stack: Some(3 << 20),
            huge_pages: Some(HugePages::Off),
            ..shell("(ulimit -s; cat /proc/self/status /proc/self/stat /proc/self/numa_maps) >$OUT 2>&1")
        };
        let text = written(start, "all");
        assert!(text.starts_with("3072\n"), "{text}");
        assert!(text.contains(&format!("Cpus_allowed_list:\t{cpu}\n")), "{text}");
        if let Some(line) = text.lines().find(|line| line.starts_with("THP_enabled")) {
            assert_eq!(line, "THP_enabled:\t0");
        }
        // The scheduling class is the 41st value; the second may hold blanks but here is `(cat)`.
        let stat = text.lines().find(|line| line.contains(" (cat) ")).unwrap();
        assert_eq!(stat.split(' ').nth(40), Some("3"), "{stat}");
        if std::path::Path::new("/proc/self/numa_maps").exists() {
            assert!(text.contains(" prefer:0 ") || text.contains(" prefer=relative:0 "), "{text}");
        }
    }

    #[test]
    fn an_error_names_the_failed_step() {
        let failed = |start: PreparedCommand| {
            let error = start.spawn().unwrap_err();
            error.get_ref().and_then(|e| e.downcast_ref::<FailedStep>()).map(|f| f.stage)
        };
        let none = Some(CpuSet::range(16_000, 16_000));
        assert_eq!(failed(PreparedCommand { cpus: none, ..shell("true") }), Some(Stage::Cpus));
        let nowhere = Some(MemoryPolicy::bind(&CpuSet::range(1000, 1000)));
        assert_eq!(failed(PreparedCommand { memory: nowhere, ..shell("true") }), Some(Stage::Memory));
        let urgent = Some(Scheduler::Fifo(100));
        assert_eq!(failed(PreparedCommand { scheduler: urgent, ..shell("true") }), Some(Stage::Scheduler));
        assert_eq!(
            failed(PreparedCommand { descriptor: Some(9999), ..shell("true") }),
            Some(Stage::Descriptor)
        );
        let text = PreparedCommand { scheduler: urgent, ..shell("true") }.spawn().unwrap_err().to_string();
        assert!(
            text.starts_with("its scheduling class cannot be set: ") && text.contains("-r 100"),
            "{text}"
        );
        let missing = PreparedCommand { file: "/no/such/program".into(), ..PreparedCommand::default() };
        assert_eq!(failed(missing.clone()), None);
        assert_eq!(crate::command::start_failure_status(&missing.spawn().unwrap_err()), 127);
    }
}
