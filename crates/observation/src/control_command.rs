//! Control commands to a running observation: one per line.

use crate::interval::{self, IntervalError};
use numakit_model::label::{MAX_BYTES, RESERVED};
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// A control command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlCommand {
    /// Close the recording, if any, and record to this file.
    Record(PathBuf),
    /// Close the recording and continue without one.
    Close,
    /// Write a label with this text.
    Label(String),
    /// Take no samples until [`ControlCommand::Resume`].
    Pause,
    /// Take samples again.
    Resume,
    /// Change the interval.
    Interval(Duration),
    /// Read this sensor again.
    Enable(String),
    /// Do not read this sensor.
    Disable(String),
    /// End the observation.
    Stop,
    /// Return the status.
    Status,
}

/// Name, argument and help of every command, for documents and errors.
pub const CONTROL_COMMANDS: [(&str, &str, &str); 10] = [
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

/// Why a line is not a command.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseCommandError {
    /// Longer than any command.
    #[error("a line of more than {MAX_BYTES} bytes was refused; send one command per line")]
    TooLong,
    /// The bytes are not text.
    #[error("the line is not UTF-8 text")]
    NotText,
    /// An argument of a command that has none.
    #[error("'{command}' takes no argument; got '{argument}'")]
    Argument {
        /// The command.
        command: String,
        /// What followed.
        argument: String,
    },
    /// A missing argument.
    #[error("'{command}' needs a {what}: {command} {}", what.to_uppercase())]
    Needs {
        /// The command.
        command: String,
        /// What it needs.
        what: &'static str,
    },
    /// A recording to standard output.
    #[error("'record' needs the name of a file: only 'numa record -o -' writes to standard output")]
    StandardOutput,
    /// A label with the prefix of the recorder's labels.
    #[error("labels that start with '{RESERVED}' are the recorder's own; use another text")]
    Reserved,
    /// The interval is wrong.
    #[error(transparent)]
    Interval(#[from] IntervalError),
    /// An unknown command.
    #[error("unknown command '{command}'; the commands are {}", CONTROL_COMMANDS.map(|(name, ..)| name).join(", "))]
    Unknown {
        /// The word, shortened.
        command: String,
    },
}

impl ControlCommand {
    /// Parses a line.
    pub fn parse(line: &[u8]) -> Result<Self, ParseCommandError> {
        if line.len() > MAX_BYTES {
            return Err(ParseCommandError::TooLong);
        }
        let line = std::str::from_utf8(line).map_err(|_| ParseCommandError::NotText)?.trim();
        let (word, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        let without_argument = |command: Self| {
            if argument.is_empty() {
                Ok(command)
            } else {
                Err(ParseCommandError::Argument { command: word.to_owned(), argument: argument.to_owned() })
            }
        };
        let needs = |what| Err(ParseCommandError::Needs { command: word.to_owned(), what });
        match word {
            "record" if argument.is_empty() => needs("file"),
            "record" if argument == "-" => Err(ParseCommandError::StandardOutput),
            "record" => Ok(Self::Record(argument.into())),
            "label" if argument.is_empty() => needs("text"),
            "label" if argument.starts_with(RESERVED) => Err(ParseCommandError::Reserved),
            "label" => Ok(Self::Label(argument.to_owned())),
            "interval" => Ok(Self::Interval(interval::parse(argument)?)),
            "enable" | "disable" if argument.is_empty() => needs("sensor"),
            "enable" => Ok(Self::Enable(argument.to_owned())),
            "disable" => Ok(Self::Disable(argument.to_owned())),
            "close" => without_argument(Self::Close),
            "pause" => without_argument(Self::Pause),
            "resume" => without_argument(Self::Resume),
            "stop" => without_argument(Self::Stop),
            "status" => without_argument(Self::Status),
            _ => Err(ParseCommandError::Unknown { command: shown(word) }),
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
    fn commands_are_parsed() {
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
        for (name, argument, _) in CONTROL_COMMANDS {
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
            ("", "the commands are"),
            ("reboot now", "unknown command 'reboot'"),
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
