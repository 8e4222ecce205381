//! A guest to be booted, built up by setters.

use crate::boot::{Boot, Step};
use crate::contents::Contents;
use crate::failure::{Failure, on};
use crate::folder::Folder;
use crate::machine::{self, Disk};
use crate::run::{Run, Streams, Times};
use crate::shape::Shape;
use crate::simulated::Simulation;
use crate::{fetch, image, initramfs, programs};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(180);
/// Room on the disk for what steps write.
const ROOM_MIB: u64 = 256;
const PATH: &str = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

/// What is to be booted and done.
pub struct Guest {
    shape: Shape,
    programs: Vec<PathBuf>,
    files: Vec<(PathBuf, String)>,
    steps: Vec<(String, Vec<String>)>,
    environment: Vec<String>,
    streams: Option<Streams>,
    simulation: Option<Simulation>,
    timeout: Option<Duration>,
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
            steps: Vec::new(),
            environment: ["HOME=/root", "TERM=linux", "LANG=C.UTF-8", PATH].map(str::to_owned).to_vec(),
            streams: None,
            simulation: None,
            timeout: Some(TIMEOUT),
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
        self.steps.push((name.to_owned(), command.iter().map(|word| (*word).to_owned()).collect()));
        self
    }

    /// A variable in the environment of all steps.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.retain(|pair| !pair.starts_with(&format!("{name}=")));
        self.environment.push(format!("{name}={value}"));
        self
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
        Self { timeout: Some(timeout), ..self }
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
        Self { shell: Some(before.to_owned()), timeout: None, ..self }
    }

    /// Where the files go that the steps leave in `/out`; by default they go when the boot does.
    pub fn out(self, folder: &Path) -> Self {
        Self { out: Some(folder.to_owned()), ..self }
    }

    /// Boots it, runs the steps and gives what they gave.
    pub fn boot(mut self) -> Result<Boot, Failure> {
        if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
            let reason = format!("it runs programs of Linux on x86-64, this is {}", std::env::consts::ARCH);
            let fix = "use a machine with x86-64".to_owned();
            return Err(Failure::Unavailable { reason, fix, kind: &numakit_skips::GUEST });
        }
        let names: Vec<String> = self.steps.iter().map(|(name, _)| name.clone()).collect();
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
        let disk = Disk { kernel: &kernel, initramfs: &initramfs, image: &image, options };
        qemu.args(machine::arguments(&self.shape, &disk));
        match &self.simulation {
            Some(simulation) => qemu.args(simulation.prepare(&self.shape, folder.path())?),
            None => qemu.args(["-accel", "tcg,thread=single"]),
        };
        let times = self.run(qemu, &folder, &names);
        let boot = times.and_then(|times| self.result(&folder, &image, times));
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
        for (index, (_, words)) in self.steps.iter().enumerate() {
            let step = format!("/etc/guest/steps/{index:04}");
            contents.write(&format!("{step}/arguments"), &terminated(words))?;
            contents.write(&format!("{step}/environment"), &terminated(&self.environment))?;
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

    fn run(&mut self, qemu: Command, folder: &Folder, steps: &[String]) -> Result<Times, Failure> {
        let run = Run {
            qemu,
            folder: folder.path(),
            steps,
            timeout: self.timeout,
            streams: self.streams.as_mut(),
            shell: self.shell.is_some(),
            memory_may_end: self.memory_may_end,
        };
        run.until_over()
    }

    /// What the image holds afterwards, and what the simulator wrote.
    fn result(&self, folder: &Folder, image: &Path, times: Times) -> Result<Boot, Failure> {
        let out = folder.file("out");
        image::read(image, "/out", &out)?;
        let results = folder.file("steps");
        let inside = out.join(".steps");
        fs::rename(&inside, &results).map_err(on("rename", &inside))?;
        let mut boot = Boot::default();
        (boot.boot_time, boot.total_time, boot.out) = (times.boot, times.total, out);
        for (index, (name, _)) in self.steps.iter().enumerate() {
            let step = Step::read(name, &results.join(format!("{index:04}")))?;
            boot.steps.insert(name.clone(), step);
        }
        if let Some(simulation) = &self.simulation {
            boot.traffic = Some(simulation.traffic(folder.path())?);
        }
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
