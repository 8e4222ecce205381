//! Refused requests on standard error: one line each, at a limited rate.

use numakit_sys::stdio::say;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Lines within one [`PERIOD`].
const MAX: u32 = 10;
const PERIOD: Duration = Duration::from_secs(10);

/// Writes a line for each refusal.
#[derive(Debug)]
pub struct RefusalLog(Mutex<Count>);

#[derive(Debug)]
struct Count {
    since: Instant,
    logged: u32,
    unlogged: u32,
}

impl Default for RefusalLog {
    fn default() -> Self {
        Self(Mutex::new(Count { since: Instant::now(), logged: 0, unlogged: 0 }))
    }
}

impl RefusalLog {
    /// Writes a line, or counts the refusal if there were too many.
    pub fn log(&self, who: &str, why: &str) {
        if let Some(line) = self.message(Instant::now(), who, why) {
            say(format_args!("{line}\n"));
        }
    }

    fn message(&self, now: Instant, who: &str, why: &str) -> Option<String> {
        let mut count = self.0.lock().ok()?;
        let mut before = String::new();
        if now.duration_since(count.since) >= PERIOD {
            if count.unlogged > 0 {
                before = format!("numa: {} more requests were refused\n", count.unlogged);
            }
            *count = Count { since: now, logged: 0, unlogged: 0 };
        }
        if count.logged >= MAX {
            count.unlogged += 1;
            return None;
        }
        count.logged += 1;
        // The client's text may contain terminal escapes.
        let why: String = why.chars().take(200).map(|c| if c.is_control() { '?' } else { c }).collect();
        Some(format!("{before}numa: refused {who}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_logged() {
        let refusal_log = RefusalLog::default();
        let start = Instant::now();
        let logged = (0..50).filter(|_| refusal_log.message(start, "1.2.3.4:5", "no").is_some()).count();
        assert_eq!(logged, MAX as usize);
        let later = refusal_log.message(start + PERIOD * 2, "1.2.3.4:5", "x\x1b[2J").unwrap();
        assert_eq!(later, "numa: 40 more requests were refused\nnuma: refused 1.2.3.4:5: x?[2J");
    }
}
