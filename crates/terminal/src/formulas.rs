//! Formulas as text: why one cannot be computed, and all of them as a table.

use numakit_derived::{Catalog, FACTS, Lack, Missing, Why};
use numakit_model::{Fix, Kind, Unavailable, Unit};
use numakit_sensors::SENSORS;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// What a formula needs and does not have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// The first name that is missing.
    pub needs: String,
    /// Why it is.
    pub why: Unavailable,
    /// What would do instead, but is missing too.
    pub instead: Vec<String>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it needs {}: {}; {}", self.needs, self.why.seen, self.why.fix)?;
        match self.instead.as_slice() {
            [] => Ok(()),
            [one] => write!(f, " ({one} would do too)"),
            [one, more @ ..] => write!(f, " ({one} or one of {} others would do too)", more.len()),
        }
    }
}

/// In words. `absent` is asked for names of metrics and sensors, as a probe has them.
pub fn reason(missing: &Missing, absent: &dyn Fn(&str) -> Option<Unavailable>) -> Reason {
    let names: Vec<&str> = missing.lacks.iter().map(|lack| lack.name.as_str()).collect();
    let (needs, instead) = names.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
    let why = missing.first().map_or_else(
        || Unavailable::new("", "", Fix::CommandLine(String::new())),
        |lack| why_not(lack, absent),
    );
    let instead = instead.iter().filter(|name| **name != needs).map(|name| (*name).to_owned()).collect();
    Reason { needs: needs.to_owned(), why, instead }
}

fn why_not(lack: &Lack, absent: &dyn Fn(&str) -> Option<Unavailable>) -> Unavailable {
    let name = lack.name.as_str();
    let sensor = name.split('.').next().unwrap_or(name);
    if lack.why == Why::NoSeries
        && let Some(why) = absent(name).or_else(|| absent(sensor))
    {
        return why;
    }
    let words = |text: &str| Fix::CommandLine(text.to_owned());
    let (seen, fix) = match &lack.why {
        Why::NoSeries if !SENSORS.iter().any(|s| s.name == sensor) => {
            (format!("no sensor is called {sensor}"), words("correct the name; 'numa list' shows all"))
        }
        Why::NoSeries if ["uncore", "perf"].contains(&sensor) => (
            "the counters of this machine do not count it".to_owned(),
            words("use another formula, or one of your own with --formulas"),
        ),
        Why::NoSeries => (
            "it is not shown here".to_owned(),
            Fix::OtherKernel("whose version and configuration have it".to_owned()),
        ),
        Why::NotAt(place) => {
            let seen = format!("there is none of a {} alone", place.scope().name());
            (seen, words("ask for a larger place with --per"))
        }
        Why::NotSaid => (lack.why.to_string(), words("write the number into a formula of your own")),
        Why::NoPageSize | Why::Mismatch(_) => (lack.why.to_string(), words("correct the formula")),
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
    for formula in Catalog::ours().all() {
        let expr = formula.expr.to_string().replace('|', "\\|");
        text.push_str(&format!(
            "| `{}` | {} | `{expr}` | {} |\n",
            formula.name, formula.quantity, formula.help
        ));
    }
    text
}

/// The facts of the machine that formulas may name, as Markdown.
pub fn facts_guide() -> String {
    let row = |fact: &numakit_derived::Fact| {
        format!("| `{}` | {} | {} |\n", fact.name, fact.dimension(), fact.help)
    };
    format!("| name | unit | what it is |\n|---|---|---|\n{}", FACTS.iter().map(row).collect::<String>())
}
