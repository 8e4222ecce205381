//! The unit of systemd: valid, closed, and wide enough for what runs in it.

use super::{TOP, good, xtask};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const UNIT: &str = "packaging/systemd/numakit.service";
/// The exposure that `systemd-analyze security` may find.
const EXPOSED: f64 = 2.5;

fn unit() -> String {
    fs::read_to_string(Path::new(TOP).join(UNIT)).unwrap()
}

/// A copy in which programs and pages that are not installed here are replaced.
fn copy(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("numakit.service");
    let text = unit().replace("/usr/bin/numa ", "/bin/true ");
    let lines = text.lines().filter(|line| !line.starts_with("Documentation="));
    fs::write(&path, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    path
}

/// The output of systemd-analyze; `None`, and a message, without it.
fn analyzed(words: &[&str], unit: &Path) -> Option<String> {
    let Ok(output) = Command::new("systemd-analyze").args(words).arg(unit).output() else {
        numakit_skips::PACKAGERS.skip("systemd-analyze is not installed");
        return None;
    };
    Some(good(&output) + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn systemd_accepts_the_unit() {
    let Some(said) = analyzed(&["verify"], &copy("verified")) else { return };
    assert!(!said.contains("numakit.service"), "{said}");
}

#[test]
fn the_unit_exposes_little() {
    let Some(said) = analyzed(&["security", "--offline=true", "--no-pager"], &copy("secured")) else {
        return;
    };
    let level = said.split("Overall exposure level for numakit.service: ").nth(1).unwrap();
    let level: f64 = level.split_whitespace().next().unwrap().parse().unwrap();
    assert!(level < EXPOSED, "{said}");
}

/// The values of a setting, which adds to itself.
fn values(setting: &str) -> Vec<String> {
    let unit = unit();
    let lines = unit.lines().filter_map(|line| line.strip_prefix(setting)?.strip_prefix('='));
    lines.map(str::to_owned).collect()
}

/// The system calls of a set of systemd, with those of the sets in it.
fn calls(sets: &BTreeMap<String, Vec<String>>, word: &str) -> BTreeSet<String> {
    match sets.get(word) {
        Some(words) => words.iter().flat_map(|word| calls(sets, word)).collect(),
        None => BTreeSet::from([word.to_owned()]),
    }
}

fn permitted() -> Option<BTreeSet<String>> {
    let Ok(listed) = Command::new("systemd-analyze").args(["syscall-filter", "--no-pager"]).output() else {
        numakit_skips::PACKAGERS.skip("systemd-analyze is not installed");
        return None;
    };
    let mut sets: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut last = String::new();
    for line in good(&listed).lines() {
        match line.strip_prefix("    ") {
            None => last = line.trim().to_owned(),
            Some(word) if !word.starts_with('#') => {
                sets.entry(last.clone()).or_default().push(word.trim().to_owned());
            }
            Some(_) => {}
        }
    }
    let mut permitted = BTreeSet::new();
    for list in values("SystemCallFilter") {
        let all = |words: &str| words.split(' ').flat_map(|word| calls(&sets, word)).collect::<BTreeSet<_>>();
        match list.strip_prefix('~') {
            Some(words) => permitted = permitted.difference(&all(words)).cloned().collect(),
            None => permitted.extend(all(&list)),
        }
    }
    permitted.extend(calls(&sets, "@default"));
    Some(permitted)
}

/// A user and the rights of the unit, by programs of util-linux; $1 and so on is the command. The root is read-only, homes and
/// /tmp are empty.
const RESTRICTED: &str = r#"
set -e
mount --make-rprivate /
mkdir -p /run/numakit-test
mount -t tmpfs -o mode=755 none /run/numakit-test
cp "$0" /run/numakit-test/numa
mkdir -m 777 /run/numakit-test/kept
for folder in /root /home /tmp; do mount -t tmpfs none $folder; done
mount --rbind / /
mount -o remount,ro,bind /
cd /
capability=$1
shift
exec setpriv --reuid 61184 --regid 61184 --clear-groups --bounding-set=-all,$capability --inh-caps=-all,$capability \
    --ambient-caps=-all,$capability --no-new-privs env -i NUMAKIT_CACHE=/run/numakit-test/kept \
    XDG_RUNTIME_DIR=/run/numakit-test/kept "$@"
"#;

/// numa of the build that all tests use.
fn numa() -> PathBuf {
    good(&xtask(&["build"])).lines().next().unwrap().into()
}

#[test]
#[ignore = "thorough: it builds numa"]
fn numa_samples_with_the_rights_of_the_unit() {
    let capability = values("AmbientCapabilities").concat().to_lowercase().replace("cap_", "+");
    assert_eq!(capability, "+perfmon");
    let mut restricted = Command::new("unshare");
    restricted.args(["--mount", "--ipc", "--uts", "sh", "-c", RESTRICTED]).arg(numa()).arg(&capability);
    let sampled = "test \"$(id -u)\" = 61184 && ! touch /etc/numakit-test 2>/dev/null && \
                   exec /run/numakit-test/numa stat -i 50ms -n 3";
    let output = restricted.args(["sh", "-c", sampled]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    if ["unshare", "mount:", "setpriv"].iter().any(|program| error.starts_with(program)) {
        return numakit_skips::PRIVILEGES.skip(error.trim());
    }
    assert_eq!(
        good(&output).lines().filter(|line| line.trim_start().starts_with("0.")).count(),
        3,
        "{output:?}"
    );
}

#[test]
#[ignore = "thorough: it builds numa"]
fn the_unit_permits_the_system_calls_of_sampling() {
    let Some(permitted) = permitted() else { return };
    assert!(permitted.contains("perf_event_open") && !permitted.contains("ptrace"));
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o"]).arg(&trace).arg(numa()).args(["stat", "-i", "50ms", "-n", "3"]);
    let Ok(output) = strace.output() else {
        return numakit_skips::PACKAGERS.skip("strace is not installed");
    };
    good(&output);
    let text = fs::read_to_string(&trace).unwrap();
    let call = |line: &str| Some(line.split_whitespace().nth(1)?.split_once('(')?.0.to_owned());
    let made: BTreeSet<String> =
        text.lines().filter_map(call).filter(|call| !call.starts_with('<')).collect();
    assert!(made.len() > 20, "{made:?}");
    assert_eq!(made.difference(&permitted).collect::<Vec<_>>(), Vec::<&String>::new());
}
