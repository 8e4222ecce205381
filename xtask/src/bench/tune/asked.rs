//! What the tuner says of a program.

use super::measure::{own, shell};
use super::prepare::folder;
use super::programs::{Metric, Program};
use crate::{process, workspace};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// What a tuning may take, unless `NUMAKIT_TUNE_BUDGET` says otherwise.
const BUDGET: &str = "10m";

/// The answer of the tuner, whole.
#[derive(Debug)]
pub struct Asked(pub Value);

/// A setting that may be better than the default, and what was said of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The command with it, or that of the server.
    pub command: String,
    /// Its gain and the interval of that in ten new pairs, as fractions.
    pub gain: f64,
    pub low: f64,
    pub high: f64,
    pub pairs: u64,
}

impl Asked {
    /// Tunes a program.
    pub fn of(program: &Program) -> Result<Self> {
        let file = folder().join("answer.json");
        let _ = fs::remove_file(&file);
        let mut numa = command(program);
        let line = process::line(&numa);
        own(&mut numa);
        let status = numa.status().with_context(|| format!("cannot start: {line}"))?;
        let text = fs::read(&file).with_context(|| format!("{status}, and no answer: {line}"))?;
        Ok(Self(serde_json::from_slice(&text).with_context(|| format!("what is no JSON: {line}"))?))
    }

    /// The kind of the answer: use, nothing, open, ...
    pub fn kind(&self) -> &str {
        self.0["answer"]["kind"].as_str().unwrap_or("none")
    }

    /// The setting to use, if there is one.
    pub fn used(&self) -> Option<Setting> {
        let answer = Some(&self.0["answer"]).filter(|answer| answer["kind"] == "use")?;
        setting(&answer["command"], &answer["gain"])
    }

    /// The setting that was ahead of the others and not worth it, of those that need no cure: its file is kept with an answer only.
    pub fn best_in_rounds(&self) -> Option<Setting> {
        let candidates = self.0["candidates"].as_array()?.iter();
        let others = candidates.filter(|candidate| candidate["source"] != "default");
        let known = others.filter_map(|candidate| setting(&candidate["command"], &candidate["in_rounds"]));
        let known = known.filter(|setting| !setting.command.contains(" --apply "));
        known.max_by(|one, other| one.gain.total_cmp(&other.gain))
    }
}

fn setting(command: &Value, gain: &Value) -> Option<Setting> {
    Some(Setting {
        command: command.as_str()?.to_owned(),
        gain: gain["gain"].as_f64()?,
        low: gain["again_low"].as_f64()?,
        high: gain["again_high"].as_f64()?,
        pairs: gain["pairs"].as_u64()?,
    })
}

fn command(program: &Program) -> Command {
    let mut numa = Command::new(workspace::numa());
    let budget = std::env::var("NUMAKIT_TUNE_BUDGET").unwrap_or_else(|_| BUDGET.to_owned());
    numa.arg("tune").arg("--json").arg(folder().join("answer.json")).args(["--budget", &budget]);
    if let Some(expression) = program.metric.expression() {
        numa.args(["--metric", &expression, "--higher"]);
    }
    if program.metric == Metric::CpuTime {
        numa.arg("--cpu-time");
    }
    match &program.server {
        None => numa.arg("--").args(program.command.split_whitespace()),
        Some(server) => {
            numa.args(["--server", server.command, "--load", program.command, "--ready", server.ready])
        }
    };
    numa
}

/// The version of a program: the first line that a command prints, on either output.
pub fn version(program: &Program) -> Result<String> {
    let text = process::read(&mut shell(&format!("{{ {}; }} 2>&1", program.version)))?;
    Ok(text.lines().next().context("no version was printed")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_its_setting_and_the_best_of_the_others() {
        let gain = |gain: f64| serde_json::json!({"gain": gain, "again_low": gain - 0.1, "again_high": gain + 0.1, "pairs": 10});
        let candidate = |command: &str, source: &str, in_rounds: Value| serde_json::json!({"command": command, "source": source, "in_rounds": in_rounds});
        let asked = Asked(serde_json::json!({
            "answer": {"kind": "use", "command": "numa run --thp on ./app", "gain": gain(0.3)},
            "candidates": [
                candidate("./app", "default", gain(0.9)),
                candidate("a", "generic", gain(0.1)),
                candidate("b", "generic", gain(0.2)),
                candidate("c", "verdict", Value::Null),
                candidate("numa run --apply app.cure ./app", "verdict", gain(0.5)),
            ],
        }));
        let used = asked.used().unwrap();
        assert_eq!((used.command.as_str(), used.gain, used.pairs), ("numa run --thp on ./app", 0.3, 10));
        assert_eq!(asked.best_in_rounds().unwrap().command, "b");
        let nothing = Asked(serde_json::json!({"answer": {"kind": "nothing"}, "candidates": []}));
        assert_eq!((nothing.kind(), nothing.used(), nothing.best_in_rounds()), ("nothing", None, None));
        assert_eq!(Asked(Value::Null).kind(), "none");
    }
}
