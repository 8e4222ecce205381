//! What a recording finds first of programs that a control group limits, and that the same programs in a wide group have no
//! such finding.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use serde_json::Value;
use std::fmt::Write;
use std::sync::LazyLock;
use std::time::Duration;

/// A group, a program in it, and the rules of which one stands first there; none in the wide group.
const LIMITED: [(&str, &str, &[&str]); 3] = [
    ("memory", "troubled grow 3", &["out-of-memory"]),
    ("cache", "reread", &["file-thrashing", "storage-faults", "memory-pressure"]),
    ("cpu", "troubled own 4", &["cpu-limit"]),
];

const GROUPS: &str = r#"
cd /sys/fs/cgroup
echo "+memory +cpu" > cgroup.subtree_control
mkdir memory cache cpu wide
echo 96M > memory/memory.max
echo 64M > cache/memory.max
echo "60000 100000" > cpu/cpu.max
echo 0 > /proc/sys/kernel/numa_balancing
cat > /bin/inside <<'END'
#!/bin/sh
echo $$ > /sys/fs/cgroup/$1/cgroup.procs
shift
exec "$@"
END
cat > /bin/reread <<'END'
#!/bin/sh
i=0
while [ $i -lt 12 ]; do dd if=/out/large of=/dev/null bs=256k 2>/dev/null; i=$((i + 1)); done
END
chmod +x /bin/inside /bin/reread
dd if=/dev/zero of=/out/large bs=1M count=96 2>/dev/null
sync
"#;

/// Which limit the program has is asked when the recording begins: as in a container, the recorder is in its group.
fn recorded(name: &str, group: &str, command: &str) -> String {
    format!(
        "echo 3 > /proc/sys/vm/drop_caches
        inside {group} numa record -i 100ms -o {name}.arrows -- {command} >{name} 2>&1
        numa show --json {name}.arrows"
    )
}

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let mut guest = Guest::new(Shape::named("four")?)
        .program(&programs::numa()?)
        .program(&programs::compiled("troubled")?.unwrap())
        .timeout(Duration::from_secs(300))
        .step("groups", &["sh", "-c", GROUPS]);
    for (name, command, _) in LIMITED {
        guest = guest.step(name, &["sh", "-c", &recorded(name, name, command)]);
        let wide = format!("wide-{name}");
        guest = guest.step(&wide, &["sh", "-c", &recorded(&wide, "wide", command)]);
    }
    guest.step("removed", &["sh", "-c", "rm /out/large"]).boot()
});

/// The rules of the problems of a recording, the most important first, and its verdict.
fn rules(boot: &Boot, name: &str) -> (Vec<String>, String) {
    let report: Value = serde_json::from_str(&boot[name].succeeded()).unwrap();
    let problems = report["findings"]["problems"].as_array().unwrap();
    let rules = problems.iter().map(|problem| problem["rule"].as_str().unwrap().to_owned()).collect();
    (rules, report["findings"]["headline"]["verdict"].as_str().unwrap().to_owned())
}

#[test]
#[ignore = "thorough: rates in control groups, 1 minute"]
fn limits_of_control_groups_stand_first_and_wide_groups_have_none() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    boot["groups"].succeeded();
    let mut wrong = String::new();
    for (name, _, expected) in LIMITED {
        let ((found, verdict), (wide, quiet)) = (rules(boot, name), rules(boot, &format!("wide-{name}")));
        println!(
            "{name:<8} {:<18} {verdict}\n         {:<18} {quiet}",
            found.first().map_or("-", |r| r),
            "wide:"
        );
        let is_first = found.first().is_some_and(|rule| expected.contains(&rule.as_str()));
        if !is_first || wide.iter().any(|rule| expected.contains(&rule.as_str())) {
            let _ = writeln!(wrong, "{name}: {found:?}, in a wide group {wide:?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
