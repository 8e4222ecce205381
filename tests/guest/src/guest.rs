//! A guest to be booted, built up by setters.

use crate::boot::{Boot, Ended, Step};
use crate::console::Stage;
use crate::contents::Contents;
use crate::failure::{Failure, on};
use crate::folder::Folder;
use crate::machine::{self, Disk};
use crate::run::{Run, Stopped, Streams, Times};
use crate::shape::Shape;
use crate::simulated::Simulation;
use crate::{fetch, image, initramfs, programs};
use numakit_sys::ticks;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(180);
/// Room on the disk for what steps write.
const ROOM_MIB: u64 = 256;
const OUT: &str = "/out";
/// The step that a part begins with.
pub(crate) const RESET: &str = "reset";
const PATH: &str = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

/// A command that is to be run.
struct Task {
    name: String,
    words: Vec<String>,
    /// Regions that the simulator counts of it.
    regions: usize,
    /// The number of its share.
    share: usize,
}

/// What tasks have in common: all of a guest, or those of one of its parts.
struct Share {
    /// Where they run.
    folder: String,
    environment: Vec<String>,
    timeout: Option<Duration>,
}

/// What is to be booted and done.
pub struct Guest {
    shape: Shape,
    programs: Vec<PathBuf>,
    files: Vec<(PathBuf, String)>,
    tasks: Vec<Task>,
    /// One, or one for each part.
    shares: Vec<Share>,
    is_of_parts: bool,
    streams: Option<Streams>,
    simulation: Option<Simulation>,
    room_mib: u64,
    memory_may_end: bool,
    shell: Option<String>,
    out: Option<PathBuf>,
}

impl Guest {
    /// A guest of this shape that does nothing yet.
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            programs: Vec::new(),
            files: Vec::new(),
            tasks: Vec::new(),
            shares: vec![Share {
                folder: OUT.to_owned(),
                environment: ["HOME=/root", "TERM=linux", "LANG=C.UTF-8", PATH].map(str::to_owned).to_vec(),
                timeout: Some(TIMEOUT),
            }],
            is_of_parts: false,
            streams: None,
            simulation: None,
            room_mib: ROOM_MIB,
            memory_may_end: false,
            shell: None,
            out: None,
        }
    }

    /// Memory of every node that has some, instead of the shape's.
    pub fn memory_mib(mut self, mib: u64) -> Self {
        self.shape.set_memory_mib(mib);
        self
    }

    /// A program of this machine becomes `/usr/bin/NAME`, with its libraries or its interpreter.
    /// `numa` comes under its other names too.
    pub fn program(mut self, program: &Path) -> Self {
        self.programs.push(program.to_owned());
        self
    }

    /// A file or folder of this machine becomes this one in the guest.
    pub fn file(mut self, from: &Path, inside: &str) -> Self {
        self.files.push((from.to_owned(), inside.to_owned()));
        self
    }

    /// A command that runs after those before it, whatever they gave, in the folder `/out`.
    pub fn step(mut self, name: &str, command: &[&str]) -> Self {
        let words = command.iter().map(|word| (*word).to_owned()).collect();
        self.tasks.push(Task { name: name.to_owned(), words, regions: 0, share: 0 });
        self
    }

    /// A step of which the simulator counts this many regions.
    pub fn step_of_regions(self, name: &str, regions: usize, command: &[&str]) -> Self {
        let mut guest = self.step(name, command);
        if let Some(task) = guest.tasks.last_mut() {
            task.regions = regions;
        }
        guest
    }

    /// A variable in the environment of all steps.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        for Share { environment, .. } in &mut self.shares {
            environment.retain(|pair| !pair.starts_with(&format!("{name}=")));
            environment.push(format!("{name}={value}"));
        }
        self
    }

    /// Eight threads of OpenMP. Those that wait keep no CPU: there are more of them here than real ones.
    pub fn eight_threads(self) -> Self {
        let variables = [("OMP_NUM_THREADS", "8"), ("OMP_WAIT_POLICY", "passive"), ("GOMP_SPINCOUNT", "0")];
        variables.into_iter().fold(self, |guest, (name, value)| guest.env(name, value))
    }

    /// Binds the threads of OpenMP one by one, in their order, to the first eight CPUs.
    pub fn bound(self) -> Self {
        self.env("GOMP_CPU_AFFINITY", "0-7")
    }

    /// Programs of the tests, by their names.
    pub fn compiled(self, names: &[&str]) -> Result<Self, Failure> {
        names.iter().try_fold(self, |guest, name| {
            let program = programs::compiled(name)?.ok_or_else(|| Failure::NotFound((*name).to_owned()))?;
            Ok(guest.program(&program))
        })
    }

    /// Small pages: which node a huge page is on would be the luck of the thread that touches it first.
    pub fn small_pages(self) -> Self {
        self.step("small", &["sh", "-c", "echo never >/sys/kernel/mm/transparent_hugepage/enabled"])
    }

    /// Pages that stay where they are: the kernel's balancing would move them to their users.
    pub fn without_balancing(self) -> Self {
        self.step("still", &["sh", "-c", "echo 0 >/proc/sys/kernel/numa_balancing"])
    }

    /// Copies the output of steps to that of this process while they run.
    pub fn stream(self, wanted: bool) -> Self {
        let streams: Streams = [Box::new(std::io::stdout()), Box::new(std::io::stderr())];
        let streams = wanted.then_some(streams);
        Self { streams, ..self }
    }

    /// Copies the output of steps to these two while they run.
    pub fn stream_to(self, streams: Streams) -> Self {
        Self { streams: Some(streams), ..self }
    }

    /// Counts what goes between the nodes, and gives every node a card.
    pub fn simulate(self, simulation: Simulation) -> Self {
        Self { simulation: Some(simulation), ..self }
    }

    /// How long all of it may take; the default is 3 minutes.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.limited(Some(timeout))
    }

    fn limited(mut self, timeout: Option<Duration>) -> Self {
        self.shares.iter_mut().for_each(|share| share.timeout = timeout);
        self
    }

    /// Room on the disk for what steps write; the default is 256 MiB.
    pub fn room_mib(self, room_mib: u64) -> Self {
        Self { room_mib, ..self }
    }

    /// Memory is exhausted on purpose: that the kernel kills for it is no failure.
    pub fn memory_may_end(self) -> Self {
        Self { memory_may_end: true, ..self }
    }

    /// After the steps, a prompt in the terminal of this process, without a time limit. The text
    /// is of shell commands that come first.
    pub fn shell(self, before: &str) -> Self {
        Self { shell: Some(before.to_owned()), ..self.limited(None) }
    }

    /// Where the files go that the steps leave in `/out`; by default they go when the boot does.
    pub fn out(self, folder: &Path) -> Self {
        Self { out: Some(folder.to_owned()), ..self }
    }

    /// One guest that does what these would do, one after the other. Each becomes a part: its steps are called `NAME/STEP`
    /// and run in the folder `/out/NAME`, with its own environment and time limit, after a step that puts back what parts
    /// before it may have changed. Nodes have the memory of the guest that has most.
    pub(crate) fn of_parts(parts: Vec<(&str, Self)>) -> Result<Self, Failure> {
        let mut all: Option<Self> = None;
        for (name, part) in parts {
            let part = part.named(name);
            all = Some(match all {
                None => part,
                Some(before) => before.and(part)?,
            });
        }
        all.ok_or_else(|| Failure::Request("a guest of no parts".to_owned()))
    }

    fn named(mut self, name: &str) -> Self {
        let reset = Self::new(Shape::default()).step(RESET, &["sh", "/etc/guest/reset"]);
        self.tasks.splice(..0, reset.tasks);
        self.tasks.iter_mut().for_each(|task| task.name = format!("{name}/{}", task.name));
        self.shares.iter_mut().for_each(|share| share.folder = format!("{OUT}/{name}"));
        Self { is_of_parts: true, ..self }
    }

    /// Adds a part.
    fn and(mut self, part: Self) -> Result<Self, Failure> {
        if self.shape.name != part.shape.name || self.simulation.is_some() != part.simulation.is_some() {
            let (one, other) = (&self.shape.name, &part.shape.name);
            let problem =
                format!("parts of one boot have shapes '{one}' and '{other}', or not all are simulated");
            return Err(Failure::Request(problem));
        }
        for (node, other) in self.shape.nodes.iter_mut().zip(&part.shape.nodes) {
            node.memory_mib = node.memory_mib.max(other.memory_mib);
        }
        for program in part.programs {
            if !self.programs.contains(&program) {
                self.programs.push(program);
            }
        }
        for file in part.files {
            if !self.files.contains(&file) {
                self.files.push(file);
            }
        }
        let first = self.shares.len();
        self.tasks.extend(part.tasks.into_iter().map(|task| Task { share: first + task.share, ..task }));
        self.shares.extend(part.shares);
        self.room_mib += part.room_mib;
        self.memory_may_end |= part.memory_may_end;
        Ok(self)
    }

    /// Boots it, runs the steps and gives what they gave. Of a guest of parts that ends during a step, the boot has what the
    /// steps before gave, and the failure.
    pub fn boot(mut self) -> Result<Boot, Failure> {
        if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
            let reason = format!("it runs programs of Linux on x86-64, this is {}", std::env::consts::ARCH);
            let fix = "use a machine with x86-64".to_owned();
            return Err(Failure::Unavailable { reason, fix, kind: &numakit_skips::GUEST });
        }
        let names: Vec<String> = self.tasks.iter().map(|task| task.name.clone()).collect();
        if let Some(name) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(Failure::Request(format!("two steps are called '{}'", name.1)));
        }
        let mut qemu = fetch::qemu(self.simulation.is_some())?;
        let (kernel, busybox) = (fetch::kernel()?, fetch::busybox()?);
        let folder = Folder::new()?;
        let (image, initramfs) = (folder.file("image"), folder.file("initramfs"));
        let contents = self.contents(&folder, &busybox)?;
        image::make(contents.folder(), &image, self.room_mib)?;
        fs::write(&initramfs, initramfs::archive(&busybox)?).map_err(on("write", &initramfs))?;
        let options = self.simulation.as_ref().map_or("", |_| Simulation::KERNEL_OPTIONS);
        let counter_khz = ticks::khz();
        let disk = Disk { kernel: &kernel, initramfs: &initramfs, image: &image, counter_khz, options };
        qemu.args(machine::arguments(&self.shape, &disk));
        match &self.simulation {
            Some(simulation) => qemu.args(simulation.prepare(&self.shape, folder.path())?),
            None => qemu.args(["-accel", "tcg,thread=single"]),
        };
        let boot = match self.run(qemu, &folder, &names) {
            Ok(times) => self.result(&folder, &image, times, None),
            Err(stopped) => self.partial(&folder, &image, *stopped),
        };
        folder.make_small();
        Ok(boot?.keeping(folder))
    }

    /// Everything on the disk.
    fn contents(&self, folder: &Folder, busybox: &Path) -> Result<Contents, Failure> {
        let contents = Contents::new(folder.file("contents"), busybox)?;
        for program in &self.programs {
            contents.program(program)?;
        }
        for (from, inside) in &self.files {
            contents.copy(from, inside)?;
        }
        let runner = programs::runner()?;
        contents.libraries(&runner)?;
        contents.copy(&runner, "/etc/guest/run")?;
        for (index, task) in self.tasks.iter().enumerate() {
            let step = format!("/etc/guest/steps/{index:04}");
            let Share { folder, environment, .. } = &self.shares[task.share];
            contents.folder_of(folder)?;
            contents.write(&format!("{step}/arguments"), &terminated(&task.words))?;
            contents.write(&format!("{step}/environment"), &terminated(environment))?;
            contents.write(&format!("{step}/folder"), &terminated(std::slice::from_ref(folder)))?;
            if self.streams.is_some() {
                contents.write(&format!("{step}/stream"), b"")?;
            }
        }
        if let Some(set) = &self.shape.confined {
            contents.write("/etc/guest/cpuset", format!("{} {}\n", set.cpus, set.mems).as_bytes())?;
        }
        if let Some(before) = &self.shell {
            contents.write("/etc/guest/shell", before.as_bytes())?;
        }
        Ok(contents)
    }

    fn run(&mut self, qemu: Command, folder: &Folder, steps: &[String]) -> Result<Times, Box<Stopped>> {
        let limits = self.tasks.iter().map(|task| (task.share, self.shares[task.share].timeout)).collect();
        let run = Run {
            qemu,
            folder: folder.path(),
            steps,
            limits,
            timeout: self.shares[0].timeout,
            streams: self.streams.as_mut(),
            shell: self.shell.is_some(),
            memory_may_end: self.memory_may_end,
        };
        run.until_over()
    }

    /// What there is of a guest that ended too early: of one of parts, what they gave before the step that ended it.
    fn partial(&self, folder: &Folder, image: &Path, stopped: Stopped) -> Result<Boot, Failure> {
        let Stopped { failure, at, times } = stopped;
        let Stage::Step(number) = at else { return Err(failure) };
        let part =
            self.tasks.get(number).and_then(|task| task.name.split_once('/')).filter(|_| self.is_of_parts);
        let Some((part, _)) = part else { return Err(failure) };
        let ended = Ended { part: part.to_owned(), failure };
        self.result(folder, image, times, Some(ended))
    }

    /// What the image holds afterwards, and what the simulator wrote.
    fn result(
        &self,
        folder: &Folder,
        image: &Path,
        times: Times,
        ended: Option<Ended>,
    ) -> Result<Boot, Failure> {
        let out = folder.file("out");
        image::read(image, OUT, &out)?;
        let results = folder.file("steps");
        let inside = out.join(".steps");
        fs::rename(&inside, &results).map_err(on("rename", &inside))?;
        let mut boot = Boot::default();
        (boot.boot_time, boot.total_time, boot.out) = (times.boot, times.total, out);
        boot.cpu = times.cpu;
        boot.asked = self.tasks.iter().map(|task| (task.name.clone(), task.regions)).collect();
        for (index, task) in self.tasks.iter().enumerate() {
            match Step::read(&task.name, &results.join(format!("{index:04}"))) {
                Ok(step) => _ = boot.steps.insert(task.name.clone(), step),
                Err(_) if ended.is_some() => break,
                Err(failure) => return Err(failure),
            }
        }
        if let Some(simulation) = &self.simulation {
            let traffic = simulation.traffic(folder.path());
            boot.traffic = if ended.is_some() { traffic.ok() } else { Some(traffic?) };
        }
        boot.ended = ended;
        if let Some(wanted) = &self.out {
            crate::folder::fill(wanted, &boot.out)?;
            boot.out.clone_from(wanted);
        }
        Ok(boot)
    }
}

/// Strings as the guest reads them.
fn terminated(words: &[String]) -> Vec<u8> {
    words.iter().flat_map(|word| word.bytes().chain([0])).collect()
}
