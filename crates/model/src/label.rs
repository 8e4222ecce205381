//! Text between the samples, written by a user or by the recorder.

/// Longest text of a label, in bytes; a longer one is refused, not cut.
pub const MAX_BYTES: usize = 4096;

/// Labels of the recorder start with this; labels of users cannot.
pub const RESERVED: &str = "numakit:";

/// What the recorder notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecorderEvent {
    /// The observed command was started: its arguments.
    CommandStarted(String),
    /// It ended: exit status, 128+signal when killed.
    CommandEnded(i32),
    /// Sampling was paused.
    Paused,
    /// Sampling continues.
    Resumed,
    /// The interval changed to this number of nanoseconds.
    Interval(u64),
    /// Number of ticks that were missed just before this row.
    Lost(u64),
    /// Number of rows that were sampled but dropped, because the consumer was too slow.
    Dropped(u64),
    /// Number of rows that could not be read here when the recording was recovered.
    Damaged(u64),
    /// The wall clock was set: the difference in nanoseconds.
    ClockStep(i64),
    /// A sensor has no values any more, and why.
    Absent(String),
    /// A sensor has values again.
    Back(String),
}

impl RecorderEvent {
    /// The label's text.
    pub fn text(&self) -> String {
        match self {
            Self::CommandStarted(words) => format!("{RESERVED}command {words}"),
            Self::CommandEnded(status) => format!("{RESERVED}exit {status}"),
            Self::Paused => format!("{RESERVED}pause"),
            Self::Resumed => format!("{RESERVED}resume"),
            Self::Interval(ns) => format!("{RESERVED}interval {ns}ns"),
            Self::Lost(n) => format!("{RESERVED}lost {n}"),
            Self::Dropped(n) => format!("{RESERVED}dropped {n}"),
            Self::Damaged(n) => format!("{RESERVED}damaged {n}"),
            Self::ClockStep(ns) => format!("{RESERVED}clock {ns:+}ns"),
            Self::Absent(what) => format!("{RESERVED}absent {what}"),
            Self::Back(what) => format!("{RESERVED}back {what}"),
        }
    }

    /// Parses a label's text; `None` for a user's label.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(RESERVED)?;
        let (word, value) = rest.split_once(' ').unwrap_or((rest, ""));
        Some(match word {
            "command" => Self::CommandStarted(value.to_owned()),
            "exit" => Self::CommandEnded(value.parse().ok()?),
            "pause" => Self::Paused,
            "resume" => Self::Resumed,
            "interval" => Self::Interval(value.strip_suffix("ns")?.parse().ok()?),
            "lost" => Self::Lost(value.parse().ok()?),
            "dropped" => Self::Dropped(value.parse().ok()?),
            "damaged" => Self::Damaged(value.parse().ok()?),
            "clock" => Self::ClockStep(value.strip_suffix("ns")?.parse().ok()?),
            "absent" => Self::Absent(value.to_owned()),
            "back" => Self::Back(value.to_owned()),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_print_and_parse() {
        for event in [
            RecorderEvent::CommandStarted("sleep 1".into()),
            RecorderEvent::CommandEnded(143),
            RecorderEvent::Paused,
            RecorderEvent::Resumed,
            RecorderEvent::Interval(5_000_000),
            RecorderEvent::Lost(3),
            RecorderEvent::Dropped(9),
            RecorderEvent::Damaged(1000),
            RecorderEvent::ClockStep(-3_600_000_000_000),
            RecorderEvent::Absent("node: removed".into()),
            RecorderEvent::Back("node".into()),
        ] {
            assert_eq!(RecorderEvent::parse(&event.text()), Some(event));
        }
        assert_eq!(RecorderEvent::parse("start of phase 2"), None);
        assert_eq!(RecorderEvent::parse("numakit:other"), None);
    }
}
