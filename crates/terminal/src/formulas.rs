//! Formulas as text: why one cannot be computed, and all of them as a table.

use numakit_formulas::{Catalog, FACTS, Missing, MissingInput, MissingReason};
use numakit_model::{Fix, Kind, Unavailable, Unit};
use numakit_sensors::SENSORS;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// Why a formula cannot be computed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// The first name that is missing.
    pub needs: String,
    /// Why it is missing.
    pub why: Unavailable,
    /// Alternatives to it, which are missing too.
    pub instead: Vec<String>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it needs {}: {}; {}", self.needs, self.why.seen, self.why.fix)?;
        match self.instead.as_slice() {
            [] => Ok(()),
            [one] => write!(f, " (alternative: {one})"),
            [one, more @ ..] => write!(f, " (alternatives: {one} and {} more)", more.len()),
        }
    }
}

/// The reason, in words. `absent` says why a metric or sensor is missing, as a probe found it.
pub fn reason(missing: &Missing, absent: &dyn Fn(&str) -> Option<Unavailable>) -> Reason {
    let names: Vec<&str> = missing.inputs.iter().map(|input| input.name.as_str()).collect();
    let (needs, instead) = names.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
    let why = missing.first().map_or_else(
        || Unavailable::new("", "", Fix::CommandLine(String::new())),
        |input| why_not(input, absent),
    );
    let instead = instead.iter().filter(|name| **name != needs).map(|name| (*name).to_owned()).collect();
    Reason { needs: needs.to_owned(), why, instead }
}

fn why_not(input: &MissingInput, absent: &dyn Fn(&str) -> Option<Unavailable>) -> Unavailable {
    let name = input.name.as_str();
    let sensor = name.split('.').next().unwrap_or(name);
    if input.why == MissingReason::NoSeries
        && let Some(why) = absent(name).or_else(|| absent(sensor))
    {
        return why;
    }
    let words = |text: &str| Fix::CommandLine(text.to_owned());
    let (seen, fix) = match &input.why {
        MissingReason::NoSeries if !SENSORS.iter().any(|s| s.name == sensor) => {
            (format!("there is no sensor {sensor}"), words("correct the name; 'numa list' shows all"))
        }
        MissingReason::NoSeries if ["uncore", "perf"].contains(&sensor) => (
            "the counters of this machine do not count it".to_owned(),
            words("use another formula, or one of your own with --formulas"),
        ),
        MissingReason::NoSeries => (
            "the kernel does not show it".to_owned(),
            Fix::OtherKernel("whose version and configuration have it".to_owned()),
        ),
        MissingReason::NotAt(place) => {
            let seen = format!("it is not measured per {}", place.scope().name());
            (seen, words("use --per with a larger unit"))
        }
        MissingReason::Unknown => {
            (input.why.to_string(), words("define a formula with the number, with --formulas"))
        }
        MissingReason::NoPageSize | MissingReason::Mismatch(_) => {
            (input.why.to_string(), words("correct the formula"))
        }
    };
    Unavailable::new(name, seen, fix)
}

/// Unit and kind of every metric that a sensor knows by name.
pub fn known_metrics() -> HashMap<String, (Unit, Kind)> {
    SENSORS.iter().flat_map(|s| (s.known)()).map(|m| (m.name, (m.unit, m.kind))).collect()
}

/// Every formula that comes with numakit, as Markdown.
pub fn guide() -> String {
    let mut text = String::from("| name | gives | formula | what it is |\n|---|---|---|---|\n");
    for formula in Catalog::built_in().all() {
        let expr = formula.expr.to_string().replace('|', "\\|");
        text.push_str(&format!(
            "| `{}` | {} | `{expr}` | {} |\n",
            formula.name, formula.quantity, formula.help
        ));
    }
    text
}

/// The properties of the machine that formulas may name, as Markdown.
pub fn facts_guide() -> String {
    let row = |fact: &numakit_formulas::Fact| {
        format!("| `{}` | {} | {} |\n", fact.name, fact.dimension(), fact.help)
    };
    format!("| name | unit | what it is |\n|---|---|---|\n{}", FACTS.iter().map(row).collect::<String>())
}
