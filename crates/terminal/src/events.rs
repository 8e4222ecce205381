//! What the recorder noted of itself, in words.

use crate::units::duration;
use numakit_model::label::Event;

/// One line that a person understands.
pub fn words(event: &Event) -> String {
    match event {
        Event::CommandStarted(command) => format!("start: {command}"),
        Event::CommandEnded(status) => format!("end: {}", status_words(*status)),
        Event::Paused => "paused".to_owned(),
        Event::Resumed => "resumed".to_owned(),
        Event::Interval(ns) => format!("interval is now {}", duration(*ns as f64 / 1e9)),
        Event::Lost(1) => "1 tick lost".to_owned(),
        Event::Lost(n) => format!("{n} ticks lost"),
        Event::Dropped(1) => "1 sample dropped".to_owned(),
        Event::Dropped(n) => format!("{n} samples dropped"),
        Event::Damaged(1) => "1 sample damaged".to_owned(),
        Event::Damaged(n) => format!("{n} samples damaged"),
        Event::ClockStep(ns) => {
            let way = if *ns < 0 { "back" } else { "forward" };
            format!("the clock was set {way} by {}", duration(ns.unsigned_abs() as f64 / 1e9))
        }
        Event::Absent(what) => format!("no values from {what}"),
        Event::Back(what) => format!("values from {what} again"),
    }
}

/// An exit status as a shell reports it.
pub fn status_words(status: i32) -> String {
    match status {
        129..=192 => format!("killed by signal {}", status - 128),
        _ => format!("exit status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_read_as_sentences() {
        assert_eq!(words(&Event::Lost(1)), "1 tick lost");
        assert_eq!(words(&Event::CommandEnded(143)), "end: killed by signal 15");
        assert_eq!(words(&Event::ClockStep(-1_500_000_000)), "the clock was set back by 1.5 s");
        assert_eq!(words(&Event::Interval(10_000_000)), "interval is now 10 ms");
    }
}
