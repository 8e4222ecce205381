//! `numa run` on this machine: any machine has at least one core.

use crate::compiler::builds;
use crate::runner::{Done, Folder, Started};
use numakit_testing::until;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Uses a separate registry, so that other tests and users do not matter.
pub fn numa(folder: &Folder, words: &[&str]) -> Command {
    let mut command = folder.numa("run");
    command.args(words).env("NUMAKIT_REGISTRY", folder.path("registry"));
    for name in ["LD_PRELOAD", "OMP_NUM_THREADS", "OMP_PLACES", "XDG_CONFIG_HOME", "NUMAKIT_PRELOAD"] {
        command.env_remove(name);
    }
    command.env("HOME", &folder.0);
    command
}

pub fn run(folder: &Folder, words: &[&str]) -> Done {
    Done::of(numa(folder, words).output().unwrap())
}

/// The value of an environment variable in the output of `env`.
fn value(printed: &str, name: &str) -> Option<String> {
    printed.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

/// A C program, compiled with these options; `None`, and a message, without a compiler.
pub fn compiled(folder: &Folder, name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    let program = built(folder, name, source, options);
    if program.is_none() {
        numakit_skips::COMPILERS.skip(format_args!("no cc here that builds with {options:?}"));
    }
    program
}

fn built(folder: &Folder, name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    let (file, program) = (folder.path(&format!("{name}.c")), folder.path(name));
    std::fs::write(&file, source).unwrap();
    builds("cc", options, &file, &program).then_some(program)
}

fn cpus() -> usize {
    numakit_sys::sched::affinity().unwrap().len()
}

#[test]
fn measuring_threads_of_openmp_sleep_where_others_are_bound_to_the_cpus() {
    let folder = Folder::new("run-crowded");
    let bind = |cpu: u32| {
        Started::of(
            Command::new("taskset").args(["-c", &cpu.to_string(), "sleep", "600"]).stdout(Stdio::null()),
        )
    };
    let others: Vec<Started> = numakit_sys::sched::affinity().unwrap().iter().map(bind).collect();
    let words = ["-c", "1", "--busy", "off", "-v", "--", "env"];
    let why = "threads of OpenMP that wait sleep: other programs use the CPUs";
    until!(run(&folder, &words).err.contains(why));
    let crowded = run(&folder, &words);
    assert_eq!(value(&crowded.out, "OMP_WAIT_POLICY").as_deref(), Some("PASSIVE"), "{}", crowded.err);
    let kept = Done::of(numa(&folder, &words).env("OMP_WAIT_POLICY", "active").output().unwrap());
    assert_eq!(value(&kept.out, "OMP_WAIT_POLICY").as_deref(), Some("active"), "{}", kept.err);
    for mut other in others {
        other.signal("KILL");
        other.wait();
    }
}

#[test]
fn a_program_gets_environment_mask_and_descriptor() {
    let folder = Folder::new("run-env");
    let done = run(&folder, &["-c", "1", "--busy", "off", "--", "sh", "-c", "env; nproc"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let cpu = value(&done.out, "NUMA_PLACE").unwrap();
    assert_eq!(value(&done.out, "OMP_PLACES"), Some(format!("{{{cpu}}}")));
    assert_eq!(value(&done.out, "NUMA_MASK"), Some(cpu));
    assert_eq!(value(&done.out, "NUMA_MEMORY").as_deref(), Some("default"));
    assert!(value(&done.out, "LD_PRELOAD").unwrap().ends_with("/libnumaplace.so"));
    let hold = value(&done.out, "NUMA_HOLD").unwrap();
    assert!(done.out.lines().any(|line| line == "1"), "nproc: {}", done.out);
    // The descriptor is the only additional one.
    let list = &["ls", "/proc/self/fd"];
    let without = Command::new(list[0]).arg(list[1]).output().unwrap();
    let without = String::from_utf8(without.stdout).unwrap();
    let with = run(&folder, &[&["-c", "1", "--busy", "off", "--"], &list[..]].concat()).out;
    let more: Vec<&str> =
        with.lines().filter(|number| without.lines().all(|other| other != *number)).collect();
    assert!(hold.parse::<u32>().unwrap() >= 100 && more == [hold.as_str()], "{hold}: {with} {without}");
}

#[test]
fn existing_variables_are_kept_or_reported() {
    let folder = Folder::new("run-before");
    let Some(other) = compiled(&folder, "other.so", "int unused;", &["-shared", "-fPIC"]) else { return };
    let mut command = numa(&folder, &["-c", "1", "--busy", "off", "-v", "--memory", "bind:0", "--", "env"]);
    command.env("LD_PRELOAD", &other).env("OMP_NUM_THREADS", "3").env("KMP_AFFINITY", "compact");
    let done = Done::of(command.env("OMP_PLACES", "sockets").output().unwrap());
    assert_eq!(done.code, 0, "{}", done.err);
    let list = value(&done.out, "LD_PRELOAD").unwrap();
    assert!(list.ends_with(&format!("/libnumaplace.so:{}", other.display())), "{list}");
    assert_eq!(value(&done.out, "OMP_NUM_THREADS").as_deref(), Some("3"));
    assert_eq!(value(&done.out, "KMP_AFFINITY"), None);
    assert_eq!(value(&done.out, "NUMA_MEMORY").as_deref(), Some("bind:0"));
    for line in [
        "numa: kept OMP_NUM_THREADS=3: it was set before",
        "numa: unset KMP_AFFINITY (was 'compact')",
        "(was 'sockets')",
        "numa: preloads /",
        "numa: memory: bind:0",
        "numa: 1 thread of 1 process on CPUs ",
    ] {
        assert!(done.err.contains(line), "{line}: {}", done.err);
    }
}

/// Prints the number of CPUs before and after a thread is created.
const COUNTS: &str = "#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
static void *nothing(void *x) { return x; }
int main(void) {
    pthread_t thread;
    cpu_set_t own;
    system(\"nproc\");
    pthread_create(&thread, 0, nothing, 0);
    pthread_join(thread, 0);
    system(\"nproc\");
    sched_getaffinity(0, sizeof own, &own);
    printf(\"main %d\\n\", CPU_COUNT(&own));
    return 0;
}";

#[test]
fn the_count_of_cpus_is_the_same_before_and_after_the_first_thread() {
    let folder = Folder::new("run-counts");
    let Some(program) = compiled(&folder, "counts", COUNTS, &["-pthread"]) else { return };
    let program = program.to_str().unwrap();
    for cores in 1..=cpus().min(2) {
        let cores = cores.to_string();
        let done = run(&folder, &["-c", &cores, "--busy", "off", "--", program]);
        assert_eq!(done.code, 0, "{}", done.err);
        let counts: Vec<&str> = done.out.lines().filter(|line| !line.starts_with("main")).collect();
        assert_eq!(counts, [cores.as_str(), cores.as_str()], "{}", done.out);
    }
}

#[test]
fn the_exit_status_is_the_programs() {
    let folder = Folder::new("run-end");
    for share in [&["--share"][..], &[]] {
        let with = |script| {
            let words = [&["-c", "1", "--busy", "off"], share, &["--", "sh", "-c", script]].concat();
            numa(&folder, &words).output().unwrap().status
        };
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(with("exit 7").code(), Some(7));
        assert_eq!(with("kill -USR1 $$").signal(), Some(10));
        assert_eq!(with("kill -9 $$").signal(), Some(9));
    }
}

#[test]
fn input_and_signals_pass_through() {
    let folder = Folder::new("run-input");
    let words = [
        "-c",
        "1",
        "--busy",
        "off",
        "--",
        "sh",
        "-c",
        "cat; trap 'echo got TERM; exit 3' TERM; echo ready; while :; do sleep 0.01; done",
    ];
    let mut command = numa(&folder, &words);
    let out = folder.path("out");
    let file = std::fs::File::create(&out).unwrap();
    let mut started = Started::of(command.stdin(Stdio::piped()).stdout(file));
    started.child().stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let printed = || std::fs::read_to_string(&out).unwrap();
    until!(printed() == "hello\nready\n");
    started.signal("TERM");
    assert_eq!(started.wait().code(), Some(3));
    assert_eq!(printed(), "hello\nready\ngot TERM\n");
}

#[test]
fn a_program_that_cannot_be_started_leaves_nothing() {
    let folder = Folder::new("run-missing");
    run(&folder, &["-c", "1", "--", "no-such-program"]).says(127, "no-such-program: No such file");
    run(&folder, &["-c", "1", "--", "/etc/passwd"]).says(126, "/etc/passwd: Permission denied");
    run(&folder, &["-c", "1", "--", "./run"]).says(126, "./run: Permission denied");
    let missing =
        Done::of(numa(&folder, &["-c", "1", "true"]).env("NUMAKIT_PRELOAD", "/no/lib.so").output().unwrap());
    missing.says(2, "NUMAKIT_PRELOAD is '/no/lib.so', where there is no file");
    assert!(!folder.path("registry").exists());
}

#[test]
fn a_dry_run_reserves_nothing_and_prints_a_shell_command() {
    let folder = Folder::new("run-dry");
    let words =
        ["-c", "1", "--busy", "off", "--dry-run", "--thp", "off", "--slack", "1", "--", "echo", "two words"];
    let done = run(&folder, &words);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("# huge pages off") && done.out.contains("taskset -c "), "{}", done.out);
    assert!(!folder.path("registry").exists());
    let which = |name: &str| Command::new(name).arg("--help").output().is_ok();
    if !["taskset", "numactl"].into_iter().all(which) {
        numakit_skips::TOOLS.skip_part("no taskset and numactl here to run the line with");
        return;
    }
    let shell = Command::new("sh").arg("-c").arg(&done.out).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&shell.stdout), "two words\n");
}

#[test]
fn programs_on_the_list_get_no_huge_pages() {
    let folder = Folder::new("run-thp");
    std::fs::create_dir_all(folder.path(".config/numakit")).unwrap();
    std::fs::write(folder.path(".config/numakit/no-huge-pages"), "# slow with them\ngrep\n").unwrap();
    let with = |words: &[&str]| {
        let words =
            [&["-c", "1", "--busy", "off"], words, &["--", "grep", "THP_enabled", "/proc/self/status"]];
        run(&folder, &words.concat())
    };
    let done = with(&[]);
    if done.out.is_empty() {
        numakit_skips::MACHINE.skip("this kernel does not say who gets huge pages");
        return;
    }
    assert_eq!(done.out, "THP_enabled:\t0\n");
    assert!(done.err.contains("no-huge-pages lists 'grep'; --thp on overrides this"), "{}", done.err);
    assert_eq!(with(&["--thp", "on"]).out, "THP_enabled:\t1\n");
    std::fs::remove_file(folder.path(".config/numakit/no-huge-pages")).unwrap();
    assert_eq!(
        (with(&["--no-thp"]).out.as_str(), with(&[]).out.as_str()),
        ("THP_enabled:\t0\n", "THP_enabled:\t1\n")
    );
}

#[test]
fn scheduling_class_timer_slack_and_stack_limit_are_set() {
    let folder = Folder::new("run-with");
    let script =
        "ulimit -s; cut -d' ' -f41 /proc/self/stat; cat /proc/self/timerslack_ns; echo $OMP_STACKSIZE";
    let words = [
        "-c", "1", "--busy", "off", "--stack", "4M", "--sched", "batch", "--slack", "1", "--", "sh", "-c",
        script,
    ];
    let done = run(&folder, &words);
    assert_eq!((done.code, done.out.as_str()), (0, "4096\n3\n1\n4096K\n"), "{}", done.err);
    let alone = run(&folder, &["-c", "1", "--busy", "off", "--no-inherit", "--", "sh", "-c", "env"]);
    let ours = ["NUMA_PLACE", "NUMA_HOLD", "LD_PRELOAD"].map(|name| value(&alone.out, name));
    assert_eq!(ours, [None, None, None], "{}", alone.out);
}

#[test]
fn programs_without_the_library_are_reported() {
    let folder = Folder::new("run-obstacles");
    let with = |program: &str| {
        run(&folder, &["-c", "1", "--busy", "off", "--memory", "interleave:0", "--", program])
    };
    match built(&folder, "fixed", "int main(void) { return 5; }", &["-static"]) {
        Some(fixed) => {
            let done = with(fixed.to_str().unwrap());
            done.says(5, "numa: fixed is statically linked: its threads are not bound one by one");
            assert!(done.err.ends_with("memory interleave:0\n"), "{}", done.err);
        }
        None => numakit_skips::COMPILERS.skip_part("no cc here that builds with -static"),
    }
    let go = folder.path("main.go");
    std::fs::write(&go, "package main\nimport \"runtime\"\nfunc main() { println(runtime.GOMAXPROCS(0)) }\n")
        .unwrap();
    let build = Command::new("go")
        .args(["build", "-o", "gopher", "main.go"])
        .current_dir(&folder.0)
        .env("GO111MODULE", "off")
        .output();
    match build {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let done = with(folder.path("gopher").to_str().unwrap());
            done.says(0, "numa: gopher is a Go program: its threads are not bound one by one");
            assert!(done.err.ends_with("\n1\n"), "{}", done.err);
        }
        Err(error) => numakit_skips::COMPILERS.skip_part(format_args!("go: {error}")),
    }
    if numakit_sys::user::id() != 0 {
        numakit_skips::ROOT.skip_part("giving a program to another user needs root");
        return;
    }
    let raised = folder.path("raised");
    let shell =
        format!("cp \"$(command -v nproc)\" {0} && chown 65534 {0} && chmod 4755 {0}", raised.display());
    assert!(Command::new("sh").args(["-c", &shell]).status().unwrap().success());
    with(raised.to_str().unwrap()).says(0, "numa: raised is setuid: its threads are not bound");
}

#[test]
fn cores_are_held_while_the_program_runs_and_free_afterwards() {
    let folder = Folder::new("run-held");
    let all = cpus();
    let holds = ["-c", "all", "--busy", "off", "--", "sh", "-c", "echo > up; exec sleep 600"];
    let mut started = Started::of(&mut numa(&folder, &holds));
    until!(folder.path("up").exists());
    let refused = run(&folder, &["-c", "1", "--busy", "off", "--", "true"]);
    let waited = run(&folder, &["-c", "1", "--busy", "off", "--wait=0.2", "--", "true"]);
    let shared = run(&folder, &["-c", "1", "--busy", "off", "--share", "--", "nproc"]);
    started.signal("TERM");
    started.wait();
    let after = run(&folder, &["--wait=60", "--busy", "off", "--", "nproc"]);
    refused.says(2, "sh of ");
    waited.says(2, "sh of ");
    assert_eq!((shared.code, shared.out.as_str()), (0, "1\n"), "{}", shared.err);
    assert!(shared.err.contains("are shared with their holders"), "{}", shared.err);
    // If cores have several PUs, one of each is used.
    let count: usize = after.out.trim().parse().unwrap();
    assert!(after.code == 0 && count >= 1 && count <= all, "{} {}", after.out, after.err);
}

#[test]
fn an_allocator_is_preloaded_beside_placement_and_alone() {
    let folder = Folder::new("run-alloc");
    for (more, names) in [(&[][..], 2), (&["--no-library"][..], 1)] {
        let words = [&["-c", "1", "--busy", "off", "--alloc", "uma"], more, &["--", "sh", "-c"]].concat();
        let done = run(&folder, &[&words[..], &["env; exec cat /proc/self/maps"]].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        assert_eq!(value(&done.out, "NUMALLOC_PROFILE").as_deref(), Some("uma"));
        let list = value(&done.out, "LD_PRELOAD").unwrap();
        assert_eq!(list.split(':').count(), names, "{list}");
        assert!(list.ends_with("/libnumalloc.so"), "{list}");
        assert!(done.out.lines().any(|line| line.contains("r-xp") && line.ends_with("/libnumalloc.so")));
    }
    let mut command =
        numa(&folder, &["-c", "1", "--busy", "off", "--alloc", "numa", "--", "ls", "/proc/self"]);
    let done = Done::of(command.env("NUMALLOC_KEEEP", "3").output().unwrap());
    assert!(
        done.code == 0 && done.err.contains("NUMALLOC_KEEEP=3: there is no such setting"),
        "{}",
        done.err
    );
}

#[test]
fn invalid_requests_are_refused() {
    let folder = Folder::new("run-wrong");
    for (words, text) in [
        (&["-c", "0", "true"][..], "'0'"),
        (&["-c", "-3", "true"], "'-3'"),
        (&["-c", "100000", "true"], "100000 cores"),
        (&["--cpus", "9999", "true"], "9999"),
        (&["--nodes", "900", "true"], "900"),
        (&["--memory", "bind:900", "-c", "1", "true"], "900"),
        (&["-c", "1"], "no program given"),
        (&["-c", "1", "--sched", "fifo:0", "true"], "priority from 1 to 99"),
        (&["-c", "1", "--stack", "1", "true"], "at least 16K"),
        (&["-c", "1", "--busy", "200", "true"], "1 to 100"),
        (&["-c", "1", "--wait=x", "true"], "number of seconds"),
        (&["-c", "1", "--pid", "4194304"], "no process 4194304"),
        (&["-c", "1", "--share", "--isolate", "true"], "--isolate"),
        (&["--sysroot", "/", "true"], "this machine only"),
    ] {
        run(&folder, words).says(2, text);
    }
}

#[test]
fn a_running_process_is_placed() {
    let folder = Folder::new("run-pid");
    let sleeper = Started::of(Command::new("sleep").arg("600"));
    let done = run(&folder, &["-c", "1", "--share", "--pid", &sleeper.id().to_string()]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", sleeper.id())).unwrap();
    let prefix = format!("thread {}: CPU ", sleeper.id());
    let cpu = done
        .out
        .lines()
        .find_map(|line| line.strip_prefix(&prefix))
        .unwrap_or_else(|| panic!("{}", done.err));
    assert!(status.contains(&format!("Cpus_allowed_list:\t{cpu}\n")), "{status}");
    assert!(done.out.contains("memory: "), "{}", done.out);
}

#[test]
fn the_cpu_time_of_the_program_is_that_of_a_child() {
    let folder = Folder::new("cpu-time");
    let burn = "import time\nwhile time.process_time() < 0.3: pass\n";
    std::fs::write(folder.path("burn.py"), burn).unwrap();
    if Command::new("python3").arg("--version").output().is_err() {
        return numakit_skips::PYTHON.skip("there is no python3, which uses CPU time");
    }
    let mut shell = Command::new("sh");
    let line = format!("{} run --share -c 1 python3 burn.py; times", env!("CARGO_BIN_EXE_numa"));
    let done = folder.isolate(&mut shell).args(["-c", &line]).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    // The second line is of children: minutes and seconds in user mode and in the kernel.
    let of_children = text.lines().last().unwrap();
    let seconds = |word: &str| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    let used: f64 = of_children.split_whitespace().map(seconds).sum();
    assert!(used >= 0.29, "{text}");
}
