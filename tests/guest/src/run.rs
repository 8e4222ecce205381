//! A running guest: QEMU is started, watched through files, and brought to its end.

use crate::console::{Stage, Watch};
use crate::failure::{Console, Failure, on};
use crate::place;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);
/// A kernel that failed may still say more before it ends.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Where the output of steps goes while they run: standard output, standard error.
pub type Streams = [Box<dyn Write + Send>; 2];

/// A guest that is to be run.
pub struct Run<'a> {
    /// QEMU with the machine, without serial lines.
    pub qemu: Command,
    /// Where its files are.
    pub folder: &'a Path,
    /// Names of the steps, for messages.
    pub steps: &'a [String],
    /// The share of each step, and how long the steps of a share may take together.
    pub limits: Vec<(usize, Option<Duration>)>,
    /// How long the first share may take, and the start with it.
    pub timeout: Option<Duration>,
    /// What is copied while it runs.
    pub streams: Option<&'a mut Streams>,
    /// A terminal of ours becomes one in the guest.
    pub shell: bool,
    /// Memory is exhausted on purpose.
    pub memory_may_end: bool,
}

/// How long a guest took.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// From the start of QEMU to the first step.
    pub boot: Duration,
    /// To the end of QEMU.
    pub total: Duration,
    /// CPU time of QEMU at the start of each step that began, and at the end.
    pub cpu: Vec<Duration>,
}

/// A guest that did not come to its end.
#[derive(Debug)]
pub struct Stopped {
    /// Why not.
    pub failure: Failure,
    /// How far it was.
    pub at: Stage,
    /// How long it ran.
    pub times: Times,
}

impl From<Failure> for Box<Stopped> {
    fn from(failure: Failure) -> Self {
        Self::new(Stopped { failure, at: Stage::Starting, times: Times::default() })
    }
}

/// When the steps of a share began that the guest is at, and how long they may take.
struct Clock {
    share: usize,
    began: Instant,
    limit: Option<Duration>,
}

/// A file that grows.
struct Tail {
    file: File,
    buffer: Vec<u8>,
}

impl Tail {
    fn of(path: &Path) -> Result<Self, Failure> {
        File::create(path).map_err(on("create", path))?;
        Ok(Self { file: File::open(path).map_err(on("read", path))?, buffer: Vec::new() })
    }

    fn read(&mut self) -> &[u8] {
        self.buffer.clear();
        // A piece that cannot be read now comes next time.
        let _ = self.file.read_to_end(&mut self.buffer);
        &self.buffer
    }
}

impl Run<'_> {
    /// Starts it and waits for its end.
    pub fn until_over(mut self) -> Result<Times, Box<Stopped>> {
        let mut console = Tail::of(&self.folder.join("console"))?;
        let mut outputs =
            vec![Tail::of(&self.folder.join("stdout"))?, Tail::of(&self.folder.join("stderr"))?];
        let started = Instant::now();
        let mut qemu = self.start()?;
        let mut watch = Watch::default();
        let (mut boot, mut failed_at) = (None, None);
        let mut clock = Clock { share: 0, began: started, limit: self.timeout };
        let mut cpu = Vec::new();
        let mut used = Duration::ZERO;
        let status = loop {
            let ended = qemu.try_wait().map_err(on("wait for QEMU in", self.folder))?;
            watch.take(console.read());
            if watch.stage != Stage::Starting && boot.is_none() {
                boot = Some(started.elapsed());
            }
            self.stream(&mut outputs);
            if let Some(status) = ended {
                break status;
            }
            if watch.fatal.is_some() && failed_at.is_none() {
                failed_at = Some(Instant::now());
            }
            used = cpu_time(qemu.id()).unwrap_or(used);
            if let Stage::Step(number) = watch.stage {
                cpu.resize(cpu.len().max(number + 1), used);
                if let Some((share, limit)) = self.limits.get(number)
                    && *share != clock.share
                {
                    clock = Clock { share: *share, began: Instant::now(), limit: *limit };
                }
            }
            let late = clock.limit.is_some_and(|limit| clock.began.elapsed() > limit);
            if late || failed_at.is_some_and(|at| at.elapsed() > LAST_WORDS) {
                stop(&mut qemu);
                cpu.push(used);
                watch.take(console.read());
                let hang = Failure::Hang {
                    after: clock.began.elapsed(),
                    doing: self.doing(watch.stage),
                    console: self.last_lines(&watch),
                };
                let (failure, at) = self.trouble(&watch).unwrap_or((hang, watch.stage));
                return Err(Box::new(Stopped { failure, at, times: times(boot, started, cpu) }));
            }
            thread::sleep(PAUSE);
        };
        cpu.push(used);
        let times = times(boot, started, cpu);
        match self.verdict(&watch, status) {
            Ok(()) => Ok(times),
            Err((failure, at)) => Err(Box::new(Stopped { failure, at, times })),
        }
    }

    fn start(&mut self) -> Result<Child, Failure> {
        let mut command = bound_to_us(&self.qemu);
        let mut serial = |name: &str| {
            let path = crate::machine::escaped(&self.folder.join(name));
            command.args(["-serial", &format!("file:{path}")]);
        };
        serial("console");
        if self.streams.is_some() {
            serial("stdout");
            serial("stderr");
        }
        if self.shell {
            command.args(["-chardev", "stdio,id=shell,signal=off", "-serial", "chardev:shell"]);
        } else {
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        let path = self.folder.join("qemu");
        command.stderr(File::create(&path).map_err(on("create", &path))?);
        command.spawn().map_err(on("start QEMU in", self.folder))
    }

    fn stream(&mut self, outputs: &mut [Tail]) {
        let Some(streams) = self.streams.as_deref_mut() else { return };
        for (output, stream) in outputs.iter_mut().zip(streams) {
            let bytes = output.read();
            if !bytes.is_empty() {
                // Nobody reads any more: the guest goes on, its files are kept.
                let _ = stream.write_all(bytes).and_then(|()| stream.flush());
            }
        }
    }

    /// What the guest was at, for messages.
    fn doing(&self, stage: Stage) -> String {
        match stage {
            Stage::Starting => "while it started".to_owned(),
            Stage::Ready if self.shell => "at its prompt".to_owned(),
            Stage::Ready => "before its first step".to_owned(),
            Stage::Step(number) => match self.steps.get(number) {
                Some(name) => format!("in step '{name}'"),
                None => format!("in step {number}"),
            },
            Stage::Done => "after its last step".to_owned(),
        }
    }

    fn last_lines(&self, watch: &Watch) -> Console {
        Console { lines: watch.last_lines(), file: self.folder.join("console") }
    }

    /// What the console tells of, if anything, and how far the guest was then.
    fn trouble(&self, watch: &Watch) -> Option<(Failure, Stage)> {
        let console = self.last_lines(watch);
        if let Some(fatal) = &watch.fatal {
            let (line, doing) = (fatal.line.clone(), self.doing(fatal.stage));
            return Some((Failure::Panic { line, doing, console }, fatal.stage));
        }
        let on_purpose = self.memory_may_end && watch.stage == Stage::Done;
        let memory = watch.memory.as_ref().filter(|_| !on_purpose)?;
        let (line, doing) = (memory.line.clone(), self.doing(memory.stage));
        Some((Failure::OutOfMemory { line, doing, console }, memory.stage))
    }

    /// Whether QEMU's end was that of a guest that has done everything.
    fn verdict(&self, watch: &Watch, status: ExitStatus) -> Result<(), (Failure, Stage)> {
        if let Some(trouble) = self.trouble(watch) {
            return Err(trouble);
        }
        let console = self.last_lines(watch);
        if !status.success() {
            let message = std::fs::read_to_string(self.folder.join("qemu")).unwrap_or_default();
            let message = message.trim().to_owned();
            return Err((Failure::Qemu { status: status.to_string(), message, console }, watch.stage));
        }
        if watch.stage == Stage::Done {
            Ok(())
        } else {
            Err((Failure::Lost { doing: self.doing(watch.stage), console }, watch.stage))
        }
    }
}

/// How long a guest took until now.
fn times(boot: Option<Duration>, started: Instant, cpu: Vec<Duration>) -> Times {
    let total = started.elapsed();
    Times { boot: boot.unwrap_or(total), total, cpu }
}

/// What a process has used of CPUs. The kernel counts in hundredths of a second.
fn cpu_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut ticks = stat.rsplit(')').next()?.split(' ').skip(12).map(str::parse::<u64>);
    Some(Duration::from_millis(10 * (ticks.next()?.ok()? + ticks.next()?.ok()?)))
}

/// The same command, but it ends when this process does, however that ends.
fn bound_to_us(command: &Command) -> Command {
    let mut bound = match place::on_this_machine("setpriv") {
        Some(setpriv) => {
            let mut bound = Command::new(setpriv);
            bound.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program());
            bound
        }
        None => Command::new(command.get_program()),
    };
    bound.args(command.get_args());
    bound.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    bound
}

fn stop(qemu: &mut Child) {
    // It may have ended by itself in the meantime.
    let _ = qemu.kill();
    let _ = qemu.wait();
}
