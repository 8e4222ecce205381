//! Results with their floors and limits: printed, and stored as JSON lines.

use super::statistics::median;
use crate::workspace;
use anyhow::Result;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::process::ExitCode;

/// Prints and stores results.
#[derive(Debug)]
pub struct Results {
    file: File,
    benchmark: &'static str,
    missed: usize,
}

impl Results {
    /// Appends to target/bench/results.jsonl.
    pub fn open() -> Result<Self> {
        let dir = workspace::target().join("bench");
        fs::create_dir_all(&dir)?;
        let file = File::options().create(true).append(true).open(dir.join("results.jsonl"))?;
        Ok(Self { file, benchmark: "", missed: 0 })
    }

    /// Starts a benchmark; prints the load of the machine.
    pub fn begin(&mut self, benchmark: &'static str, question: &str) -> Result<()> {
        let load = fs::read_to_string("/proc/loadavg")?;
        let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
        println!("\n{benchmark}: {question} (load average {load})");
        self.benchmark = benchmark;
        Ok(())
    }

    /// Prints a remark.
    pub fn say(&self, text: &str) {
        println!("  {text}");
    }

    /// Prints why something could not be measured, which is a limit missed.
    pub fn fail(&mut self, text: &str) {
        self.missed += 1;
        println!("  {text}: MISS");
    }

    /// Adds a result without a limit.
    pub fn show(&mut self, name: &str, value: f64, unit: &str) -> Result<()> {
        println!("  {name:<40} {value:>10.2} {unit}");
        self.keep(name, value, unit, None, None)
    }

    /// Stores a result that is printed elsewhere.
    pub fn store(&mut self, name: &str, value: f64, unit: &str) -> Result<()> {
        self.keep(name, value, unit, None, None)
    }

    /// Adds a result that must not exceed a limit.
    pub fn at_most(&mut self, name: &str, value: f64, unit: &str, limit: f64) -> Result<()> {
        let verdict = self.judge(value <= limit);
        println!("  {name:<40} {value:>10.2} {unit:<12} limit {limit:<8} {verdict}");
        self.keep(name, value, unit, None, Some((limit, verdict)))
    }

    /// Adds a result that must not be below a limit.
    pub fn at_least(&mut self, name: &str, value: f64, unit: &str, limit: f64) -> Result<()> {
        let verdict = self.judge(value >= limit);
        println!("  {name:<40} {value:>10.2} {unit:<12} limit {limit:<8} {verdict}");
        self.keep(name, value, unit, None, Some((limit, verdict)))
    }

    /// Adds pairs of ours and the floor: the median ratio must not exceed the limit.
    pub fn ratio(&mut self, name: &str, pairs: &[(f64, f64)], unit: &str, limit: f64) -> Result<()> {
        let ours = median(pairs.iter().map(|p| p.0));
        let floor = median(pairs.iter().map(|p| p.1));
        let ratio = median(pairs.iter().map(|p| p.0 / p.1));
        let verdict = self.judge(ratio <= limit);
        println!(
            "  {name:<40} {ours:>10.2} {unit:<3} floor {floor:>8.2}  x {ratio:<6.2} limit {limit:<5} {verdict}"
        );
        self.keep(name, ours, unit, Some((floor, ratio)), Some((limit, verdict)))
    }

    /// The exit status: 1 if any limit was exceeded.
    pub fn end(&self) -> ExitCode {
        println!("\n{} limits missed", self.missed);
        if self.missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn judge(&mut self, held: bool) -> &'static str {
        self.missed += usize::from(!held);
        if held { "ok" } else { "MISS" }
    }

    fn keep(
        &mut self,
        name: &str,
        value: f64,
        unit: &str,
        floor: Option<(f64, f64)>,
        limit: Option<(f64, &str)>,
    ) -> Result<()> {
        let mut line = format!(
            r#"{{"benchmark":"{}","figure":"{name}","value":{value},"unit":"{unit}""#,
            self.benchmark
        );
        if let Some((floor, ratio)) = floor {
            write!(line, r#","floor":{floor},"ratio":{ratio}"#)?;
        }
        if let Some((limit, verdict)) = limit {
            write!(line, r#","limit":{limit},"verdict":"{verdict}""#)?;
        }
        Ok(writeln!(self.file, "{line}}}")?)
    }
}
