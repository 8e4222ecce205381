//! `logged LEAST PERIOD PROGRAM [WORD...]`: runs a program with its allocations logged, and prints how many records came
//! and what share was lost. With `LOGGED_RECORDS` it prints the records on standard error.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use numakit_launch::preload::Library;
use numakit_sys::allocation_log::{AllocationLog, LogThreshold};
use std::error::Error;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [least, period, program, rest @ ..] = words.as_slice() else {
        return Err("logged LEAST PERIOD PROGRAM...".into());
    };
    let threshold = LogThreshold { least: least.parse()?, period: period.parse()?, first: 0 };
    let mut log = AllocationLog::create(1 << 15, threshold)?;
    let mut command = Command::new(program);
    command.args(rest).envs(log.environment()).env("LD_PRELOAD", Library::Explain.extract()?);
    let mut child = command.spawn()?;
    let prints = std::env::var_os("LOGGED_RECORDS").is_some();
    let mut count = 0;
    let status = loop {
        let ended = child.try_wait()?;
        let drained = log.drain(&mut |record| {
            if prints {
                eprintln!("{record:x?}");
            }
        });
        count += drained;
        match ended {
            Some(status) => break status,
            None if drained == 0 => thread::sleep(Duration::from_millis(1)),
            None => (),
        }
    };
    let losses = log.losses();
    let lost = losses.full + losses.unfinished + losses.damaged;
    println!("records {count}\nlost_percent {:.2}", 100.0 * lost as f64 / (count as f64 + lost as f64));
    Ok(ExitCode::from(status.code().or(status.signal().map(|s| 128 + s)).unwrap_or(255) as u8))
}
