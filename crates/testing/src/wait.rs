//! Waiting in tests, with a limit: what never comes fails the test instead of stopping the run.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Far longer than anything takes, so that no test fails because a machine is busy.
const LIMIT: Duration = Duration::from_secs(120);
/// Between two looks.
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
        $crate::wait::found(format_args!($($what)+), || {
            let holds: bool = $holds;
            holds.then_some(())
        })
    };
}

/// Looks until something is there, and gives it.
///
/// # Panics
/// After two minutes; `what` says what was waited for.
#[track_caller]
pub fn found<T>(what: impl Display, look: impl FnMut() -> Option<T>) -> T {
    found_within(LIMIT, what, look)
}

#[track_caller]
fn found_within<T>(limit: Duration, what: impl Display, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(started.elapsed() < limit, "waited {limit:.0?} for what did not come: {what}");
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_given() {
        let mut looks = 0;
        let third = found("the third look", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(third, 3);
        until!(third == 3);
    }

    #[test]
    #[should_panic(expected = "did not come: the end of time")]
    fn what_does_not_come_fails_the_test() {
        found_within(Duration::from_millis(5), "the end of time", || None::<()>);
    }
}
