//! Troubles that users of NUMA machines report in public, as `numa explain` finds them, each with a neighbour: the same program on
//! the same nodes, in which one decisive fact differs. Time means nothing here: findings are about pages.
//!
//! The other troubles are on described machines, in `public_cases` of the tests of `numa`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, place, programs};
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

/// What is observed, and which verdict its memory has.
struct Scene {
    name: &'static str,
    /// What `numa file` does before, with the file that is read.
    file: Option<&'static str>,
    /// Options of numactl, and what the program does.
    run: &'static str,
    /// The verdict.
    verdict: Option<&'static str>,
    /// Words of what is said.
    says: &'static str,
}

const FILE: &str = "/out/model";
const SCENES: [Scene; 13] = [
    Scene {
        name: "file on one node",
        file: Some("move --node 0"),
        run: "-C 0-5 cases file",
        verdict: Some("page-cache"),
        says: "the pages of this file are on node 0",
    },
    Scene {
        name: "file on all nodes",
        file: Some("spread --nodes 0-2"),
        run: "-C 0-5 cases file",
        verdict: Some("spread"),
        says: "threads of nodes 0, 1 and 2 use all of it",
    },
    Scene {
        name: "socket, memory of one node",
        file: None,
        run: "-C 0-3 -m 0 cases own",
        verdict: Some("bound-memory"),
        says: "a memory policy binds it to node 0",
    },
    Scene {
        name: "socket, memory of all its nodes",
        file: None,
        run: "-C 0-3 -m 0-1 cases own",
        verdict: None,
        says: "",
    },
    Scene {
        name: "server on two nodes, memory of one",
        file: None,
        run: "-C 0-1,4-5 -m 0 cases own",
        verdict: Some("bound-memory"),
        says: "threads of nodes 0 and 2 use it",
    },
    Scene {
        name: "server beside its memory",
        file: None,
        run: "-C 0-1 -m 0 cases own",
        verdict: None,
        says: "",
    },
    Scene {
        name: "misplaced memory that is used",
        file: None,
        run: "-C 2-5 -m 0 cases table",
        verdict: Some("bound-memory"),
        says: "threads of nodes 1 and 2 use it",
    },
    Scene {
        name: "misplaced memory hardly used",
        file: None,
        run: "-C 2-5 -m 0 cases computes",
        verdict: None,
        says: "",
    },
    Scene {
        name: "shared memory of backends",
        file: None,
        run: "-C 0,2,4 cases backends",
        verdict: Some("shared-by-all"),
        says: "threads of nodes 0, 1 and 2 share it",
    },
    Scene {
        name: "shared memory of one backend",
        file: None,
        run: "-C 0 cases backends",
        verdict: None,
        says: "",
    },
    Scene {
        name: "shared memory on all nodes",
        file: None,
        run: "-C 0,2,4 -i 0-2 cases backends",
        verdict: Some("spread"),
        says: "threads of nodes 0, 1 and 2 use all of it",
    },
    Scene {
        name: "one backend, memory on all nodes",
        file: None,
        run: "-C 0 -i 0-2 cases backends",
        verdict: Some("spread-away"),
        says: "only threads of node 0 use it",
    },
    Scene {
        name: "one backend, memory of its node",
        file: None,
        run: "-C 0 -i 0 cases backends",
        verdict: None,
        says: "",
    },
];

/// Fewer samples of a program say nothing.
const MIN_SAMPLES: u64 = 60;
/// Of the pages in use, an object that is judged here has this part, or more.
const MIN_SHARE: f64 = 0.2;

impl Scene {
    fn result(&self) -> String {
        format!("{}.json", self.name.replace([' ', ','], "-"))
    }

    fn step(&self) -> String {
        let file = self.file.map_or_else(String::new, |deed| {
            format!("[ -e {FILE} ] || dd if=/dev/zero of={FILE} bs=1M count=8 2>/dev/null; numa file {deed} {FILE} >/dev/null || exit 1; ")
        });
        let name = if self.file.is_some() { FILE } else { "" };
        // The observer has a node of its own.
        format!(
            "{file}taskset -p c0 $$ >/dev/null; exec numa explain --json /out/{} taskset 3f numactl {} 10 {name}",
            self.result(),
            self.run
        )
    }
}

fn boot() -> Result<Boot, Failure> {
    let numactl = programs::of_host("numactl").ok_or_else(|| Failure::NotFound("numactl".to_owned()))?;
    let mut guest = Guest::new(Shape::named("four")?)
        .program(&programs::numa()?)
        .program(&numactl)
        .file(&place::root().join("tests/guest/guest/small-caches"), "/root/small-caches")
        .timeout(Duration::from_secs(600))
        .compiled(&["cases"])?
        .small_pages()
        .without_balancing()
        .step("caches", &["sh", "/root/small-caches"]);
    for scene in &SCENES {
        guest = guest.step(scene.name, &["sh", "-c", &scene.step()]);
    }
    guest.boot()
}

/// The first verdict on an object that is much used, and what it says.
fn found(boot: &Boot, scene: &Scene) -> (Option<String>, String) {
    boot[scene.name].succeeded();
    let text = std::fs::read_to_string(boot.out.join(scene.result())).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let samples = report["samples"]["total"].as_u64().unwrap();
    assert!(samples >= MIN_SAMPLES, "{}: {samples} samples", scene.name);
    let objects = report["objects"].as_array().unwrap();
    let is_used = |object: &&Value| object["time_share"].as_f64().unwrap() >= MIN_SHARE;
    let mut used = objects.iter().filter(is_used).peekable();
    assert!(used.peek().is_some(), "{}: no object is much used", scene.name);
    let verdict = used.map(|object| &object["verdict"]).find(|verdict| verdict.is_object());
    let word = |key: &str| Some(verdict?[key].as_str()?.to_owned());
    (word("rule"), word("says").unwrap_or_default())
}

#[test]
#[ignore = "thorough: explains 13 programs of 10 s, 3 minutes"]
fn public_cases_are_found_and_their_neighbours_are_not() {
    let result = boot();
    let Some(boot) = or_skipped(&result) else { return };
    let (mut table, mut wrong) = (String::new(), Vec::new());
    for scene in &SCENES {
        let (verdict, says) = found(boot, scene);
        let shown = verdict.as_deref().unwrap_or("-");
        _ = writeln!(table, "{:<36} {:<16} {shown:<16} {says}", scene.name, scene.verdict.unwrap_or("-"));
        if verdict.as_deref() != scene.verdict || !says.contains(scene.says) {
            wrong.push(scene.name);
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{wrong:?}\n{table}");
}
