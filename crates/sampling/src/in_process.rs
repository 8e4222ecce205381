//! Samples by a library in the program, whose timers of CPU time interrupt its threads: for everybody, as the kernel
//! refuses them to nobody. The program is started with the library and the variables that name the ring.

use crate::landing::Landing;
use crate::method::{Losses, Method, MethodError, MethodEvent, MethodKind};
use crate::sample::{Sample, SampleSettings};
use numakit_sys::registers::{GENERAL, UserRegisters};
use numakit_sys::sample_ring::{RingSample, SampleRing};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// Samples that the ring holds for each CPU, and at least: at 199 Hz those of a third of a second.
const FOR_EACH_CPU: usize = 64;
const LEAST: usize = 4096;

/// The variable of the loader that names libraries to load first.
const PRELOAD: &str = "LD_PRELOAD";

/// The method.
#[derive(Debug)]
pub struct InProcessMethod {
    ring: SampleRing,
    landing: Landing,
    frequency: u32,
    period: u64,
    /// When each process began to run its present program.
    processes: HashMap<u32, u64>,
    sample: Sample,
}

impl InProcessMethod {
    /// Opens the method for programs that are started from now on with [`Self::variables`].
    pub fn new(settings: &SampleSettings, landing: Landing) -> io::Result<Self> {
        let cpus = numakit_sys::sched::permitted().map_or(1, |cpus| cpus.len());
        Ok(Self {
            ring: SampleRing::create(LEAST.max(cpus * FOR_EACH_CPU))?,
            landing,
            frequency: settings.frequency,
            period: settings.period(),
            processes: HashMap::new(),
            sample: Sample::default(),
        })
    }

    /// The variables that a program needs to be sampled by the library of this path. Libraries that the user preloads
    /// come behind it.
    pub fn variables(&self, library: &Path) -> Vec<(OsString, OsString)> {
        let ring = self.ring.environment(self.frequency);
        let ring = ring.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        std::iter::once(preloaded(library)).chain(ring).collect()
    }

    /// Announces processes that started, and those that execute another program; returns those that have ended.
    fn announce(&mut self, take: &mut dyn FnMut(MethodEvent<'_>)) -> Vec<u32> {
        let mut ended = Vec::new();
        for entry in self.ring.processes() {
            let process = entry.process;
            match self.processes.insert(process, entry.since) {
                None => take(MethodEvent::Started { process, thread: process }),
                Some(since) if since != entry.since => {
                    take(MethodEvent::Executed { process, time: entry.since });
                }
                Some(_) => {}
            }
            if entry.is_ended {
                self.processes.remove(&process);
                ended.push(process);
            }
        }
        ended
    }
}

/// The variable that preloads a library, in front of those that the user preloads.
pub fn preloaded(library: &Path) -> (OsString, OsString) {
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    (OsString::from(PRELOAD), preload)
}

/// Fills a sample from the ring. A sample counts as one of the kernel if most of its CPU time passed there: the timer's
/// ticks count both kinds of time.
fn fill(sample: &mut Sample, raw: &RingSample, period: u64) {
    let mut general = [0; GENERAL];
    general.copy_from_slice(&raw.general[..GENERAL]);
    sample.process = raw.process;
    sample.thread = raw.thread;
    sample.time = raw.time;
    sample.cpu = raw.cpu;
    sample.weight = raw.cpu_time.unwrap_or(period.saturating_mul(u64::from(raw.overruns) + 1));
    sample.registers = UserRegisters {
        general,
        ip: raw.ip,
        flags: raw.flags,
        thread_base: Some(raw.fs_base),
        gs_base: raw.gs_base,
    };
    sample.in_kernel = raw.kernel_time > sample.weight / 2;
    sample.stack.set(raw.stack_address, raw.stack());
    sample.faults = raw.faults.unwrap_or(0);
    sample.measured = None;
}

impl Method for InProcessMethod {
    fn kind(&self) -> MethodKind {
        MethodKind::InProcess
    }

    fn drain(&mut self, take: &mut dyn FnMut(MethodEvent<'_>)) -> Result<u64, MethodError> {
        // This must come before the samples: those of a program that was just executed belong to different memory.
        let ended = self.announce(take);
        let Self { ring, sample, period, .. } = self;
        let count = ring.drain(&mut |raw| {
            fill(sample, raw, *period);
            take(MethodEvent::Sample(sample));
        });
        // Processes that have ended write no more samples, so their end comes after all of them.
        for process in ended {
            take(MethodEvent::Ended { process, thread: process });
        }
        Ok(count as u64)
    }

    fn losses(&self) -> Losses {
        let losses = self.ring.losses();
        Losses {
            overflowed: losses.full,
            damaged: losses.damaged + losses.unfinished + losses.resets,
            ..Losses::default()
        }
    }

    fn landing(&self) -> Landing {
        self.landing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::sample_ring::SLOT_WORDS;

    fn raw(cpu_time: u64, kernel_us: u64) -> RingSample {
        let mut words = [7; SLOT_WORDS];
        words[1] = 5 | 6 << 32;
        (words[2], words[3], words[4]) = (100, cpu_time, 1 | 2 << 32);
        (words[5], words[11]) = (9 | 1 << 32 | 2 << 48, 16 | kernel_us << 32);
        RingSample::parse(&words).unwrap()
    }

    #[test]
    fn a_sample_has_the_time_since_the_last_one_and_belongs_to_who_used_most_of_it() {
        let mut sample = Sample::default();
        fill(&mut sample, &raw(8_000_000, 3_000), 5_000_000);
        assert_eq!((sample.process, sample.thread, sample.cpu, sample.time), (5, 6, Some(1), 100));
        assert_eq!((sample.weight, sample.in_kernel, sample.faults), (8_000_000, false, 9));
        assert_eq!((sample.stack.address, sample.stack.bytes.len()), (7, 16));
        fill(&mut sample, &raw(8_000_000, 5_000), 5_000_000);
        assert!(sample.in_kernel);
        // A kernel that does not say how much it was: two periods had no sample of their own.
        let mut untold = raw(0, 0);
        untold.cpu_time = None;
        fill(&mut sample, &untold, 5_000_000);
        assert_eq!((sample.weight, sample.in_kernel), (15_000_000, false));
    }

    #[test]
    fn the_users_libraries_come_behind() {
        let method = InProcessMethod::new(&SampleSettings::default(), Landing::Behind).unwrap();
        let variables = method.variables(Path::new("/c/$LIB/libnumaexplain.so"));
        let names: Vec<_> = variables.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["LD_PRELOAD", "NUMA_SAMPLES", "NUMA_SAMPLE_RATE"]);
        let preload = variables[0].1.to_string_lossy().into_owned();
        assert_eq!(preload.split(':').next(), Some("/c/$LIB/libnumaexplain.so"));
        assert_eq!(variables[2].1, "199");
    }
}
