//! Cores that programs hold, on a real Linux on four nodes: between users, namespaces and control
//! groups, and any process is killed at any moment.

use numakit_guest::programs::figure;
use numakit_guest::{Failure, Guest, Part, Shape, programs};
use std::time::Duration;

/// Of which a third is killed. `measuring_registry` has more, and counts what is chance.
const LAUNCHES: f64 = 40.0;

/// A file that alice makes in a folder of all, in which the kernel protects files of others.
const USERS: &str = "echo 2 >/proc/sys/fs/protected_regular; chmod 1777 /tmp /dev/shm; \
    for user in alice:1000 bob:1001; do echo ${user%:*}:x:${user#*:}:${user#*:}::/tmp:/bin/sh >>/etc/passwd; \
    echo ${user%:*}:x:${user#*:}: >>/etc/group; done; cd /tmp; run='numa run --busy off'; \
    su alice -c \"exec $run -c 5 -- sleep 300\" & until numa ps --json | grep -q sleep; do usleep 50000; done; \
    ls -l /dev/shm/numakit-cores; \
    su bob -c 'echo x 2>/dev/null >>/dev/shm/numakit-cores; echo creating $?'; \
    su bob -c \"$run -c 4 -- true\" 2>&1; echo bob four $?; \
    su bob -c \"$run -c 3 -- numa ps\"; echo bob three $?; \
    unshare -n $run -c 4 -- true 2>/dev/null; echo network $?; \
    unshare -p -f $run -c 4 -- true 2>&1; echo pids $?; \
    unshare -p -f -m --mount-proc numa ps 2>&1 | grep -c sleep; \
    mkdir -p /etc/numakit; echo default 2 >/etc/numakit/limits; \
    su bob -c \"$run -c 3 -- true\" 2>&1; echo limit $?; rm /etc/numakit/limits; \
    kill -TERM $(pidof sleep); wait; numa ps";

const FOUR: &str = r#"numa run --busy off -c 4 -- holders sleep 1 100000 apart & \
    until [ $(pidof holders | wc -w) = 2 ]; do usleep 50000; done; \
    seen() { until numa ps --json | grep -q "$1"; do usleep 50000; done; }; \
    kill -KILL $(pidof cores-keeper); seen '"keeper":'$!,; kill -KILL $!; seen '"state":"bound"'; numa ps --json; \
    numa run --busy off -c 5 -- true 2>&1; echo five $?; numa run --busy off -c 4 -- true; echo four $?; \
    kill -KILL $(pidof holders); until [ -z "$(pidof holders)" ]; do usleep 50000; done; numa ps; numa run --busy off -c 8 -- true; echo eight $?"#;

const ISOLATED: &str = "numa run --busy off --isolate -v -c 2 -- sh -c \
    'cat /proc/self/cgroup; grep Cpus_allowed_list /proc/self/status; cat /sys/fs/cgroup/numakit-*/cpuset.cpus.partition; \
     grep Cpus_allowed_list /proc/1/status'; \
    ls -d /sys/fs/cgroup/numakit-* 2>&1; grep Cpus_allowed_list /proc/1/status";

pub fn guest() -> Result<Guest, Failure> {
    Ok(Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(900))
        .program(&programs::numa()?)
        .program(&programs::compiled("holders")?.unwrap())
        .step("nobody", &["sh", "-c", "numa ps; ls /dev/shm /run"])
        .step("lost", &["sh", "-c", FOUR])
        .step("isolated", &["sh", "-c", ISOLATED])
        .step("stress", &["holders", "stress", &LAUNCHES.to_string(), "1"])
        .step(
            "after",
            &["sh", "-c", "numa run --busy off -c 8 -- true; echo $?; pidof cores-keeper; numa ps"],
        )
        .step("users", &["sh", "-c", &format!("rm /dev/shm/numakit-cores; {USERS}")]))
}

fn part() -> Option<Part> {
    super::PARTS.part("registry")
}

const EMPTY: &str = "No program holds cores. 'numa run -c 4 PROGRAM' takes four.\n";

#[test]
fn who_only_looks_makes_nothing() {
    let Some(boot) = part() else { return };
    let text = boot["nobody"].succeeded();
    assert!(text.starts_with(EMPTY) && !text.contains("numakit-cores"), "{text}");
}

#[test]
fn no_core_is_held_twice_or_by_nobody_whoever_is_killed() {
    let Some(boot) = part() else { return };
    let (text, errors) = (boot["stress"].text(), boot["stress"].errors());
    println!("{text}{errors}");
    assert!(boot["stress"].status.success());
    let figure = |name| figure(&text, name).unwrap();
    assert_eq!((figure("launches"), figure("wrong"), figure("left")), (LAUNCHES, 0.0, 0.0));
    assert!(figure("kills") > 0.0, "{text}");
    assert_eq!(boot["after"].text(), format!("0\n{EMPTY}"));
}

#[test]
fn without_keeper_launcher_and_descriptor_the_cores_stay_unavailable() {
    let Some(boot) = part() else { return };
    let text = boot["lost"].text();
    println!("{text}{}", boot["lost"].errors());
    assert!(text.contains(r#""state":"bound""#) && text.contains(r#""application":"holders""#), "{text}");
    for line in ["five 2\n", "four 0\n", "eight 0\n", EMPTY] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn a_partition_is_the_programs_alone_and_goes_with_it() {
    let Some(boot) = part() else { return };
    let (text, errors) = (boot["isolated"].text(), boot["isolated"].errors());
    println!("{text}{errors}");
    assert!(errors.contains("are a partition of their own: /sys/fs/cgroup/numakit-"), "{errors}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("0::/numakit-"), "{text}");
    assert_eq!(lines[1..4], ["Cpus_allowed_list:\t0-1", "root", "Cpus_allowed_list:\t2-7"], "{text}");
    assert!(lines[4].contains("No such file") && lines[5] == "Cpus_allowed_list:\t0-7", "{text}");
}

#[test]
fn users_and_namespaces_share_one_registry() {
    let Some(boot) = part() else { return };
    let (text, errors) = (boot["users"].text(), boot["users"].errors());
    println!("{text}{errors}");
    let has = |part: &str| assert!(text.contains(part), "{part}\n{text}");
    has("-rw-rw-rw-");
    // The kernel's protection is in force: a shell may not open the file to write at its end.
    has("creating 1\n");
    has("alice");
    has("bob four 2\n");
    has("sleep of alice (process ");
    has("bob three 0\n");
    assert!(text.lines().any(|line| line.starts_with("numa ") && line.contains(" bob ")), "{text}");
    has("network 2\n");
    has("sleep of alice (in another PID namespace)");
    has("pids 2\n1\n");
    has("3 cores were requested, but bob may hold 2 and holds 0");
    has("limit 2\n");
    assert!(text.ends_with(EMPTY), "{text}");
}
