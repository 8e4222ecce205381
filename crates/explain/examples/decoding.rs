//! What it costs to find the operands of a sample once its code is known.
//!
//! Usage: `decoding COMMAND...`. Takes up to 500 samples of the command, stops it, and decodes them again and again: with its
//! memory as it is now, by both ways of decoding. Prints `name value` lines; times are CPU times for a sample.
#![allow(clippy::print_stdout)]

use numakit_operand::{AddressSpace, Decoder, Landing};
use numakit_sampling::Road;
use numakit_sampling::operands::{self, SampledMemory};
use numakit_sampling::process::ObservedProcess;
use numakit_sampling::{RoadEvent, Sample, SampleSettings, perf::PerfRoad};
use numakit_sys::clock;
use numakit_sys::command::Running;
use std::cell::Cell;
use std::error::Error;
use std::ffi::OsString;
use std::time::Duration;

const MAX_SAMPLES: usize = 500;
/// Some samples are of the start of the program.
const SKIPPED: usize = 100;
const ROUNDS: u32 = 20;
const DRAIN: Duration = Duration::from_millis(5);
const MAX_DRAINS: u32 = 2000;
const STOP: i32 = 19;
const KILL: i32 = 9;

/// Counts what is read.
struct Counted<'a> {
    memory: SampledMemory<'a>,
    reads: &'a Cell<u64>,
}

impl AddressSpace for Counted<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + 1);
        self.memory.read(address, into)
    }

    fn code(&self, address: u64, into: &mut [u8]) -> usize {
        self.memory.code(address, into)
    }

    fn changes(&self, address: u64) -> bool {
        self.memory.changes(address)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let command: Vec<OsString> = std::env::args_os().skip(1).collect();
    let settings = SampleSettings { frequency: 997, ..SampleSettings::default() };
    let start = move || Running::start(&command);
    let (mut road, running) = PerfRoad::for_command(&settings, numakit_sampling::Landing::Other, start)?;
    let samples = take(&mut road)?;
    running.signal(STOP);
    let process = ObservedProcess::open(running.id())?;
    let mut decoder = Decoder::default();
    measure("recover", &samples, &process, &mut |registers, memory| {
        decoder.recover(registers, memory, Landing::Behind);
        1
    });
    measure("ahead", &samples, &process, &mut |registers, memory| {
        decoder.ahead(registers, memory).accesses.len()
    });
    running.signal(KILL);
    Ok(())
}

fn take(road: &mut PerfRoad) -> Result<Vec<Sample>, Box<dyn Error>> {
    let (mut samples, mut seen) = (Vec::new(), 0);
    for _ in 0..MAX_DRAINS {
        road.drain(&mut |event| {
            if let RoadEvent::Sample(sample) = event
                && !sample.in_kernel
                && samples.len() < MAX_SAMPLES
            {
                seen += 1;
                if seen > SKIPPED {
                    samples.push(sample.clone());
                }
            }
        })?;
        if samples.len() >= MAX_SAMPLES {
            break;
        }
        std::thread::sleep(DRAIN);
    }
    Ok(samples)
}

fn measure(
    name: &str,
    samples: &[Sample],
    process: &ObservedProcess,
    decode: &mut dyn FnMut(&numakit_operand::X86Registers, &dyn AddressSpace) -> usize,
) {
    let reads = Cell::new(0);
    let (mut found, mut times) = (0, Vec::new());
    for round in 0..=ROUNDS {
        let start = clock::process_cpu();
        reads.set(0);
        found = 0;
        for sample in samples {
            let memory = SampledMemory { now: process, stack: &sample.stack };
            found += decode(&operands::registers(&sample.registers), &Counted { memory, reads: &reads });
        }
        let each = (clock::process_cpu() - start) as f64 / 1e3 / samples.len().max(1) as f64;
        if round == 0 {
            println!("{name}_cold_us {each}");
        } else {
            times.push(each);
        }
    }
    times.sort_by(f64::total_cmp);
    println!("{name}_us {}", times.get(times.len() / 2).copied().unwrap_or(0.0));
    println!("{name}_reads {}", reads.get() as f64 / samples.len().max(1) as f64);
    println!("{name}_found {}", found as f64 / samples.len().max(1) as f64);
    println!("samples {}", samples.len());
}
