//! Containers that share a registry never get the same core, also when containers and supervisors are killed.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_containers::{Container, Profile, are_here};
use numakit_skips::rounds;
use numakit_testing::children::Lines;
use std::collections::BTreeMap;
use std::path::PathBuf;

const CONTAINERS: usize = 3;

/// Runs programs one after the other, each with one core for 20 ms; the supervisor of every third is
/// killed. A lock of the test's own is held meanwhile; it ends with its process, as cores must.
const LOOP: &str = "
    for i in $(seq STARTS); do
        numa run --registry /reg --wait=240 --busy off -c 1 -- sh -c '
            cpu=$(taskset -pc $$ | sed s/.*:.//)
            [ $(($1 % 3)) = 0 ] && kill -9 $PPID
            flock -n /reg/cpu$cpu sleep 0.02 && echo alone || echo twice' sh $i 2> /dev/null || echo refused
    done";

#[test]
fn containers_with_one_registry_share_the_cores() {
    if !are_here() {
        return;
    }
    let folder: PathBuf = std::env::temp_dir().join(format!("numakit-registry-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let container = Container::new(Profile::Docker).mount(&folder, "/reg");
    let start =
        |starts: usize| container.start(&["sh", "-c", &LOOP.replace("STARTS", &starts.to_string())]).unwrap();
    // Starts in each of the containers that run to their end.
    let starts = rounds(15, 70);
    let running: Vec<_> = (0..CONTAINERS).map(|_| start(starts)).collect();
    for _ in 0..rounds(2, 5) {
        let mut killed = start(1000);
        // It has had a core.
        let first = Lines::of(killed.child.stdout.take().unwrap()).next();
        assert_eq!(first.as_deref(), Some("alone"));
        killed.kill().unwrap();
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for container in running {
        let output = container.wait().unwrap();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            *counts.entry(line.to_owned()).or_default() += 1;
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    println!("{counts:?}");
    assert_eq!(counts.get("twice"), None, "{counts:?}");
    let alone = counts.get("alone").copied().unwrap_or_default();
    // Everybody gets a core in the end, also those of killed containers.
    assert_eq!(alone, CONTAINERS * starts, "{counts:?}");
}
