//! The recorder's own labels, in words.

use numakit_model::label::RecorderEvent;
use numakit_model::numbers::duration;

/// One line of text.
pub fn words(event: &RecorderEvent) -> String {
    match event {
        RecorderEvent::CommandStarted(command) => format!("the command started: {command}"),
        RecorderEvent::CommandEnded(status) => format!("the command ended: {}", status_words(*status)),
        RecorderEvent::Paused => "paused".to_owned(),
        RecorderEvent::Resumed => "resumed".to_owned(),
        RecorderEvent::Interval(ns) => format!("interval is now {}", duration(*ns as f64 / 1e9)),
        RecorderEvent::Lost(1) => "1 tick lost".to_owned(),
        RecorderEvent::Lost(n) => format!("{n} ticks lost"),
        RecorderEvent::Dropped(1) => "1 sample dropped".to_owned(),
        RecorderEvent::Dropped(n) => format!("{n} samples dropped"),
        RecorderEvent::Damaged(1) => "1 sample damaged".to_owned(),
        RecorderEvent::Damaged(n) => format!("{n} samples damaged"),
        RecorderEvent::ClockStep(ns) => {
            let way = if *ns < 0 { "back" } else { "forward" };
            format!("the clock was set {way} by {}", duration(ns.unsigned_abs() as f64 / 1e9))
        }
        RecorderEvent::Absent(what) => format!("no values from {what}"),
        RecorderEvent::Back(what) => format!("values from {what} again"),
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
    fn events_print_as_text() {
        assert_eq!(words(&RecorderEvent::Lost(1)), "1 tick lost");
        assert_eq!(words(&RecorderEvent::CommandEnded(143)), "the command ended: killed by signal 15");
        assert_eq!(words(&RecorderEvent::ClockStep(-1_500_000_000)), "the clock was set back by 1.5 s");
        assert_eq!(words(&RecorderEvent::Interval(10_000_000)), "interval is now 10 ms");
    }
}
