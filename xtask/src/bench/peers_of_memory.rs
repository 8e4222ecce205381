//! The bandwidth of `numa bench` beside that of likwid-bench, of stress-ng's stream and of hpcc's STREAM.

use super::measured::{BYTES, NEAR, Pairs, measured, one, per_byte};
use super::results::Results;
use crate::{install, process, workspace};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A pass of ours, and the kernels of likwid-bench that do the same, of which the fastest counts.
const KERNELS: [(&str, &[&str]); 5] = [
    ("read", &["load_avx512", "load_avx", "load_sse", "load_mem"]),
    ("write", &["store_avx512", "store_avx", "store_sse"]),
    ("copy", &["copy_avx512", "copy_avx", "copy_sse"]),
    ("non-temporal write", &["store_mem_avx512", "store_mem_avx", "store_mem_sse"]),
    ("non-temporal copy", &["copy_mem_avx512", "copy_mem_avx", "copy_mem_sse"]),
];
const TRIADS: &[&str] = &["stream_avx512_fma", "stream_avx512", "stream_avx_fma", "stream_avx", "stream_sse"];
/// The loops of STREAM, and how many arrays each passes over.
const LOOPS: [(&str, f64); 4] = [("copy", 2.0), ("scale", 2.0), ("add", 3.0), ("triad", 3.0)];
/// Huge pages for programs that do not ask for them: glibc's malloc does.
const HUGE: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
/// Seconds that stress-ng needs to state a rate.
const STRESS_SECONDS: &str = "7";
/// Doubles of an array of hpcc are a third of this number squared: arrays of more than 128 MiB.
const HPCC_ORDER: u32 = 7200;
const HPCC_RUNS: usize = 3;

pub fn run(results: &mut Results, rounds: usize) -> Result<()> {
    install::need(&["likwid-bench", "-a"], &["likwid"])?;
    install::need(&["stress-ng", "--version"], &["stress-ng"])?;
    install::need(&["which", "hpcc"], &["hpcc"])?;
    let kernels = KERNELS.map(|(_, kernels)| fastest(kernels));
    let triad = fastest(TRIADS)?;
    let mut passes: [Pairs; KERNELS.len()] = Default::default();
    let (mut triads, mut loops) = (Pairs::new(), Pairs::new());
    for _ in 0..rounds {
        let ours = measured("bandwidth", "0")?;
        for (((pass, _), kernel), pairs) in KERNELS.iter().zip(&kernels).zip(&mut passes) {
            let Ok(kernel) = kernel else { continue };
            pairs.push((per_byte(&ours, pass)?, 1.0 / likwid(kernel)?));
        }
        let ours = measured("stream", "0")?;
        triads.push((1.0 / looped(&ours, "triad")?.0, 1.0 / likwid(triad)?));
        loops.push((1.0 / all_loops(&ours)?, 1.0 / stress()?));
    }
    for (((pass, _), kernel), pairs) in KERNELS.iter().zip(kernels).zip(&passes) {
        results.ratio(&format!("{pass} / likwid-bench {}", kernel?), pairs, "ns/B", NEAR)?;
    }
    results.ratio(&format!("triad / likwid-bench {triad}"), &triads, "ns/B", NEAR)?;
    results.ratio("all loops / stress-ng stream", &loops, "ns/B", NEAR)?;
    let hpcc: Result<Vec<Vec<(f64, f64)>>> = (0..HPCC_RUNS).map(|_| beside_hpcc()).collect();
    let hpcc = hpcc?;
    for (at, (name, _)) in LOOPS.iter().enumerate() {
        let pairs: Pairs = hpcc.iter().map(|run| run[at]).collect();
        results.ratio(&format!("{name}, best / hpcc STREAM"), &pairs, "ns/B", NEAR)?;
    }
    Ok(())
}

/// The fastest of the kernels that this CPU can run.
fn fastest<'a>(kernels: &[&'a str]) -> Result<&'a str> {
    let rates = kernels.iter().filter_map(|kernel| Some((likwid(kernel).ok()?, *kernel)));
    let best = rates.max_by(|one, other| one.0.total_cmp(&other.0));
    Ok(best.with_context(|| format!("likwid-bench runs none of {kernels:?}"))?.1)
}

/// GB/s of a kernel of likwid-bench, with one thread.
fn likwid(kernel: &str) -> Result<f64> {
    let set = format!("S0:{}kB:1", BYTES / 1000);
    let mut command = Command::new("likwid-bench");
    let text = process::read(command.args(["-t", kernel, "-s", "1", "-W", &set]).env(HUGE.0, HUGE.1))?;
    let rate = text.lines().find_map(|line| line.strip_prefix("MByte/s:"));
    Ok(rate.with_context(|| format!("no rate in {text:?}"))?.trim().parse::<f64>()? / 1e3)
}

/// GB/s of stress-ng's copy, scale, add and triad together, read and written.
fn stress() -> Result<f64> {
    let mut command = Command::new("stress-ng");
    command.args(["--stream", "1", "--taskset", "0", "--stream-madvise", "hugepage", "--metrics"]);
    command.args(["--stream-l3-size", &(BYTES / 4).to_string(), "--timeout", STRESS_SECONDS]);
    let output = command.output()?;
    let text = String::from_utf8([output.stdout, output.stderr].concat())?;
    let rate = |unit: &str| -> Option<f64> {
        let words = text.lines().find(|line| line.contains("memory rate: "))?;
        let words: Vec<&str> = words.split_whitespace().collect();
        words[words.iter().position(|word| word.starts_with(unit))? - 2].parse().ok()
    };
    let both = rate("read/sec").zip(rate("write/sec")).with_context(|| format!("no rate in {text:?}"))?;
    // A MB of stress-ng has 1,048,576 bytes.
    Ok((both.0 + both.1) * f64::from(1 << 20) / 1e9)
}

/// GB/s of our loops in turn, as stress-ng counts them.
fn all_loops(ours: &Value) -> Result<f64> {
    let mut time = 0.0;
    for (name, arrays) in LOOPS {
        time += arrays / looped(ours, name)?.0;
    }
    Ok(LOOPS.iter().map(|(_, arrays)| arrays).sum::<f64>() / time)
}

/// GB/s of one of our loops with one thread: the median, and the best, which STREAM states.
fn looped(ours: &Value, name: &str) -> Result<(f64, f64)> {
    let value = one(ours, "values", &format!("{name}, 1 thread, compact"))?;
    let median = value["value"]["median"].as_f64();
    median.zip(value["best"].as_f64()).with_context(|| format!("not measured: {value}"))
}

/// Our best of each loop and that of hpcc, in ns for a byte: STREAM's own figure.
fn beside_hpcc() -> Result<Pairs> {
    let ours = measured("stream", "0")?;
    let theirs = hpcc()?;
    let pair = |(name, _): &(&str, f64)| {
        let mut title = (*name).to_owned();
        title[..1].make_ascii_uppercase();
        let key = format!("SingleSTREAM_{title}=");
        let theirs = theirs.lines().find_map(|line| line.strip_prefix(&key));
        let theirs: f64 = theirs.with_context(|| format!("no {key} from hpcc"))?.trim().parse()?;
        Ok((1.0 / looped(&ours, name)?.1, 1.0 / theirs))
    };
    LOOPS.iter().map(pair).collect()
}

/// The summary of a run of hpcc with one process.
fn hpcc() -> Result<String> {
    let dir = workspace::target().join("bench/hpcc");
    fs::create_dir_all(&dir)?;
    let _ = fs::remove_file(dir.join("hpccoutf.txt"));
    fs::write(
        dir.join("hpccinf.txt"),
        include_str!("../../floor/hpccinf.txt").replace("{N}", &HPCC_ORDER.to_string()),
    )?;
    let mut command = Command::new("hpcc");
    command.current_dir(&dir).env(HUGE.0, HUGE.1);
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    process::read(&mut command)?;
    Ok(fs::read_to_string(dir.join("hpccoutf.txt"))?)
}
