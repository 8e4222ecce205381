//! A line on the terminal that says how far something is.

use numakit_model::numbers::NumberStyle;
use numakit_sys::clock;
use numakit_sys::stdio::replace_line;
use numakit_sys::tty;

/// The shortest time between two states, in ns.
const PAUSE: u64 = 200_000_000;

/// Bytes done of one thing after the other. Nothing is printed unless standard error is a terminal.
#[derive(Debug)]
pub struct ProgressLine {
    shows: bool,
    drawn: bool,
    last: u64,
}

impl ProgressLine {
    /// Nothing is drawn in the first moment.
    pub fn new() -> Self {
        Self { shows: tty::is_error(), drawn: false, last: clock::monotonic() }
    }

    /// Draws `what` with its bytes, unless it was just drawn.
    pub fn show(&mut self, what: &str, done: u64, all: u64) {
        let now = clock::monotonic();
        if !self.shows || now.saturating_sub(self.last) < PAUSE {
            return;
        }
        (self.last, self.drawn) = (now, true);
        let [done, all] = [done, all].map(|bytes| NumberStyle::Bytes.words(bytes as f64));
        replace_line(Some(&format!("{what} {done} of {all}")));
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.drawn {
            replace_line(None);
        }
    }
}
