//! One thread of a program, stepped by ptrace.

use numakit_sampling::operand::{AddressSpace, X86Registers, sampled};
use numakit_sys::ptrace::{Stop, Tracer};
use numakit_sys::signal::{KILL, TRAP};
use numakit_sys::supervise;
use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
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
    tracer: Rc<Tracer>,
    traced: Option<u32>,
}

impl Drop for Program {
    fn drop(&mut self) {
        self.alive.take();
        let _ = self.watch.take().map(JoinHandle::join);
        let _ = self.child.kill();
        // The process ends only when the end of its traced thread has been seen.
        if let Some(thread) = self.traced {
            while !matches!(self.tracer.next_of(thread), Err(_) | Ok(Stop::Ended(_))) {}
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
        let pid = child.id();
        let watch = std::thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _ = supervise::send(pid, KILL);
            }
        });
        let tracer = Rc::new(Tracer::new().unwrap());
        std::thread::sleep(warm);
        Some(Self { child, alive: Some(alive), watch: Some(watch), tracer, traced: None })
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its busiest thread, to be stepped.
    pub fn attach(&mut self) -> Option<Stepped> {
        let thread = self.busiest()?;
        self.tracer.seize_alone(thread).ok()?;
        self.traced = Some(thread);
        Some(Stepped { tracer: Rc::clone(&self.tracer), thread, signal: 0 })
    }

    /// The thread that uses most CPU time now.
    fn busiest(&self) -> Option<u32> {
        let before = self.times()?;
        std::thread::sleep(Duration::from_millis(300));
        let used = |tid: &str, now: u64| now - before.get(tid).copied().unwrap_or(now);
        let (tid, _) = self.times()?.into_iter().max_by_key(|(tid, now)| used(tid, *now))?;
        tid.parse().ok()
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

/// A signal ended it that nobody here sent. No program of these tests exits with a status above 128.
fn has_crashed(status: i32) -> bool {
    status > 128 && status != 128 + KILL
}

/// A stopped thread.
pub struct Stepped {
    tracer: Rc<Tracer>,
    thread: u32,
    /// A signal that it receives with the next step; 0 is none.
    signal: i32,
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
        self.tracer.interrupt(self.thread).ok()?;
        loop {
            match self.tracer.next_of(self.thread).ok()? {
                Stop::Signal(signal) => self.tracer.resume(self.thread, signal).ok()?,
                Stop::Ended(status) => {
                    assert!(!has_crashed(status), "{status}");
                    return None;
                }
                Stop::Interrupted | Stop::Group | Stop::Created(_) | Stop::Executed(_) => return Some(()),
            }
        }
    }

    pub fn resume(&mut self) -> Option<()> {
        self.tracer.resume(self.thread, std::mem::take(&mut self.signal)).ok()
    }

    pub fn step(&mut self) -> Step {
        if self.tracer.step(self.thread, std::mem::take(&mut self.signal)).is_err() {
            return Step::Ended;
        }
        match self.tracer.next_of(self.thread) {
            Ok(Stop::Signal(TRAP)) => Step::Done,
            Ok(Stop::Signal(signal)) => {
                self.signal = signal;
                Step::Signal
            }
            Ok(Stop::Interrupted | Stop::Group | Stop::Created(_) | Stop::Executed(_)) => Step::Signal,
            Ok(Stop::Ended(status)) => {
                assert!(!has_crashed(status), "{status}");
                Step::Ended
            }
            Err(_) => Step::Ended,
        }
    }

    pub fn registers(&self) -> Option<X86Registers> {
        let traced = self.tracer.registers(self.thread).ok()??;
        Some(sampled::registers(&traced.registers))
    }
}
