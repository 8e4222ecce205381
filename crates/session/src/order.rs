//! Orders to a running observation: one a line.

use crate::interval::{self, IntervalError};
use numakit_model::label::{MAX_BYTES, RESERVED};
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlCommand {
    /// Close the recording, if any, and record to this file.
    Record(PathBuf),
    /// Close the recording and go on without.
    Close,
    /// Note this text.
    Label(String),
    /// Take no samples until told.
    Pause,
    /// Take samples again.
    Resume,
    /// Change the interval.
    Interval(Duration),
    /// Read this sensor again.
    Enable(String),
    /// Leave this sensor alone.
    Disable(String),
    /// End the observation.
    Stop,
    /// Tell how it goes.
    Status,
}

/// Name, argument and help of every order, for documents and errors.
pub const ORDERS: [(&str, &str, &str); 10] = [
    ("record", "FILE", "record to FILE and close the current recording; 'numa live': below --recordings"),
    ("close", "", "close the current recording without opening another"),
    ("label", "TEXT", "add the label TEXT at the current time"),
    ("pause", "", "stop sampling until resumed"),
    ("resume", "", "resume sampling"),
    ("interval", "TIME", "sample every TIME, from 100us to 1h, or at a frequency such as 50Hz or 2kHz"),
    ("enable", "SENSOR", "read a disabled sensor again"),
    ("disable", "SENSOR", "do not read a sensor until it is enabled; its series have no values meanwhile"),
    ("stop", "", "end the observation cleanly"),
    ("status", "", "print the interval, the numbers of samples and lost ticks, and the recording"),
];

/// A line that is no order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OrderError {
    /// Longer than any order.
    #[error("a line of more than {MAX_BYTES} bytes was refused; send one order a line")]
    TooLong,
    /// Bytes that are no text.
    #[error("the line is not UTF-8 text")]
    NotText,
    /// Something behind an order that stands for itself.
    #[error("'{order}' takes no argument; got '{argument}'")]
    Argument {
        /// The order.
        order: String,
        /// What followed.
        argument: String,
    },
    /// Nothing behind an order that needs something.
    #[error("'{order}' needs a {what}: {order} {}", what.to_uppercase())]
    Needs {
        /// The order.
        order: String,
        /// What it needs.
        what: &'static str,
    },
    /// A recording to standard output.
    #[error("'record' needs the name of a file: only 'numa record -o -' writes to standard output")]
    StandardOutput,
    /// A label that looks like one of the recorder.
    #[error("labels that start with '{RESERVED}' are the recorder's own; use another text")]
    Reserved,
    /// No interval.
    #[error(transparent)]
    Interval(#[from] IntervalError),
    /// None of the orders.
    #[error("unknown order '{order}'; the orders are {}", ORDERS.map(|(name, ..)| name).join(", "))]
    Unknown {
        /// What was given, or the start of it.
        order: String,
    },
}

impl ControlCommand {
    /// Reads a line.
    pub fn parse(line: &[u8]) -> Result<Self, OrderError> {
        if line.len() > MAX_BYTES {
            return Err(OrderError::TooLong);
        }
        let line = std::str::from_utf8(line).map_err(|_| OrderError::NotText)?.trim();
        let (word, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        let alone = |order: Self| {
            if argument.is_empty() {
                Ok(order)
            } else {
                Err(OrderError::Argument { order: word.to_owned(), argument: argument.to_owned() })
            }
        };
        let needs = |what| Err(OrderError::Needs { order: word.to_owned(), what });
        match word {
            "record" if argument.is_empty() => needs("file"),
            "record" if argument == "-" => Err(OrderError::StandardOutput),
            "record" => Ok(Self::Record(argument.into())),
            "label" if argument.is_empty() => needs("text"),
            "label" if argument.starts_with(RESERVED) => Err(OrderError::Reserved),
            "label" => Ok(Self::Label(argument.to_owned())),
            "interval" => Ok(Self::Interval(interval::parse(argument)?)),
            "enable" | "disable" if argument.is_empty() => needs("sensor"),
            "enable" => Ok(Self::Enable(argument.to_owned())),
            "disable" => Ok(Self::Disable(argument.to_owned())),
            "close" => alone(Self::Close),
            "pause" => alone(Self::Pause),
            "resume" => alone(Self::Resume),
            "stop" => alone(Self::Stop),
            "status" => alone(Self::Status),
            _ => Err(OrderError::Unknown { order: shown(word) }),
        }
    }
}

fn shown(word: &str) -> String {
    word.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read() {
        assert_eq!(
            ControlCommand::parse(b"label phase  two "),
            Ok(ControlCommand::Label("phase  two".into()))
        );
        assert_eq!(ControlCommand::parse(b"record /tmp/a b"), Ok(ControlCommand::Record("/tmp/a b".into())));
        assert_eq!(
            ControlCommand::parse(b"interval 5ms"),
            Ok(ControlCommand::Interval(Duration::from_millis(5)))
        );
        assert_eq!(ControlCommand::parse(b" stop\r"), Ok(ControlCommand::Stop));
        for (name, argument, _) in ORDERS {
            let example = match argument {
                "TIME" => "1s",
                other => other,
            };
            assert!(ControlCommand::parse(format!("{name} {example}").as_bytes()).is_ok(), "{name}");
        }
    }

    #[test]
    fn wrong_lines_are_refused_with_the_fix() {
        for (line, says) in [
            ("", "the orders are"),
            ("reboot now", "unknown order 'reboot'"),
            ("record", "record FILE"),
            ("record -", "name of a file"),
            ("label", "label TEXT"),
            ("label numakit:lost 3", "recorder's own"),
            ("interval", "no unit"),
            ("disable", "disable SENSOR"),
            ("interval 0ms", "100us to 1h"),
            ("pause now", "takes no argument"),
        ] {
            let error = ControlCommand::parse(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
        assert!(ControlCommand::parse(&[b'x'; 5000]).unwrap_err().to_string().contains("4096"));
        assert!(ControlCommand::parse(b"label \xff").is_err());
    }
}
