//! What samples cost, and where they land.
//!
//! Usage: `observe calibrate`, or `observe none|perf|ptrace FREQUENCY COMMAND...`. Runs the command, takes its samples
//! every 5 ms as an observer does, and prints `name value` lines; CPU times are those of this process.
#![allow(clippy::print_stdout)]

use numakit_sampling::calibration::{self, Calibration};
use numakit_sampling::perf::PerfMethod;
use numakit_sampling::ptrace::PtraceMethod;
use numakit_sampling::{Landing, Method, MethodEvent, MethodKind, SampleSettings};
use numakit_sys::clock;
use numakit_sys::command::Running;
use std::error::Error;
use std::ffi::OsString;
use std::time::Duration;

const DRAIN: Duration = Duration::from_millis(5);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let word = |at: usize| words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    if word(0) == "calibrate" {
        return calibrate();
    }
    let settings = SampleSettings { frequency: word(1).parse()?, ..SampleSettings::default() };
    let command = words.get(2..).unwrap_or_default().to_vec();
    let start = move || Running::start(&command);
    let (mut method, running): (Option<Box<dyn Method>>, Running) = match word(0) {
        "perf" => {
            let (method, running) = PerfMethod::for_command(&settings, Landing::Other, start)?;
            (Some(Box::new(method)), running)
        }
        "ptrace" => {
            let (method, running) = PtraceMethod::for_command(&settings, Landing::Other, start)?;
            (Some(Box::new(method)), running)
        }
        _ => (None, start()?),
    };
    observe(&mut method, running)
}

fn calibrate() -> Result<(), Box<dyn Error>> {
    for _ in 0..3 {
        let start = clock::monotonic();
        println!("{}", Calibration { method: MethodKind::Perf, counts: calibration::by_perf()? });
        let middle = clock::monotonic();
        println!("{}", Calibration { method: MethodKind::Ptrace, counts: calibration::by_ptrace()? });
        println!("{} and {} us", (middle - start) / 1000, (clock::monotonic() - middle) / 1000);
    }
    Ok(())
}

fn observe(method: &mut Option<Box<dyn Method>>, mut running: Running) -> Result<(), Box<dyn Error>> {
    let before = clock::process_cpu();
    let (mut samples, mut weight, mut events) = (0u64, 0u64, 0u64);
    loop {
        let ended = running.ended()?;
        if let Some(method) = method {
            samples += method.drain(&mut |event| {
                events += 1;
                if let MethodEvent::Sample(sample) = event {
                    weight += sample.weight;
                }
            })?;
        }
        if ended.is_some() {
            break;
        }
        std::thread::sleep(DRAIN);
    }
    let spent = (clock::process_cpu() - before) as f64 / 1e3;
    println!("samples {samples}");
    println!("events {events}");
    println!("weight_ms {}", weight / 1_000_000);
    println!("observer_us {spent}");
    println!("observer_us_per_sample {}", spent / samples.max(1) as f64);
    println!("lost {}", method.as_ref().map_or(0, |method| method.losses().total()));
    Ok(())
}
