//! The program `early` under `numa run`: where the main thread's memory is, which it touches before it creates a thread.

use numakit_guest::{Failure, Guest, Shape, Step, programs};
use std::time::Duration;

/// Pages that each run touches.
pub const PAGES: f64 = 2048.0;

/// Name, options of `numa run`, and command. "below" is started by a program that stays.
const CASES: [(&str, &str, &str); 9] = [
    ("all", "-c 8", "early"),
    ("scatter", "-c 4 --policy scatter", "early"),
    ("four", "-c 4", "early"),
    ("prefer", "-c 4 --memory prefer:2", "early"),
    ("driver", "-c 8", "early 8 5"),
    ("exec", "-c 8", "sh -c 'exec early'"),
    ("below", "-c 8", "sh -c 'early; true'"),
    ("filtered all", "-c 8", "early"),
    ("filtered scatter", "-c 4 --policy scatter", "early"),
];

/// A guest that runs the cases so often.
pub fn guest(repeats: usize) -> Result<Guest, Failure> {
    let mut guest = Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(600))
        .program(&programs::numa()?)
        .env("OMP_WAIT_POLICY", "passive")
        .step("quiet", &["sh", "-c", "echo 0 > /proc/sys/kernel/numa_balancing"])
        .step("small", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"]);
    for name in ["early", "filtered"] {
        guest = guest.program(&programs::compiled(name)?.unwrap());
    }
    for (name, options, command) in CASES {
        // In a container of Docker, which refuses memory policies.
        let filter = if name.starts_with("filtered") { "filtered " } else { "" };
        let run =
            format!("for i in $(seq {repeats}); do {filter}numa run --busy off {options} -- {command}; done");
        guest = guest.step(name, &["sh", "-c", &run]);
    }
    Ok(guest)
}

/// The pages of all repeats of a case that were at home and elsewhere, and how many main threads
/// were bound.
pub fn pages(name: &str, step: &Step) -> (f64, f64, f64) {
    let text = step.succeeded();
    let sum = |what: &str| -> f64 {
        text.lines().filter_map(|line| line.strip_prefix(what)?.trim().parse::<f64>().ok()).sum()
    };
    let sums = (sum("pages_at_home "), sum("pages_elsewhere "), sum("bound "));
    println!("{name}: {} pages at home, {} elsewhere, {} bound", sums.0, sums.1, sums.2);
    sums
}
