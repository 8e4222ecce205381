//! What `numa doctor` says of where samples land, and measures again.

use crate::runner::Folder;
use numakit_sampling::calibration::{self, MachineKind};
use numakit_sys::SysRoot;

#[test]
fn doctor_shows_kept_calibrations_with_their_age_and_load() {
    let folder = Folder::new("calibrations");
    let MachineKind { processor, product, kernel } = MachineKind::of(&SysRoot::host());
    let seconds = numakit_sys::clock::utc() / 1_000_000_000 - 7260;
    let line = |method: &str, rest: &str| format!("{method}\t{processor}\t{product}\t{kernel}\t{rest}\n");
    let lines = [
        line("perf", &format!("24 0 0 0 0\t{seconds} 0.5 64")),
        line("in-process", &format!("24 0 0 0 0\t{seconds} 99 64")),
        line("ptrace", "0 24 0 0 0"),
    ];
    let cache = folder.path("cache");
    numakit_sys::cache::store(&cache, "landing", &lines.concat()).unwrap();
    let output = folder.numa("doctor --json").env("NUMAKIT_CACHE", &cache).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |about: &str| {
        let about = format!("kept calibration of {about}");
        let found =
            json["findings"].as_array().unwrap().iter().find(|finding| finding["about"] == about.as_str());
        ["state", "seen", "fix"].map(|field| found.unwrap()[field].as_str().unwrap().to_owned())
    };
    let [state, seen, fix] = of("performance events");
    assert!(state == "ok" && seen.contains("2 h 1 min ago), load average 0.50 on 64 CPUs"), "{seen}");
    assert!(fix.is_empty() && seen.contains("'numa doctor --calibrate'"), "{seen}");
    let [state, seen, fix] = of("timers in the program");
    assert!(state == "note" && seen.contains("load average 99.00 on 64 CPUs, so other"), "{seen}");
    assert_eq!(fix, "numa doctor --calibrate, when the machine is idle");
    let [state, seen, fix] = of("ptrace");
    assert!(
        state == "note" && seen.contains("one instruction behind") && seen.ends_with("not known"),
        "{seen}"
    );
    assert_eq!(fix, "numa doctor --calibrate");
    // Nothing was measured: the file is as it was.
    assert_eq!(std::fs::read_to_string(cache.join("landing")).unwrap(), lines.concat());
    folder.run("doctor --calibrate --sysroot n2").says(2, "--sysroot");
}

#[test]
fn measuring_doctor_calibrates_again_what_is_kept() {
    let folder = Folder::new("calibrate");
    let MachineKind { processor, product, kernel } = MachineKind::of(&SysRoot::host());
    let cache = folder.path("cache");
    // Without a moment, as of an earlier version, and one that says nothing.
    let old = format!("in-process\t{processor}\t{product}\t{kernel}\t24 0 0 0 0\n");
    let vague = format!("perf\t{processor}\t{product}\t{kernel}\t20 0 0 3 1\n");
    numakit_sys::cache::store(&cache, "landing", &format!("{old}{vague}")).unwrap();
    folder.numa("doctor --calibrate").env("NUMAKIT_CACHE", &cache).output().unwrap();
    let content = std::fs::read_to_string(cache.join("landing")).unwrap();
    let kept = |line: &str| calibration::parse(line).filter(|kept| kept.moment.is_some());
    if content.lines().filter_map(kept).count() == 0 {
        return numakit_skips::MACHINE.skip_part("samples land in no one place here");
    }
    assert!(!content.contains(&vague), "{content}");
}
