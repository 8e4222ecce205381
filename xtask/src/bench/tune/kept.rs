//! Kept results: one file per program in corpus/tuned, and the table of them.

use super::asked::{Asked, Setting};
use super::programs::Program;
use crate::bench::statistics::median;
use crate::{process, workspace};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Pairs of runs without a setting and with it, measured after the tuner has ended.
#[derive(Debug)]
pub struct Confirmed {
    pub setting: Setting,
    /// The gain of each pair.
    gains: Vec<f64>,
}

impl Confirmed {
    /// Of values without and with the setting; `higher`: more is better.
    pub fn new(setting: Setting, pairs: &[(f64, f64)], higher: bool) -> Self {
        let gain =
            |(without, with): &(f64, f64)| if higher { with / without - 1.0 } else { 1.0 - with / without };
        let mut gains: Vec<f64> = pairs.iter().map(gain).collect();
        gains.sort_by(f64::total_cmp);
        Self { setting, gains }
    }

    /// The median gain.
    pub fn gain(&self) -> f64 {
        median(self.gains.iter().copied())
    }

    /// From the second lowest gain to the second highest one: of ten pairs, the true gain is between them in 98 of 100 cases.
    pub fn range(&self) -> (f64, f64) {
        let last = self.gains.len().saturating_sub(1);
        let at = |k: usize| self.gains.get(k).copied().unwrap_or(f64::NAN);
        (at(1.min(last)), at(last.saturating_sub(1)))
    }

    /// Whether the gain is in the interval that the tuner stated.
    pub fn is_within(&self) -> bool {
        (self.setting.low..=self.setting.high).contains(&self.gain())
    }
}

/// Keeps what was found of a program.
pub fn keep(
    program: &Program,
    version: &str,
    load: &str,
    asked: &Asked,
    confirmed: Option<&Confirmed>,
) -> Result<()> {
    let confirmed = confirmed.map(|confirmed| {
        let (low, high) = confirmed.range();
        json!({
            "command": confirmed.setting.command, "stated": {
                "gain": confirmed.setting.gain, "low": confirmed.setting.low, "high": confirmed.setting.high,
                "pairs": confirmed.setting.pairs,
            },
            "gain": confirmed.gain(), "low": low, "high": high, "pairs": confirmed.gains, "within": confirmed.is_within(),
        })
    });
    let record = json!({
        "program": program.name, "work": program.work, "version": version,
        "date": process::read(Command::new("date").args(["-u", "+%F"]))?.trim(),
        "machine": machine()?, "load": load,
        "command": program.command, "server": program.server.as_ref().map(|server| server.command),
        "metric": program.metric.expression(), "gained": program.metric.gained(),
        "answer": asked.0["answer"], "runs": asked.0["runs"], "seconds": asked.0["seconds"],
        "candidates": asked.0["candidates"], "confirmed": confirmed,
    });
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{}.json", program.name));
    fs::write(&path, format!("{record:#}\n")).with_context(|| path.display().to_string())
}

/// Where results are kept.
fn folder() -> PathBuf {
    workspace::root().join("corpus/tuned")
}

/// The processor, the number of CPUs, the kernel and its huge pages.
fn machine() -> Result<Value> {
    let text = fs::read_to_string("/proc/cpuinfo")?;
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let nodes = fs::read_to_string("/sys/devices/system/node/online").unwrap_or_default();
    Ok(json!({
        "processor": model.map(|(_, name)| name.trim()),
        "cpus": text.lines().filter(|line| line.starts_with("processor")).count(),
        "nodes": nodes.trim(), "kernel": kernel.trim(), "huge_pages": pages.trim(),
    }))
}

/// The kept results by the name of their program.
pub fn all() -> Result<Vec<Value>> {
    let mut records = Vec::new();
    for entry in fs::read_dir(folder())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read(&path)?;
            records.push(serde_json::from_slice(&text).with_context(|| path.display().to_string())?);
        }
    }
    records.sort_by_key(|record: &Value| record["program"].as_str().unwrap_or_default().to_owned());
    Ok(records)
}

/// The table of kept results, in Markdown.
pub fn table(records: &[Value]) -> Result<String> {
    let mut text = String::from(
        "| program | use | the tuner: gain | ten new pairs | within | runs, time |\n|---|---|---|---|---|---|\n",
    );
    for record in records {
        let name = record["program"].as_str().context("a result has no program")?;
        let confirmed = Some(&record["confirmed"]).filter(|confirmed| !confirmed.is_null());
        let is_used = record["answer"]["kind"] == "use";
        let answer = match record["answer"]["kind"].as_str() {
            Some("use") => format!("`{}`", setting(record)),
            Some("nothing") => "nothing".to_owned(),
            Some(other) => other.to_owned(),
            None => "no answer".to_owned(),
        };
        let (stated, again, within) = match confirmed.filter(|_| is_used) {
            None => (String::new(), rejected(confirmed, record), ""),
            Some(pairs) => {
                let within = if pairs["within"] == true { "yes" } else { "no" };
                (range(&pairs["stated"], record), range(pairs, record), within)
            }
        };
        let cost = format!("{}, {:.0} s", record["runs"], record["seconds"].as_f64().unwrap_or(f64::NAN));
        writeln!(text, "| {name} | {answer} | {stated} | {again} | {within} | {cost} |")?;
    }
    writeln!(text, "\n{}", circumstances(records))?;
    Ok(text)
}

/// The machines, and how busy they were.
fn circumstances(records: &[Value]) -> String {
    let machine = |record: &Value| {
        let machine = &record["machine"];
        let processor = machine["processor"].as_str().unwrap_or("an unknown processor");
        format!(
            "{processor}, CPUs: {}, nodes: {}",
            machine["cpus"],
            machine["nodes"].as_str().unwrap_or("unknown")
        )
    };
    let machines: BTreeSet<String> = records.iter().map(machine).collect();
    let loads = records.iter().filter_map(|record| record["load"].as_str()?.split(' ').next()?.parse().ok());
    let (low, high) = loads
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), load: f64| (low.min(load), high.max(load)));
    let machines = machines.into_iter().collect::<Vec<_>>().join("; ");
    format!("{machines}. Load average before: {low} to {high}.")
}

/// What the best of the settings gains that the tuner rejected.
fn rejected(confirmed: Option<&Value>, record: &Value) -> String {
    let Some(confirmed) = confirmed else { return String::new() };
    format!("`{}`: {}", shortened(&confirmed["command"], record), range(confirmed, record))
}

fn setting(record: &Value) -> String {
    shortened(&record["answer"]["command"], record)
}

/// A command without what is the program's own.
fn shortened(command: &Value, record: &Value) -> String {
    let own = record["server"].as_str().or(record["command"].as_str()).unwrap_or_default();
    let command = command.as_str().unwrap_or_default();
    command.strip_suffix(own).unwrap_or(command).trim_end().to_owned()
}

/// A gain in percent and where it lies.
fn range(gain: &Value, record: &Value) -> String {
    let what = record["gained"].as_str().unwrap_or_default();
    format!("{} % {what} ({} to {})", percent(&gain["gain"]), percent(&gain["low"]), percent(&gain["high"]))
}

/// A fraction in percent, with one digit.
fn percent(fraction: &Value) -> String {
    format!("{:.1}", fraction.as_f64().unwrap_or(f64::NAN) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the first page: what gained, the most first, and how many gained nothing.
    fn winners(records: &[Value]) -> Result<String> {
        let gain = |record: &Value| record["confirmed"]["gain"].as_f64().unwrap_or(0.0);
        let mut used: Vec<&Value> =
            records.iter().filter(|record| record["answer"]["kind"] == "use").collect();
        used.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
        let mut text =
            String::from("| program | use | the tuner says | ten new pairs |\n|---|---|---|---|\n");
        for record in &used {
            let (name, work) = (record["program"].as_str(), record["work"].as_str());
            let (name, work) = (name.context("a result has no program")?, work.unwrap_or_default());
            let (stated, again) =
                (range(&record["confirmed"]["stated"], record), percent(&record["confirmed"]["gain"]));
            writeln!(text, "| {name}: {work} | `{}` | {stated} | {again} % |", setting(record))?;
        }
        writeln!(text, "| {} others | nothing is worth it | | |", records.len() - used.len())?;
        Ok(text)
    }

    /// The pages with a table of the results.
    type Page = (&'static str, fn(&[Value]) -> Result<String>);
    const PAGES: [Page; 2] = [("docs/guide/tune.md", table), ("README.md", winners)];

    #[test]
    fn the_pages_have_the_kept_results() {
        for (page, table) in PAGES {
            numakit_testing::guide::check_part(page, "tuned", &table(&all().unwrap()).unwrap());
        }
    }

    #[test]
    fn a_row_has_the_setting_alone_and_what_it_gains() {
        let pairs = |gain: f64| json!({"gain": gain, "low": gain - 0.1, "high": gain + 0.1});
        let mut confirmed = pairs(0.28);
        confirmed["command"] = "numa run --thp on ./map 9".into();
        confirmed["stated"] = pairs(0.3);
        confirmed["within"] = true.into();
        let mut record = json!({
            "program": "c++", "command": "./map 9", "server": null, "gained": "less time", "runs": 44, "seconds": 300.4,
            "answer": {"kind": "use", "command": "numa run --thp on ./map 9"}, "confirmed": confirmed,
        });
        let row =
            |record: &Value| table(std::slice::from_ref(record)).unwrap().lines().nth(2).unwrap().to_owned();
        assert_eq!(
            row(&record),
            "| c++ | `numa run --thp on` | 30.0 % less time (20.0 to 40.0) | 28.0 % less time (18.0 to 38.0) | yes | 44, 300 s |"
        );
        record["answer"] = json!({"kind": "nothing"});
        assert_eq!(
            row(&record),
            "| c++ | nothing |  | `numa run --thp on`: 28.0 % less time (18.0 to 38.0) |  | 44, 300 s |"
        );
        record["load"] = "1.5 2.5 3.5".into();
        record["machine"] = json!({"processor": "X", "cpus": 2, "nodes": "0"});
        let text = table(&[record.clone()]).unwrap();
        assert!(text.ends_with("\nX, CPUs: 2, nodes: 0. Load average before: 1.5 to 1.5.\n"), "{text}");
        record["confirmed"] = Value::Null;
        assert_eq!(row(&record), "| c++ | nothing |  |  |  | 44, 300 s |");
    }

    #[test]
    fn a_gain_is_less_time_or_a_higher_rate() {
        let setting = Setting { command: "x".into(), gain: 0.2, low: 0.1, high: 0.3, pairs: 7 };
        let faster = Confirmed::new(setting.clone(), &[(10.0, 8.0), (10.0, 7.5), (10.0, 9.5)], false);
        assert!((faster.gain() - 0.2).abs() < 1e-9 && faster.is_within());
        let rate = Confirmed::new(setting, &[(10.0, 15.0), (10.0, 14.0), (10.0, 16.0)], true);
        assert!((rate.gain() - 0.5).abs() < 1e-9 && !rate.is_within());
        let ten: Vec<(f64, f64)> = (1..=10).map(|k| (100.0, f64::from(k))).collect();
        let (low, high) = Confirmed::new(rate.setting, &ten, false).range();
        assert!((low - 0.91).abs() < 1e-9 && (high - 0.98).abs() < 1e-9, "{low} {high}");
    }
}
