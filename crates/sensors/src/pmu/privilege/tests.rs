use super::*;
use crate::testing::root;
use numakit_model::Topology;
use numakit_testing::counters::Script;
use std::fmt::Write;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/pmu/privilege/verdicts.txt");
const NEEDS: [Need; 3] = [Need::Kernel, Need::WholeCpu, Need::Tracepoint];
const ALL: &str = "000001ffffffffff";
const PERFMON: &str = "0000004000000000";
const ADMIN: &str = "0000000000200000";
const NONE: &str = "0000000000000000";

fn machine(level: &str, capabilities: &str) -> SysRoot {
    let root = root(&[
        (PARANOID, level),
        (
            "/proc/self/status",
            &format!("Name:\tnuma\nCapPrm:\t{ALL}\nCapEff:\t{capabilities}\nCapBnd:\t{ALL}\n"),
        ),
        ("/proc/sys/kernel/cap_last_cap", "40\n"),
    ]);
    root.change(|tree| _ = tree.symlink("/proc/self/exe", "/usr/bin/numa"));
    root
}

#[test]
fn every_level_has_its_verdict_and_its_fix() {
    let mut text = String::new();
    for level in -1..=4 {
        for (name, capabilities) in [("with", PERFMON), ("without", NONE)] {
            _ = writeln!(text, "perf_event_paranoid {level}, {name} CAP_PERFMON");
            let privilege = Privilege::read(&machine(&format!("{level}\n"), capabilities));
            for need in NEEDS {
                let verdict =
                    privilege.permits(need).map_or_else(|why| why.to_string(), |()| "yes".to_owned());
                let verdict = verdict.trim_start_matches(need.name()).trim_start_matches(": ");
                _ = writeln!(text, "  {}: {verdict}", need.name());
            }
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(GOLDEN, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(GOLDEN).unwrap());
}

#[test]
fn an_error_of_the_kernel_has_the_same_message() {
    let events = [PerfEvent::new(PerfEvent::SOFTWARE, 2), PerfEvent::new(PerfEvent::TRACEPOINT, 300)];
    for level in -1..=4 {
        for (capabilities, capable) in [(PERFMON, true), (NONE, false)] {
            let script = Script::new();
            script.paranoid(level, capable);
            let root = machine(&level.to_string(), capabilities).with_counters(Arc::new(script));
            let topology = Topology::default();
            let scene = Scene::new(&root, &topology);
            for event in &events {
                let privilege = Privilege::read(&root);
                let verdict = privilege.permits(Need::of(event));
                assert_eq!(try_event(&scene, &privilege, 0, event), verdict, "{level} {capable} {event:?}");
            }
        }
    }
}

#[test]
fn cap_sys_admin_suffices_and_old_kernels_need_it() {
    assert_eq!(Privilege::read(&machine("4", ADMIN)).permits(Need::Tracepoint), Ok(()));
    let old = machine("3", NONE);
    old.change(|tree| _ = tree.file("/proc/sys/kernel/cap_last_cap", "37\n"));
    let why = Privilege::read(&old).permits(Need::WholeCpu).unwrap_err();
    assert!(why.seen.ends_with("lacks CAP_SYS_ADMIN"), "{why}");
    assert!(why.fix.is_command("sudo setcap cap_sys_admin=ep /usr/bin/numa"), "{why}");
    let none = Privilege::read(&root(&[])).permits(Need::Kernel).unwrap_err();
    assert_eq!(none.fix, Fix::BuildOption("CONFIG_PERF_EVENTS".to_owned()));
}

#[test]
fn every_error_has_a_sentence_and_a_fix() {
    let privilege = Privilege::read(&machine("2", ALL));
    let event = PerfEvent::new(17, 0x304);
    let words = |errno: Errno| privilege.explain(&event, 5, &errno.error()).to_string();
    for (errno, seen, fix) in [
        (Errno::Denied, "is refused", "--cap-add PERFMON"),
        (
            Errno::NoSuchPmu,
            "the kernel has no PMU of type 17 with the event 0x304",
            "load the kernel's module",
        ),
        (Errno::NoSupport, "PMU of type 17 cannot count the event 0x304", "run on a machine"),
        (Errno::Invalid, "refuses the event 0x304 on CPU 5 as invalid", "folder 'format'"),
        (Errno::NoDevice, "CPU 5 is offline", "echo 1 | sudo tee /sys/devices/system/cpu/cpu5/online"),
        (Errno::OpenFiles, "its limit of open files", "ulimit -n"),
        (Errno::Busy, "is used by something else", "kernel.nmi_watchdog=0"),
        (Errno::NoCall, "no perf_event_open", "boot a kernel"),
        (Errno::Other, "perf_event_open of the event 0x304 of PMU of type 17: ", "run it again"),
    ] {
        let text = words(errno);
        assert!(text.contains(seen) && text.contains(fix), "{errno:?}: {text}");
    }
    let other = privilege.explain(&event, 5, &io::Error::other("odd"));
    assert_eq!(other.seen, "odd");
}

/// Debian's kernel refuses CAP_PERFMON at its own level 3, and permits it at 2: seen in a guest.
#[test]
fn a_level_of_distributions_is_named_where_the_kernel_refuses_nevertheless() {
    for (level, fix) in [("3\n", "sudo sysctl kernel.perf_event_paranoid=2"), ("2\n", "run as root")] {
        let privilege = Privilege::read(&machine(level, PERFMON));
        assert!(privilege.permits(Need::WholeCpu).is_ok());
        assert_eq!(privilege.beyond_the_rules().to_string(), fix);
    }
}
