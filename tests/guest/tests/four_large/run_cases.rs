//! Cases of `numa run` that take a machine of several nodes: programs that take no library, CPUs
//! that the kernel keeps free, control groups, and the options of the original.

use numakit_guest::{Failure, Guest, Part, Shape, programs};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

const MUSL_LOADER: &str = "/lib/ld-musl-x86_64.so.1";

/// The program `kinds` under this name, by another compiler; none, and a line that says so, where
/// there is no such compiler.
fn kind(name: &str, compiler: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/kinds.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut build = Command::new(compiler[0]);
    build.args(&compiler[1..]).args(["-O2", "-pthread", "-o"]).arg(&program).arg(source);
    if build.output().is_ok_and(|output| output.status.success()) {
        return Some(program);
    }
    numakit_skips::COMPILERS.skip_part(format_args!("no {} here that builds", compiler.join(" ")));
    None
}

/// The kinds that are available here.
static KINDS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let musl = kind("kinds-musl", &["musl-gcc"]).filter(|_| Path::new(MUSL_LOADER).exists());
    let fixed = kind("kinds-static", &["cc", "-static"]);
    [musl, kind("kinds-musl-static", &["musl-gcc", "-static"]), fixed].into_iter().flatten().collect()
});

fn name_of(program: &Path) -> &str {
    program.file_name().unwrap().to_str().unwrap()
}

const ALICE: &str = "echo alice:x:1000:1000::/tmp:/bin/sh >>/etc/passwd; \
    echo alice:x:1000: >>/etc/group; chmod 1777 /tmp /dev/shm; cd /tmp";

/// Nothing is held at the beginning. A file of the test replaces the kernel's.
const KEPT_FREE: &str = "echo 2-3 >/tmp/isolated; \
    mount --bind /tmp/isolated /sys/devices/system/cpu/isolated; \
    for with in '-c 3' '--policy scatter -c 4' '-c auto' '--cpus 2-4 -c 3' '--nodes 1 -c 2' '-c 7'; do \
    echo $with: $(numa run --busy off $with -- sed -n 's/^Cpus_allowed_list://p' /proc/self/status); done; \
    umount /sys/devices/system/cpu/isolated; \
    echo afterwards: $(numa run --busy off -c 8 -- sed -n 's/^Cpus_allowed_list://p' /proc/self/status)";

/// One holds two cores in a partition until it is killed, others come and go.
const PARTITIONS: &str = "cd /tmp; groups() { for group in /sys/fs/cgroup/numakit-*; do \
    [ -d $group ] && echo $1 $(cat $group/cpuset.cpus $group/cpuset.cpus.partition); done; }; \
    numa run --busy off --isolate -c 2 -- sleep 1000 & \
    until [ -n \"$(pidof sleep)\" ]; do usleep 50000; done; groups one; \
    numa run --busy off --isolate -c 2 -- sh -c 'sed -n \"s/^Cpus_allowed_list:/second/p\" /proc/self/status; \
    sort /sys/fs/cgroup/numakit-*/cpuset.cpus.partition'; groups still; \
    echo other $(numa run --busy off -c 6 -- nproc); \
    numa run --busy off -c 7 -- true; echo seven $?; \
    kill -KILL $(pidof sleep); wait; groups left; echo free $(numa run --busy off -c 8 -- nproc)";

/// A program in a partition whose keeper was killed, and the launcher has taken over.
const TAKEN_OVER: &str = "numa run --busy off --isolate -c 2 -- sleep 1000 & \
    seen() { until numa ps --json | grep -q \"$1\"; do usleep 50000; done; }; \
    seen '\"application\":\"sleep\"'; kill -KILL $(pidof cores-keeper); seen '\"keeper\":'$!,; ";

/// Nobody is left who could remove the group.
const ABANDONED: &str = "kill -KILL $!; kill -KILL $(pidof sleep); \
    while [ -n \"$(pidof sleep)\" ]; do usleep 50000; done; \
    echo before $(ls -d /sys/fs/cgroup/numakit-* | wc -l) $(nproc); \
    numa run --busy off -c 8 -- nproc; ls -d /sys/fs/cgroup/numakit-* 2>/dev/null | wc -l";

/// Nobody but the launcher is left to remove the group.
const OUTLIVED: &str = "kill $(pidof sleep); wait $!; echo status $?; \
    ls -d /sys/fs/cgroup/numakit-* 2>/dev/null | wc -l";

/// CPUs that another has in a partition are waited for like others. The kernel may give them back a moment
/// after they are free; who looks just then is refused, and is served the next time.
const QUEUE: &str = "numa run --busy off --isolate -c 6 -- sleep 1000 & \
    until [ -n \"$(pidof sleep)\" ]; do usleep 50000; done; numa run --busy off -c 8 -- true; echo status $?; \
    held=$(pidof sleep); numa run --busy off --wait=300 -c 8 -- nproc & \
    until grep -q nanosleep /proc/$!/wchan; do usleep 50000; done; kill $held; wait";

/// A control group of the caller's with processes in it: no partition, then one. What is only
/// removed is a partition until the kernel comes to it, and a process that has ended is in its group for a moment.
const WITHIN: &str = "cd /sys/fs/cgroup; for group in member root; do \
    mkdir $group; echo 2-7 >$group/cpuset.cpus; echo $group >$group/cpuset.cpus.partition; \
    sh -c \"echo \\$\\$ >$group/cgroup.procs; numa run --busy off --isolate -v -c 2 -- sh -c \\\"grep -c numakit- /proc/self/cgroup; nproc; \
    cat $group/numakit-*/cpuset.cpus.partition\\\"; numa run --busy off -c 6 -- nproc\"; echo status $?; \
    ls $group | grep -c numakit-; echo member >$group/cpuset.cpus.partition; \
    tries=0; until rmdir $group 2>/dev/null || [ $tries = 100 ]; do tries=$((tries + 1)); usleep 50000; done; \
    [ $tries -lt 100 ] || rmdir $group; done";

/// Each round: a partition that ends with its program, and one that the next launch removes. A process
/// that starts at the moment when the kernel returns CPUs to the root group may keep the narrow mask
/// permanently; in a chain of 30 processes, at least one would be affected.
const WHOLE: &str = "chain() { if [ $1 = 0 ]; then sleep 0.1; nproc; else ( chain $(($1 - 1)); : ); fi; }; \
    for round in $(seq ROUNDS); do numa run --busy off --isolate -c 6 -- true; chain 30; \
    numa run --busy off --isolate -c 6 -- sleep 1000 & until [ -n \"$(pidof sleep)\" ]; do usleep 50000; done; \
    kill -KILL $(pidof cores-keeper) $! $(pidof sleep); wait; \
    until grep -q 'populated 0' /sys/fs/cgroup/numakit-*/cgroup.events; do usleep 50000; done; \
    numa run --busy off -c 2 -- true; chain 30; done | sort | uniq -c; ls -d /sys/fs/cgroup/numakit-* 2>/dev/null";

fn rounds() -> usize {
    numakit_skips::rounds(2, 6)
}

const ORIGINAL: &str = "numaplace -tvpc 4 kinds; echo status $?; numaplace -c4 kinds; \
    numaplace -tp -c 2 -- grep THP_enabled /proc/self/status; numaplace -a grep -c THP_enabled:.1 /proc/self/status; \
    numaplace -V";

pub fn guest() -> Result<Guest, Failure> {
    let mut guest = Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(420))
        .program(&programs::numa()?)
        .program(&programs::compiled("kinds")?.unwrap());
    for program in &*KINDS {
        let name = name_of(program).to_owned();
        guest = guest.file(program, &format!("/usr/bin/{name}"));
        let run = format!("numa run --busy off --nodes 1 -c 2 --memory bind:1 -- {name}");
        guest = guest.step(&name, &["sh", "-c", &run]);
        // A child of a program that takes the library.
        let below = format!("numa run --busy off --nodes 1 -c 2 -- sh -c 'true; {name}'");
        guest = guest.step(&format!("{name} below"), &["sh", "-c", &below]);
    }
    if Path::new(MUSL_LOADER).exists() {
        guest = guest.file(Path::new(MUSL_LOADER), MUSL_LOADER);
    }
    let alice = |command: &str| format!("su alice -c '{command}'");
    let undelegated = alice("numa run --busy off --isolate -c 2 -- nproc") + "; echo status $?";
    let shell = |text: &str| ["sh".to_owned(), "-c".to_owned(), text.to_owned()];
    for (name, text) in [
        ("kept free", KEPT_FREE),
        ("alice", ALICE),
        ("undelegated", &undelegated),
        ("doctor", &(alice("numa doctor --all") + "; numa doctor --all")),
        ("partitions", PARTITIONS),
        ("undelegated later", &undelegated),
        ("abandoned", &format!("{TAKEN_OVER}{ABANDONED}")),
        ("outlived", &format!("{TAKEN_OVER}{OUTLIVED}")),
        ("queue", QUEUE),
        ("within", WITHIN),
        ("original", ORIGINAL),
        ("explained", "numaplace -d -c 2 true"),
        ("whole", &WHOLE.replace("ROUNDS", &rounds().to_string())),
        ("empty", "numa ps; ls -d /sys/fs/cgroup/numakit-* 2>/dev/null"),
    ] {
        let words = shell(text);
        guest = guest.step(name, &words.each_ref().map(String::as_str));
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::PARTS.part("run_cases")
}

/// What a step printed, and its errors, both shown too.
fn told(step: &str) -> Option<(String, String)> {
    let boot = part()?;
    let (text, errors) = (boot[step].text(), boot[step].errors());
    println!("{step}:\n{text}{errors}");
    Some((text, errors))
}

#[test]
fn programs_without_a_loader_of_glibc_get_mask_and_policy() {
    let Some(boot) = part() else { return };
    for program in &*KINDS {
        let name = name_of(program);
        let one = "cpus 2 policy 2 nodes 1\n";
        let expected = format!("main {one}thread {one}thread {one}main {one}");
        assert_eq!(boot[name].succeeded(), expected, "{name}");
        let what = if name == "kinds-musl" { "linked with musl" } else { "statically linked" };
        let line = format!(
            "numa: {name} is {what}: its threads are not bound one by one and their stacks are not placed; \
             it runs on CPUs 2-3, memory bind:1\n"
        );
        assert_eq!(boot[name].errors(), line);
        let below = &boot[&format!("{name} below")];
        let counts: Vec<String> = below.succeeded().lines().map(|line| line[..11].to_owned()).collect();
        assert_eq!(counts, ["main cpus 2", "thread cpus", "thread cpus", "main cpus 2"], "{name}");
        // The guest's shell takes no library itself.
        assert!(!below.errors().contains(".so"), "{}", below.errors());
    }
}

#[test]
fn cpus_that_the_kernel_keeps_free_are_for_those_who_name_them() {
    let Some((text, errors)) = told("kept free") else { return };
    for line in [
        "-c 3: 4-6",
        "--policy scatter -c 4: ",
        "-c auto: 0-1,4-7",
        "--cpus 2-4 -c 3: 2-4",
        "afterwards: 0-7",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let scattered = text.lines().find(|line| line.starts_with("--policy")).unwrap();
    assert!(!scattered.contains('2') && !scattered.contains('3'), "{scattered}");
    // The error also names the CPUs of a whole node; seven are unavailable.
    assert!(text.contains("-c 7:\n") && errors.contains("isolated"), "{text}{errors}");
}

#[test]
fn partitions_are_side_by_side_and_go_with_their_programs() {
    let Some((text, errors)) = told("partitions") else { return };
    let lines: Vec<&str> = text.lines().collect();
    let expected =
        ["one 0-1 root", "second\t2-3", "root", "root", "still 0-1 root", "other 6", "seven 2", "free 8"];
    assert_eq!(lines, expected, "{errors}");
    // The guest's kernel forgets masks that processes asked for.
    assert!(
        errors.contains("numa: warning: Linux 6.1.") && errors.contains("resets the CPU masks"),
        "{errors}"
    );
}

#[test]
fn what_a_killed_launch_left_is_removed_by_the_next() {
    let Some((text, errors)) = told("abandoned") else { return };
    assert_eq!(text, "before 1 6\n8\n0\n", "{errors}");
    let Some((text, _)) = told("empty") else { return };
    assert_eq!(text, "No program holds cores. 'numa run -c 4 PROGRAM' takes four.\n");
}

#[test]
fn a_launcher_removes_the_group_of_a_keeper_that_was_killed() {
    let Some((text, errors)) = told("outlived") else { return };
    assert_eq!(text, "status 143\n0\n", "{errors}");
}

#[test]
fn cpus_in_a_partition_are_somebodys_and_waited_for() {
    let Some((text, errors)) = told("queue") else { return };
    assert_eq!(text, "status 2\n8\n", "{errors}");
    assert!(errors.contains("6 held by sleep of root") && errors.contains("(--wait)"), "{errors}");
}

#[test]
fn cpus_of_a_partition_are_everybodys_when_numa_run_returns() {
    let Some((text, errors)) = told("whole") else { return };
    // Two of each round; the number of all CPUs is printed by each.
    let chains = (2 * rounds()).to_string();
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), [chains.as_str(), "8"], "{errors}");
}

#[test]
fn without_a_partition_the_program_runs_and_the_reason_is_told() {
    for step in ["undelegated", "undelegated later"] {
        let Some((text, errors)) = told(step) else { return };
        assert_eq!(text, "2\nstatus 0\n");
        let reason = "numa: --isolate: /sys/fs/cgroup is not delegated to this user (Permission denied";
        // The machine has no systemd, whose options it could have.
        assert!(errors.starts_with(reason) && errors.contains("run on a machine with systemd"), "{errors}");
        assert!(errors.contains("; the cores are reserved without a partition\n"), "{errors}");
    }
}

#[test]
fn a_group_that_has_processes_of_its_own_can_be_divided() {
    let Some((text, errors)) = told("within") else { return };
    let ended = |partition| format!("1\n2\n{partition}\n6\nstatus 0\n0\n");
    assert_eq!(text, ended("member") + &ended("root"), "{errors}");
    let plain = "--isolate: CPUs 2-3 are a plain cpuset, which other processes may use too (the kernel says 'root invalid";
    let whole = "numa: CPUs 2-3 are a partition of their own: /sys/fs/cgroup/root/numakit-";
    assert!(errors.contains(plain) && errors.contains(whole), "{errors}");
}

#[test]
fn the_doctor_tells_what_placing_finds() {
    let Some((text, _)) = told("doctor") else { return };
    for line in [
        "note     control group for 'numa run --isolate': /sys/fs/cgroup is not delegated to this user\n",
        "ok       control group for 'numa run --isolate': cpuset of /sys/fs/cgroup\n",
        "ok       registry of cores: no program holds cores\n",
        "ok       library for programs: /var/cache/numakit/",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn options_of_the_original_do_what_they_did() {
    let Some((text, errors)) = told("original") else { return };
    let lines: Vec<&str> = text.lines().collect();
    let counts: Vec<&str> = lines.iter().map(|line| line.split(" policy").next().unwrap()).collect();
    let (main, thread) = ("main cpus 4", "thread cpus 1");
    assert_eq!(counts[..9], [main, thread, thread, main, "status 0", main, thread, thread, "main cpus 1"]);
    assert_eq!(lines[9..11], ["THP_enabled:\t0", "1"]);
    assert!(lines[11].starts_with("numaplace ") && lines.len() == 12, "{text}");
    assert!(
        errors.contains("numa: set NUMA_MAIN=0\n") && errors.contains("of 1 process on CPUs 0-3"),
        "{errors}"
    );
    let Some((_, errors)) = told("explained") else { return };
    assert!(errors.contains("thread 0: CPU 0") && errors.contains("numa: set NUMA_PLACE=0-1"), "{errors}");
}
