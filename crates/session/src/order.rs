//! Orders to a running observation: one a line.

use crate::interval;
use numakit_model::label::{MAX_BYTES, RESERVED};
use std::path::PathBuf;
use std::time::Duration;

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
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

impl Order {
    /// Reads a line. The error says what was wrong and the fix.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        if line.len() > MAX_BYTES {
            return Err(format!("a line of more than {MAX_BYTES} bytes was refused; send one order a line"));
        }
        let line = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8 text".to_owned())?.trim();
        let (word, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        let alone = |order: Self| {
            if argument.is_empty() {
                Ok(order)
            } else {
                Err(format!("'{word}' takes no argument; got '{argument}'"))
            }
        };
        match word {
            "record" if argument.is_empty() => Err("'record' needs a file: record FILE".into()),
            "record" if argument == "-" => {
                Err("'record' needs the name of a file: only 'numa record -o -' writes to standard output"
                    .into())
            }
            "record" => Ok(Self::Record(argument.into())),
            "label" if argument.is_empty() => Err("'label' needs a text: label TEXT".into()),
            "label" if argument.starts_with(RESERVED) => {
                Err(format!("labels that start with '{RESERVED}' are the recorder's own; use another text"))
            }
            "label" => Ok(Self::Label(argument.to_owned())),
            "interval" => interval::parse(argument).map(Self::Interval),
            "enable" | "disable" if argument.is_empty() => {
                Err(format!("'{word}' needs a sensor: {word} SENSOR"))
            }
            "enable" => Ok(Self::Enable(argument.to_owned())),
            "disable" => Ok(Self::Disable(argument.to_owned())),
            "close" => alone(Self::Close),
            "pause" => alone(Self::Pause),
            "resume" => alone(Self::Resume),
            "stop" => alone(Self::Stop),
            "status" => alone(Self::Status),
            _ => {
                let known: Vec<&str> = ORDERS.iter().map(|(name, ..)| *name).collect();
                Err(format!("unknown order '{}'; the orders are {}", shown(word), known.join(", ")))
            }
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
        assert_eq!(Order::parse(b"label phase  two "), Ok(Order::Label("phase  two".into())));
        assert_eq!(Order::parse(b"record /tmp/a b"), Ok(Order::Record("/tmp/a b".into())));
        assert_eq!(Order::parse(b"interval 5ms"), Ok(Order::Interval(Duration::from_millis(5))));
        assert_eq!(Order::parse(b" stop\r"), Ok(Order::Stop));
        for (name, argument, _) in ORDERS {
            let example = match argument {
                "TIME" => "1s",
                other => other,
            };
            assert!(Order::parse(format!("{name} {example}").as_bytes()).is_ok(), "{name}");
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
            let error = Order::parse(line.as_bytes()).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
        assert!(Order::parse(&[b'x'; 5000]).unwrap_err().contains("4096"));
        assert!(Order::parse(b"label \xff").is_err());
    }
}
