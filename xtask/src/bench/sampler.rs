//! The cost of a sample and the wake-up latency, compared with a bare C loop, at normal and at real-time
//! priority.

use super::floor;
use super::recorder::Recording;
use super::results::Results;
use super::statistics::{PAIRS, median, pairs};
use crate::process::Figures;
use anyhow::Result;

const SECONDS: u32 = 10;
const VMSTAT: &str = "/proc/vmstat";

pub fn run(results: &mut Results) -> Result<()> {
    compare(results, "normal", &[])?;
    if floor::may_be_realtime()? {
        compare(results, "realtime", &["--fifo"])
    } else {
        results.say("real-time priority is not permitted here: skipped");
        Ok(())
    }
}

fn compare(results: &mut Results, priority: &str, floor_options: &[&str]) -> Result<()> {
    let recording =
        Recording::new("-i 1ms -e vmstat*,self.wakeup", f64::from(SECONDS)).with(&["--priority", priority]);
    let rate = ["1000", &SECONDS.to_string(), VMSTAT];
    let measured = pairs(
        PAIRS,
        || recording.make(),
        || Figures::of(floor::program("floor_files")?.args(rate).args(floor_options)),
    )?;
    let each = |ours: &str, floor: &str| -> Result<Vec<(f64, f64)>> {
        measured.iter().map(|(a, b)| Ok((a.get(ours)?, b.get(floor)?))).collect()
    };
    let name = |figure: &str| format!("{figure}, {priority}");
    results.ratio(&name("CPU per sample, sampler thread"), &each("sampler_us", "cpu_us")?, "us", 1.3)?;
    results.ratio(&name("CPU per sample, whole process"), &each("process_us", "cpu_us")?, "us", 1.8)?;
    results.ratio(&name("wake-up p50"), &each("wake_p50_us", "wake_p50_us")?, "us", 2.0)?;
    results.ratio(&name("wake-up p99"), &each("wake_p99_us", "wake_p99_us")?, "us", 2.0)?;
    let missed = each("missed", "missed")?;
    let more = median(missed.iter().map(|(ours, floor)| (ours - floor) * 100.0));
    results.at_most(&name("missed ticks above the floor's"), more, "points", 0.1)?;
    results.show(&name("missed ticks"), median(missed.iter().map(|m| m.0 * 100.0)), "%")?;
    results.show(&name("missed ticks of the floor"), median(missed.iter().map(|m| m.1 * 100.0)), "%")
}
