//! Refused requests on standard error: one line each, not more than a few a second.

use numakit_sys::stdio::say;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Lines within one [`PERIOD`].
const MAX: u32 = 10;
const PERIOD: Duration = Duration::from_secs(10);

/// Tells of refusals.
#[derive(Debug)]
pub struct Refusals(Mutex<Count>);

#[derive(Debug)]
struct Count {
    since: Instant,
    told: u32,
    untold: u32,
}

impl Default for Refusals {
    fn default() -> Self {
        Self(Mutex::new(Count { since: Instant::now(), told: 0, untold: 0 }))
    }
}

impl Refusals {
    /// Tells of one: who, and why. Those beyond the limit are counted.
    pub fn tell(&self, who: &str, why: &str) {
        if let Some(line) = self.line(Instant::now(), who, why) {
            say(format_args!("{line}\n"));
        }
    }

    fn line(&self, now: Instant, who: &str, why: &str) -> Option<String> {
        let mut count = self.0.lock().ok()?;
        let mut before = String::new();
        if now.duration_since(count.since) >= PERIOD {
            if count.untold > 0 {
                before = format!("numa: {} more requests were refused\n", count.untold);
            }
            *count = Count { since: now, told: 0, untold: 0 };
        }
        if count.told >= MAX {
            count.untold += 1;
            return None;
        }
        count.told += 1;
        // What a client sent may hold anything.
        let why: String = why.chars().take(200).map(|c| if c.is_control() { '?' } else { c }).collect();
        Some(format!("{before}numa: refused {who}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_told() {
        let refusals = Refusals::default();
        let start = Instant::now();
        let told = (0..50).filter(|_| refusals.line(start, "1.2.3.4:5", "no").is_some()).count();
        assert_eq!(told, MAX as usize);
        let later = refusals.line(start + PERIOD * 2, "1.2.3.4:5", "x\x1b[2J").unwrap();
        assert_eq!(later, "numa: 40 more requests were refused\nnuma: refused 1.2.3.4:5: x?[2J");
    }
}
