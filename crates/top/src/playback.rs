//! The place in a recording that is shown, and how it moves.

use std::time::Duration;

/// The place in a recording; times are ns since 1970.
#[derive(Debug, Clone, PartialEq)]
pub struct Playback {
    /// The file.
    pub name: String,
    /// The first row.
    pub first: u64,
    /// The last row.
    pub last: u64,
    /// The time that is shown.
    pub at: u64,
    /// How much time a step is.
    pub step: Duration,
    /// How many times as fast as it was recorded.
    pub speed: f64,
    /// Whether it moves.
    pub plays: bool,
}

/// Moves the place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlayCommand {
    /// Pauses and continues; from the end, from the start.
    Pause,
    /// Steps forward or back, and pauses.
    Step(i32),
    /// Tenths of the recording forward or back.
    Jump(i32),
    /// To a time after the start.
    Seek(Duration),
    /// Twice or half as fast.
    Speed(bool),
}

const SPEEDS: std::ops::RangeInclusive<f64> = 0.125..=1024.0;

impl Playback {
    /// From the start of a recording.
    pub fn new(name: String, span: (u64, u64), step: Duration) -> Self {
        let (first, last) = span;
        let at = first.saturating_add(ns(step)).min(last);
        Self { name, first, last, at, step, speed: 1.0, plays: true }
    }

    /// Since the start.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.at - self.first)
    }

    /// All of it.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.last - self.first)
    }

    /// The time that the screen shows one step.
    pub fn pace(&self) -> Duration {
        // Faster than a person sees, only steps become longer.
        self.step.div_f64(self.speed).clamp(Duration::from_millis(50), Duration::from_secs(60))
    }

    /// Plays on for the time of [`Playback::pace`]; false at the end.
    pub fn advance(&mut self) -> bool {
        let moved = self.pace().mul_f64(self.speed);
        self.at = self.at.saturating_add(ns(moved)).min(self.last);
        self.plays = self.at < self.last;
        self.plays
    }

    /// Executes a command.
    pub fn command(&mut self, command: PlayCommand) {
        match command {
            PlayCommand::Pause => {
                if !self.plays && self.at == self.last {
                    self.at = self.first;
                }
                self.plays = !self.plays;
            }
            PlayCommand::Step(steps) => {
                self.plays = false;
                self.move_by(i128::from(steps) * i128::from(ns(self.step)));
            }
            PlayCommand::Jump(tenths) => {
                self.move_by(i128::from(tenths) * i128::from((self.last - self.first) / 10));
            }
            PlayCommand::Seek(time) => self.at = self.first.saturating_add(ns(time)).min(self.last),
            PlayCommand::Speed(faster) => {
                let factor = if faster { 2.0 } else { 0.5 };
                self.speed = (self.speed * factor).clamp(*SPEEDS.start(), *SPEEDS.end());
            }
        }
    }

    fn move_by(&mut self, ns: i128) {
        let to = (i128::from(self.at) + ns).clamp(i128::from(self.first), i128::from(self.last));
        self.at = u64::try_from(to).unwrap_or(self.last);
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn playback() -> Playback {
        Playback::new("a".into(), (5 * SECOND, 105 * SECOND), Duration::from_secs(1))
    }

    #[test]
    fn it_plays_to_the_end_and_starts_again() {
        let mut playback = playback();
        assert_eq!(playback.elapsed(), Duration::from_secs(1));
        while playback.advance() {}
        assert_eq!((playback.at, playback.plays), (105 * SECOND, false));
        playback.command(PlayCommand::Pause);
        assert_eq!((playback.at, playback.plays), (5 * SECOND, true));
    }

    #[test]
    fn steps_stop_it_and_stay_within_the_recording() {
        let mut playback = playback();
        playback.command(PlayCommand::Step(3));
        assert_eq!((playback.elapsed(), playback.plays), (Duration::from_secs(4), false));
        playback.command(PlayCommand::Step(-9));
        assert_eq!(playback.elapsed(), Duration::ZERO);
        playback.command(PlayCommand::Jump(1));
        assert_eq!(playback.elapsed(), Duration::from_secs(10));
        playback.command(PlayCommand::Seek(Duration::from_secs(1 << 40)));
        assert_eq!(playback.elapsed(), playback.length());
    }

    #[test]
    fn speed_changes_the_pace_and_then_the_steps() {
        let mut playback = playback();
        (0..3).for_each(|_| playback.command(PlayCommand::Speed(true)));
        assert_eq!((playback.speed, playback.pace()), (8.0, Duration::from_millis(125)));
        playback.advance();
        assert_eq!(playback.elapsed(), Duration::from_secs(2));
        (0..9).for_each(|_| playback.command(PlayCommand::Speed(true)));
        assert_eq!((playback.speed, playback.pace()), (1024.0, Duration::from_millis(50)));
    }
}
