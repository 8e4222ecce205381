//! Waiting with a timeout, so that a test fails instead of hanging.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Long enough for a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until a condition holds; after two minutes it panics, as `assert!` does.
///
/// ```
/// # let finished = || true;
/// numakit_testing::until!(finished());
/// numakit_testing::until!(finished(), "the end of {}", "it");
/// ```
#[macro_export]
macro_rules! until {
    ($holds:expr $(,)?) => {
        $crate::until!($holds, "{}", stringify!($holds))
    };
    ($holds:expr, $($what:tt)+) => {
        $crate::wait::wait_for(format_args!($($what)+), || {
            let holds: bool = $holds;
            holds.then_some(())
        })
    };
}

/// Calls `get` until it returns a value.
///
/// # Panics
/// After two minutes; the message contains `what`.
#[track_caller]
pub fn wait_for<T>(what: impl Display, get: impl FnMut() -> Option<T>) -> T {
    wait_within(LIMIT, what, get)
}

#[track_caller]
fn wait_within<T>(limit: Duration, what: impl Display, mut get: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = get() {
            return value;
        }
        assert!(started.elapsed() < limit, "timeout after {limit:.0?}: {what}");
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_returned() {
        let mut calls = 0;
        let third = wait_for("the third call", || {
            calls += 1;
            (calls == 3).then_some(calls)
        });
        assert_eq!(third, 3);
        until!(third == 3);
    }

    #[test]
    #[should_panic(expected = "timeout after 5ms: the end of time")]
    fn a_timeout_panics() {
        wait_within(Duration::from_millis(5), "the end of time", || None::<()>);
    }
}
