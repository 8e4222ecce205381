//! What `numa doctor` says of programs whose memory is bound to nodes, while they run: those with threads on other nodes too, and
//! their neighbours, which differ in the nodes of the threads or of the memory alone.

use numakit_guest::{Failure, Guest, Part, Shape, programs};
use serde_json::Value;
use std::time::Duration;

/// A name, options of numactl, and what is said of the program; nothing of a neighbour.
const PROGRAMS: [(&str, &str, Option<&str>); 6] = [
    (
        "socket_bound",
        "-C 0-3 -m 0",
        Some("memory of node 0 only (a memory policy binds it), and ran on nodes 0-1: "),
    ),
    ("socket_all", "-C 0-3 -m 0-1", None),
    (
        "server_bound",
        "-C 0-1,4-5 -m 0",
        Some("memory of node 0 only (a memory policy binds it), and ran on nodes 0,2: "),
    ),
    ("server_beside", "-C 0-1 -m 0", None),
    ("unbound", "-C 0-7", None),
    ("spread", "-C 0-7 -i 0", None),
];

pub fn guest() -> Result<Guest, Failure> {
    let numactl = programs::of_host("numactl").ok_or_else(|| Failure::NotFound("numactl".to_owned()))?;
    let start = |(name, options, _): &(&str, &str, Option<&str>)| {
        format!(
            "cp $(command -v cases) /tmp/{name}; numactl {options} /tmp/{name} waits 600 >/tmp/{name}.printed & all=\"$all $!\"\n"
        )
    };
    let wait = |(name, ..): &(&str, &str, Option<&str>)| {
        format!("until grep -q working /tmp/{name}.printed; do usleep 20000; done\n")
    };
    let started: String = PROGRAMS.iter().map(start).chain(PROGRAMS.iter().map(wait)).collect();
    let script = format!("{started}numa doctor --json; kill $all; wait 2>/dev/null; rm /tmp/*.printed; true");
    Ok(Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(300))
        .program(&programs::numa()?)
        .program(&numactl)
        .program(&programs::compiled("cases")?.unwrap())
        .step("bound", &["sh", "-c", &script]))
}

fn part() -> Option<Part> {
    super::LATER.part("bound_memory")
}

#[test]
fn programs_with_memory_of_other_nodes_alone_are_named_and_their_neighbours_are_not() {
    let Some(boot) = part() else { return };
    let report: Value = serde_json::from_str(&boot["bound"].succeeded()).unwrap();
    let items = report["findings"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    let notes: Vec<&str> = items
        .iter()
        .filter(|item| item["about"] == "memory of programs")
        .map(|item| item["seen"].as_str().unwrap())
        .collect();
    for (name, options, expected) in PROGRAMS {
        let said = notes.iter().find(|note| note.starts_with(&format!("{name} (")));
        match (said, expected) {
            (Some(note), Some(words)) => assert!(note.contains(words), "numactl {options}: {note}"),
            (said, expected) => assert_eq!(said.copied(), expected, "numactl {options}: {notes:#?}"),
        }
    }
    assert_eq!(notes.len(), 2, "{notes:#?}");
}
