use crate::runner::{Done, Folder, Mounted};
use numakit_testing::until;
use std::process::Command;

#[test]
fn unknown_events_name_the_nearest() {
    let folder = Folder::new("events");
    folder.run("record -e pgfalt -- true").says(2, "pgfault");
    folder.run("stat -n 1 -e pgfault,,x").says(2, "empty item");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1, "nothing was created");
}

#[test]
fn impossible_intervals_are_refused() {
    let folder = Folder::new("intervals");
    for interval in ["0ms", "0s", "2h", "1us", "5", "fast", "1e99s", "0Hz", "11kHz"] {
        folder.run(&format!("record -i {interval} -- true")).says(2, "interval");
        folder.run(&format!("stat -i {interval} -n 1")).says(2, "interval");
    }
    folder.run("record --interval=-1s -- true").says(2, "interval");
}

#[test]
fn intervals_below_a_millisecond_need_fast_reads() {
    let folder = Folder::new("fast");
    let quick = folder.run("record -i 2kHz -e self.lost,self.wakeup -o quick.arrows -- sleep 0.2");
    quick.says(0, "ticks lost (");
    let rows = folder.read("quick.arrows");
    assert_eq!(rows.header.interval, 500_000);
    assert!(rows.samples() > 10, "{}", rows.samples());
    // A machine whose files take longer to read.
    let text: String = (0..4096).map(|n| format!("made_up_{n} {n}\n")).collect();
    std::fs::create_dir_all(folder.path("slow/proc")).unwrap();
    std::fs::write(folder.path("slow/proc/vmstat"), text).unwrap();
    std::fs::write(folder.path("slow/proc/stat"), "cpu 1 0 1 1\ncpu0 1 0 1 1\n").unwrap();
    let slow = folder.run("--sysroot slow record -i 100us -e vmstat -o slow.arrows -- true");
    slow.says(2, "one sample of these 4096 series takes");
    assert!(!folder.path("slow.arrows").exists());
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_not_a_signal() {
    let folder = Folder::new("limit");
    let limited = |blocks: u32, arguments: &str| {
        let numa = env!("CARGO_BIN_EXE_numa");
        let mut shell = Command::new("sh");
        folder.isolate(&mut shell).args(["-c", &format!("ulimit -f {blocks}; exec {numa} {arguments}")]);
        Done::of(shell.output().unwrap())
    };
    limited(8, "record -e pgfault -o start.arrows -- true").says(2, "ulimit -f unlimited");
    assert!(!folder.path("start.arrows").exists());
    // The limit applies to each file: the tail file fits, the recording does not.
    folder.run("record -i 1ms -e vmstat,self -o whole.arrows -- sleep 0.1").says(0, "");
    let stopped = limited(1, "export whole.arrows --to csv -o whole.csv");
    assert!((1..=2).contains(&stopped.code) && stopped.err.contains("whole.csv"), "{}", stopped.err);
    // A command has the limit, and the default action of SIGXFSZ.
    let ended = folder.run("record -e pgfault -o child.arrows -- ./write");
    assert_eq!(ended.code, 127, "{}", ended.err);
    folder.script("write", "#!/bin/sh\nulimit -f 1\nexec head -c 99999 /dev/zero >big\n");
    let ended = folder.run("record -e pgfault -o child2.arrows -- ./write");
    // SIGXFSZ, as without numa.
    assert_eq!(ended.code, 128 + 25, "{}", ended.err);
}

#[test]
fn an_unreadable_root_is_refused_and_an_incomplete_one_is_reported() {
    let folder = Folder::new("root");
    folder.run("--sysroot none record -- true").says(2, "--sysroot none cannot be read");
    std::fs::create_dir_all(folder.path("half/proc")).unwrap();
    std::fs::write(folder.path("half/proc/vmstat"), "pgfault 7\nnr_free_pages 5\ngarbage\npgfree x\n")
        .unwrap();
    folder.run("--sysroot half record -e vmstat -- true").says(2, "half shows no CPU");
    std::fs::write(folder.path("half/proc/stat"), "cpu 1 0 1 1\ncpu0 1 0 1 1\n").unwrap();
    folder.run("--sysroot half record -i 1h -e vmstat -o a.arrows -- true").says(0, "2 samples");
    let rows = folder.read("a.arrows");
    assert_eq!((rows.values("vmstat.pgfault"), rows.header.series.len()), (vec![7, 7], 2));
    assert!(
        !rows.header.absent.iter().any(|a| a.name == "node"),
        "sensors that are not selected are not missing"
    );
    folder.run("--sysroot half record -i 1h -o b.arrows -- true").says(0, "2 samples");
    let absent = folder.read("b.arrows").header.absent;
    assert!(absent.iter().any(|a| a.name == "node" && !a.why.fix.to_string().is_empty()));
}

#[test]
fn a_full_disk_is_reported_and_samples_are_kept() {
    let folder = Folder::new("disk");
    let Some(_mounted) = Mounted::at(&folder, "small", "size=700k") else { return };
    let small = folder.path("small");
    let too_small = folder.run("record -e vmstat -o small/a.arrows -- true");
    let begun = folder.run("record -i 1ms -e pgfault,pgfree -o small/b.arrows -- true");
    let rest = "x".repeat(700 << 10);
    let started = folder.start("record -i 1ms -e pgfault,pgfree -o small/c.arrows");
    let _ = std::fs::write(small.join("rest"), rest);
    until!({
        folder.run("ctl status").out.split(' ').nth(2).is_none_or(|n| n.parse::<u64>().unwrap() > 1100)
    });
    let _ = folder.run("ctl stop");
    let stopped = started.end();
    let kept = folder.read("small/c.arrows");
    std::fs::remove_file(small.join("rest")).unwrap();
    let recovered = folder.run("recover small/c.arrows");
    let whole = folder.read("small/c.arrows");
    too_small.says(2, "free some space");
    begun.says(0, "samples");
    stopped.says(1, "which 'numa show small/c.arrows' reads together");
    // One batch was written before the disk was full, or more.
    assert!(kept.samples() >= 1000, "{}", kept.samples());
    assert_eq!((recovered.code, whole.samples()), (0, kept.samples()));
}

#[test]
fn a_removed_directory_is_reported_and_nothing_is_lost() {
    let folder = Folder::new("away");
    std::fs::create_dir(folder.path("out")).unwrap();
    let name = format!("numakit-away-{}.arrows", std::process::id());
    let started = folder.start(&format!("record -i 1ms -e pgfault -o out/{name}"));
    std::fs::remove_dir_all(folder.path("out")).unwrap();
    folder.run("ctl stop").says(0, "");
    started.end().says(1, "it was saved as");
    let saved = std::env::temp_dir().join(name);
    assert!(crate::runner::read(&saved).samples() >= 2);
    std::fs::remove_file(saved).unwrap();
}

#[test]
fn every_verb_runs_as_nobody() {
    if numakit_sys::user::id() != 0 {
        numakit_skips::ROOT.skip("becoming nobody needs root; the other tests run as this user already");
        return;
    }
    let folder = Folder::new("nobody");
    let run = |arguments: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(numa_for_all(&folder));
        command
            .args(arguments.split_whitespace())
            .current_dir(folder.path("home"))
            .env("HOME", folder.path("home"))
            .env("NUMAKIT_CACHE", folder.path("home/cache"))
            .env("NUMAKIT_REGISTRY", folder.path("home/registry"))
            .env("TMPDIR", folder.path("home"))
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_RUNTIME_DIR");
        Done::of(command.output().unwrap())
    };
    std::fs::create_dir(folder.path("home")).unwrap();
    let status = Command::new("chown").arg("65534:65534").arg(folder.path("home")).status().unwrap();
    assert!(status.success());
    for (arguments, codes) in [
        ("topo", &[0][..]),
        ("topo --json", &[0]),
        ("list", &[0]),
        ("doctor", &[0, 1]),
        ("stat -i 10ms -n 2", &[0]),
        ("record -i 10ms -o a.arrows -- true", &[0]),
        ("show a.arrows", &[0]),
        ("export a.arrows --to csv", &[0]),
        ("recover a.arrows", &[0]),
        ("capture -o c.tar.zst", &[0]),
    ] {
        let done = run(arguments);
        assert!(codes.contains(&done.code), "{arguments}: {} {} {}", done.code, done.out, done.err);
    }
    run("ctl status").says(2, "no numa is running for this user");
    run("record --priority realtime -- true").says(2, "CAP_SYS_NICE");
    run("record --ctl-compat -- true").says(2, "root");
}

/// A copy of the binary that every user may run: the build folder may be private.
fn numa_for_all(folder: &Folder) -> std::path::PathBuf {
    let target = folder.path("numa");
    if target.exists() { target } else { folder.program(env!("CARGO_BIN_EXE_numa").as_ref(), "numa", 0o755) }
}

#[test]
fn the_sampler_runs_on_the_given_cpu() {
    let folder = Folder::new("cpu");
    folder.run("record --cpu 9999 -- true").says(2, "choose one of");
    let last = numakit_sys::sched::affinity().unwrap().last().unwrap();
    let started = folder.start(&format!("record --cpu {last} -e self -o a.arrows"));
    let tasks = std::fs::read_dir(format!("/proc/{}/task", started.id())).unwrap();
    let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status")).unwrap();
    let sampler = tasks.map(|t| status(t.unwrap())).find(|s| s.starts_with("Name:\tsampler\n")).unwrap();
    assert!(sampler.contains(&format!("Cpus_allowed_list:\t{last}\n")), "{sampler}");
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.end().code, 0);
}
