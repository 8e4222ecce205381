//! A comparison in words, the same on the terminal and on the page.

use super::{ComparedRecording, Comparison, Difference};
use numakit_model::numbers::{NumberStyle, counted, duration, grouped};

/// A difference in words: a row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DifferenceWords {
    /// What differs, and how many others changed by the same.
    pub what: String,
    /// In A.
    pub before: String,
    /// In B.
    pub after: String,
    /// The change.
    pub change: String,
    /// A change up to this is noise.
    pub noise: String,
    /// `better`, `worse` or `equal`; empty if the difference is neither better nor worse.
    pub verdict: String,
}

impl Difference {
    /// The difference in words.
    pub fn words(&self) -> DifferenceWords {
        let what = match self.alike.len() {
            0 => self.name.clone(),
            more => format!("{} and {more} alike", self.name),
        };
        let (change, noise) = change_words(self);
        let verdict = match self.is_better {
            _ if !self.is_beyond_noise() => "equal",
            Some(true) => "better",
            Some(false) => "worse",
            None => "",
        };
        let words = |value| value_words(&self.unit, value);
        let (before, after) = (words(self.before), words(self.after));
        DifferenceWords { what, before, after, change, noise, verdict: verdict.to_owned() }
    }
}

impl ComparedRecording {
    /// Command, time, machine and number of problems.
    pub fn words(&self) -> String {
        let command = self.command.as_deref().unwrap_or("the whole machine");
        let problems = match self.problems {
            0 => "no problem".to_owned(),
            count => counted(count, "problem"),
        };
        // Recordings of NUMAscope do not name their machine.
        let host = if self.host.is_empty() { String::new() } else { format!(" on {}", self.host) };
        format!("{command}: {}{host}, {problems} found", duration(self.seconds))
    }
}

impl Comparison {
    /// How many values were compared, and how many differ.
    pub fn compared_words(&self) -> String {
        let not = match self.not_compared {
            0 => String::new(),
            1 => "; 1 is in one only, or has too few values to tell its noise".to_owned(),
            count => format!(
                "; {} are in one only, or have too few values to tell their noise",
                grouped(count as f64)
            ),
        };
        let differ = self.program.iter().chain(&self.machine).map(|d| 1 + d.alike.len()).sum::<usize>();
        match self.compared {
            0 => format!("no value{not}"),
            compared => {
                let differ = grouped(differ as f64);
                format!("{}, of which {differ} differ beyond noise{not}", counted(compared, "value"))
            }
        }
    }

    /// The differences of the program. Its run time comes first.
    pub fn of_program(&self) -> impl Iterator<Item = &Difference> {
        self.run_time.iter().chain(&self.program)
    }
}

/// `remote_time_share -78.5 points (noise 3.1)`.
pub(super) fn difference_words(difference: &Difference) -> String {
    let (change, noise) = change_words(difference);
    format!("{} {change} (noise {noise})", difference.name)
}

/// A change and its noise in words: in percent, of shares in points, and from 0 in the unit itself.
pub(super) fn change_words(difference: &Difference) -> (String, String) {
    let number = |value: f64| NumberStyle::Percent.words(value).trim_end_matches(" %").to_owned();
    let signed = |value: f64, text: String| match value {
        value if value.abs() < 0.05 => text.trim_start_matches('-').to_owned(),
        value if value > 0.0 => format!("+{text}"),
        _ => text,
    };
    match (difference.unit.as_str(), difference.change_percent, difference.noise_percent) {
        ("%", Some(change), Some(noise)) => {
            (signed(change, format!("{} points", number(change))), number(noise))
        }
        (_, Some(change), Some(noise)) if change < 1000.0 => {
            (signed(change, format!("{} %", number(change))), format!("{} %", number(noise)))
        }
        // The noise of a multiple is shown as a multiple too: percents beside it would not be comparable at a glance.
        (_, Some(change), Some(noise)) => (
            format!("x {}", NumberStyle::Ratio.words(1.0 + change / 100.0)),
            NumberStyle::Ratio.words(noise / 100.0),
        ),
        (unit, ..) => {
            (format!("+{}", value_words(unit, difference.after)), value_words(unit, difference.noise))
        }
    }
}

/// A value with its unit.
pub(super) fn value_words(unit: &str, value: f64) -> String {
    match unit {
        "%" => NumberStyle::Percent.words(value),
        "s" => duration(value),
        "bytes" => NumberStyle::Bytes.words(value),
        "bytes/s" => format!("{}B/s", NumberStyle::Ratio.words(value)),
        "count/s" | "pages/s" => NumberStyle::Rate.words(value),
        "count" => NumberStyle::Ratio.words(value),
        other => format!("{} {other}", NumberStyle::Ratio.words(value)),
    }
}
