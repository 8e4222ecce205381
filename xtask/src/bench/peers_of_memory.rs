//! The bandwidth of `numa bench` beside that of likwid-bench, of stress-ng's stream and of hpcc's STREAM.

use super::measured::{BYTES, NEAR, Pairs, measured, one, per_byte};
use super::results::Results;
use crate::{install, process, workspace};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
const HPCC_RUNS: usize = 1;
/// It runs other benchmarks before STREAM.
const HPCC_TIME: Duration = Duration::from_secs(600);
pub fn run(results: &mut Results, rounds: usize) -> Result<()> {
    install::need(&["likwid-bench", "-a"], &["likwid"])?;
    install::need(&["stress-ng", "--version"], &["stress-ng"])?;
    // What hpcc does before STREAM takes minutes with the plain BLAS.
    install::need(
        &["sh", "-c", "which hpcc && ls /usr/lib/*/openblas-serial"],
        &["hpcc", "libopenblas0-serial"],
    )?;
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
        let begin = format!("{name}:");
        let mut lines = theirs.lines().map(|line| line.split_whitespace());
        let rate =
            lines.find_map(|mut words| words.next()?.eq_ignore_ascii_case(&begin).then(|| words.next())?);
        let rate: f64 = rate.with_context(|| format!("no {name} in {theirs}"))?.parse()?;
        Ok((1.0 / looped(&ours, name)?.1, 1.0 / rate))
    };
    LOOPS.iter().map(pair).collect()
}

/// What hpcc with one process prints of its STREAM; it is ended then.
fn hpcc() -> Result<String> {
    let dir = workspace::target().join("bench/hpcc");
    fs::create_dir_all(&dir)?;
    let printed = dir.join("hpccoutf.txt");
    let _ = fs::remove_file(&printed);
    let input = include_str!("../../floor/hpccinf.txt").replace("{N}", &HPCC_ORDER.to_string());
    fs::write(dir.join("hpccinf.txt"), input)?;
    let mut command = Command::new("hpcc");
    command.current_dir(&dir).env(HUGE.0, HUGE.1).stdout(Stdio::null());
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    let mut child = command.spawn()?;
    let began = Instant::now();
    let section = loop {
        let text = fs::read_to_string(&printed).unwrap_or_default();
        let section = text.split("Begin of SingleSTREAM section").nth(1);
        if let Some(section) = section.filter(|section| section.contains("End of SingleSTREAM")) {
            break section.to_owned();
        }
        if began.elapsed() > HPCC_TIME || child.try_wait()?.is_some() {
            child.kill()?;
            bail!("hpcc printed no rates of STREAM: {text}");
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    child.kill()?;
    child.wait()?;
    Ok(section)
}
