//! Cores that programs hold, while any process is killed at any moment, and often enough that everything happens.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::programs::figure;
use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use std::sync::LazyLock;
use std::time::Duration;

/// `NUMAKIT_STORM=6000` kills some 2,000.
const LAUNCHES: &str = "200";

fn launches() -> String {
    std::env::var("NUMAKIT_STORM").unwrap_or_else(|_| LAUNCHES.to_owned())
}

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(900))
        .program(&programs::numa()?)
        .program(&programs::compiled("holders")?.unwrap())
        .step("stress", &["holders", "stress", &launches(), "1"])
        .boot()
});

#[test]
#[ignore = "thorough: 200 launches and what happens to them by chance, 2 minutes"]
fn many_are_killed_side_by_side_and_no_core_is_held_twice_or_by_nobody() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    let text = boot["stress"].succeeded();
    println!("{text}{}", boot["stress"].errors());
    let figure = |name| figure(&text, name).unwrap();
    let launched: f64 = launches().parse().unwrap();
    assert_eq!((figure("launches"), figure("wrong"), figure("left")), (launched, 0.0, 0.0));
    // It was a stress: many were killed, several ran side by side, and most were started.
    assert!(figure("kills") >= 20.0 && figure("removed") >= 3.0, "{text}");
    assert!(figure("most at once") >= 2.0 && figure("refused") < launched * 0.75, "{text}");
}
