//! One thread of a program, stepped by ptrace.

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use numakit_sampling::operand::{AddressSpace, X86Registers};
use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// A program that runs longer is killed: its thread sleeps in a system call that was stepped into.
const PATIENCE: Duration = Duration::from_secs(30);

/// A mapping of the process.
pub struct Mapping {
    pub range: Range<u64>,
    pub executable: bool,
    pub of_file: bool,
}

/// The process's memory.
pub struct Space {
    memory: File,
    pub mappings: Vec<Mapping>,
}

impl Space {
    pub fn object(&self, address: u64) -> Option<u64> {
        self.mapping(address).map(|m| m.range.start)
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let at = self.mappings.partition_point(|m| m.range.end <= address);
        self.mappings.get(at).filter(|m| m.range.contains(&address))
    }
}

impl AddressSpace for Space {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.memory.read_exact_at(into, address).is_ok()
    }

    fn code(&self, address: u64, into: &mut [u8]) -> usize {
        let Some(mapping) = self.mapping(address).filter(|m| m.executable) else { return 0 };
        let count = into.len().min((mapping.range.end - address) as usize);
        if self.read(address, &mut into[..count]) { count } else { 0 }
    }

    fn changes(&self, address: u64) -> bool {
        self.mapping(address).is_none_or(|m| !m.of_file)
    }
}

/// A running program, ended when it is dropped.
pub struct Program {
    child: Child,
    /// Dropped when the program may end.
    alive: Option<Sender<()>>,
    watch: Option<JoinHandle<()>>,
    traced: Option<Pid>,
}

impl Drop for Program {
    fn drop(&mut self) {
        self.alive.take();
        let _ = self.watch.take().map(JoinHandle::join);
        let _ = self.child.kill();
        // The process ends only when the end of its traced thread has been seen.
        if let Some(thread) = self.traced {
            while !matches!(wait(thread), None | Some(WaitStatus::Signaled(..) | WaitStatus::Exited(..))) {}
        }
        let _ = self.child.wait();
    }
}

impl Program {
    /// Starts it, and lets it work.
    pub fn start(words: &[String], warm: Duration) -> Option<Self> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().ok()?;
        let (alive, ended) = std::sync::mpsc::channel::<()>();
        let pid = Pid::from_raw(i32::try_from(child.id()).ok()?);
        let watch = std::thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _ = kill(pid, Signal::SIGKILL);
            }
        });
        std::thread::sleep(warm);
        Some(Self { child, alive: Some(alive), watch: Some(watch), traced: None })
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its busiest thread, to be stepped.
    pub fn attach(&mut self) -> Option<Stepped> {
        let thread = self.busiest()?;
        ptrace::seize(thread, Options::empty()).ok()?;
        self.traced = Some(thread);
        Some(Stepped { thread, signal: None })
    }

    /// The thread that uses most CPU time now.
    fn busiest(&self) -> Option<Pid> {
        let before = self.times()?;
        std::thread::sleep(Duration::from_millis(300));
        let used = |tid: &str, now: u64| now - before.get(tid).copied().unwrap_or(now);
        let (tid, _) = self.times()?.into_iter().max_by_key(|(tid, now)| used(tid, *now))?;
        Some(Pid::from_raw(tid.parse().ok()?))
    }

    /// The CPU time of each thread, in the kernel's ticks.
    fn times(&self) -> Option<HashMap<String, u64>> {
        let folder = format!("/proc/{}/task", self.pid());
        let time = |tid: &str| -> Option<u64> {
            let stat = fs::read_to_string(format!("{folder}/{tid}/stat")).ok()?;
            let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
            Some(fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?)
        };
        let names = fs::read_dir(&folder).ok()?.filter_map(|e| e.ok()?.file_name().into_string().ok());
        Some(names.filter_map(|tid| time(&tid).map(|time| (tid, time))).collect())
    }

    pub fn space(&self) -> Option<Space> {
        let memory = File::open(format!("/proc/{}/mem", self.pid())).ok()?;
        let text = fs::read_to_string(format!("/proc/{}/maps", self.pid())).ok()?;
        let mapping = |line: &str| {
            let mut fields = line.split_whitespace();
            let (from, to) = fields.next()?.split_once('-')?;
            let executable = fields.next()?.contains('x');
            let range = u64::from_str_radix(from, 16).ok()?..u64::from_str_radix(to, 16).ok()?;
            Some(Mapping { range, executable, of_file: fields.nth(3).is_some() })
        };
        Some(Space { memory, mappings: text.lines().filter_map(mapping).collect() })
    }
}

/// The thread's next stop or its end.
fn wait(thread: Pid) -> Option<WaitStatus> {
    waitpid(thread, Some(WaitPidFlag::__WALL)).ok()
}

/// A signal ended it that nobody here sent.
fn has_crashed(status: WaitStatus) -> bool {
    matches!(status, WaitStatus::Signaled(_, signal, _) if signal != Signal::SIGKILL)
}

/// A stopped thread.
pub struct Stepped {
    thread: Pid,
    /// A signal that it receives with the next step.
    signal: Option<Signal>,
}

/// What a step led to.
pub enum Step {
    Done,
    /// A signal came instead.
    Signal,
    Ended,
}

impl Stepped {
    pub fn interrupt(&mut self) -> Option<()> {
        ptrace::interrupt(self.thread).ok()?;
        loop {
            match wait(self.thread)? {
                WaitStatus::PtraceEvent(..) => return Some(()),
                WaitStatus::Stopped(_, signal) => ptrace::cont(self.thread, signal).ok()?,
                status if has_crashed(status) => panic!("{status:?}"),
                WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return None,
                _ => {}
            }
        }
    }

    pub fn resume(&mut self) -> Option<()> {
        ptrace::cont(self.thread, self.signal.take()).ok()
    }

    pub fn step(&mut self) -> Step {
        if ptrace::step(self.thread, self.signal.take()).is_err() {
            return Step::Ended;
        }
        match wait(self.thread) {
            Some(WaitStatus::Stopped(_, Signal::SIGTRAP)) => Step::Done,
            Some(WaitStatus::Stopped(_, signal)) => {
                self.signal = Some(signal);
                Step::Signal
            }
            Some(WaitStatus::PtraceEvent(..)) => Step::Signal,
            Some(status) if has_crashed(status) => panic!("{status:?}"),
            _ => Step::Ended,
        }
    }

    pub fn registers(&self) -> Option<X86Registers> {
        let r = ptrace::getregs(self.thread).ok()?;
        let general = [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
            r.r14, r.r15,
        ];
        let (fs_base, gs_base) = (Some(r.fs_base), Some(r.gs_base));
        Some(X86Registers { general, ip: r.rip, flags: r.eflags, fs_base, gs_base })
    }
}
