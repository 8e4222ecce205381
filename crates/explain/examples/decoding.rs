//! What it costs to find the operands of a sample once its code is known.
//!
//! Usage: `decoding COMMAND...`. Takes up to 500 samples of the command, stops it, and decodes them again and again, by both
//! ways of decoding: with what is read of its memory at hand, and reading it. Prints `name value` lines; times are CPU times
//! for a sample.
#![allow(clippy::print_stdout)]

use numakit_sampling::operand::sampled::{self, SampledMemory};
use numakit_sampling::operand::{AddressSpace, Decoder, Landing, Reach};
use numakit_sampling::perf::PerfMethod;
use numakit_sampling::process::ObservedProcess;
use numakit_sampling::{Method, MethodEvent, Sample, SampleSettings};
use numakit_sys::clock;
use numakit_sys::command::Running;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
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

/// By address and number of bytes; none where it cannot be read.
type KeptReads = HashMap<(u64, usize), Option<Vec<u8>>>;

/// The memory of the stopped program; what was read of it is kept.
struct Kept<'a> {
    memory: SampledMemory<'a>,
    kept: &'a RefCell<KeptReads>,
    /// Whether it is read nevertheless.
    reads: bool,
    count: &'a Cell<u64>,
}

impl AddressSpace for Kept<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.count.set(self.count.get() + 1);
        if self.reads {
            return self.memory.read(address, into);
        }
        let mut kept = self.kept.borrow_mut();
        let bytes = kept.entry((address, into.len())).or_insert_with(|| {
            let mut bytes = vec![0; into.len()];
            self.memory.read(address, &mut bytes).then_some(bytes)
        });
        bytes.as_ref().map(|bytes| into.copy_from_slice(bytes)).is_some()
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
    let (mut method, running) = PerfMethod::for_command(&settings, numakit_sampling::Landing::Other, start)?;
    let samples = take(&mut method)?;
    running.signal(STOP);
    let process = ObservedProcess::open(running.id())?;
    let mut decoder = Decoder::default();
    measure("recover", &samples, &process, &mut |registers, memory| {
        decoder.recover(registers, memory, Landing::Behind);
        1
    });
    measure("ahead", &samples, &process, &mut |registers, memory| {
        decoder.ahead(registers, memory, Reach::NEAR).accesses.len()
    });
    measure("to the next", &samples, &process, &mut |registers, memory| {
        let ip = registers.ip;
        decoder.ahead(registers, memory, Reach::to_next(ip)).accesses.len()
    });
    running.signal(KILL);
    Ok(())
}

fn take(method: &mut PerfMethod) -> Result<Vec<Sample>, Box<dyn Error>> {
    let (mut samples, mut seen) = (Vec::new(), 0);
    for _ in 0..MAX_DRAINS {
        method.drain(&mut |event| {
            if let MethodEvent::Sample(sample) = event
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
    decode: &mut dyn FnMut(&numakit_sampling::operand::X86Registers, &dyn AddressSpace) -> usize,
) {
    let (count, kept) = (Cell::new(0), RefCell::new(HashMap::new()));
    let each = |value: f64| value / samples.len().max(1) as f64;
    for (what, reads) in [("us", false), ("reading_us", true)] {
        let (mut found, mut times) = (0, Vec::new());
        for _ in 0..ROUNDS {
            let start = clock::process_cpu();
            (found, _) = (0, count.set(0));
            for sample in samples {
                let memory = SampledMemory { now: process, stack: &sample.stack };
                let memory = Kept { memory, kept: &kept, reads, count: &count };
                found += decode(&sampled::registers(&sample.registers), &memory);
            }
            times.push(each((clock::process_cpu() - start) as f64 / 1e3));
        }
        println!("{name}_first_{what} {}", times.first().copied().unwrap_or(0.0));
        times.sort_by(f64::total_cmp);
        println!("{name}_{what} {}", times.get(times.len() / 2).copied().unwrap_or(0.0));
        println!("{name}_operands {}", each(found as f64));
    }
    println!("{name}_reads {}", each(count.get() as f64));
    println!("samples {}", samples.len());
}
