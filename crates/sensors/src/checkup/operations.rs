//! Settings of the kernel that decide where programs and their memory are, and how the machine is reached when it hangs. Each is a
//! note that says what it costs, or that this is not known.

use super::CheckupItem;
use numakit_model::{CpuSet, Fix, Topology};
use numakit_sys::{SysRoot, proc};

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const HUGE_PAGE_EFFORT: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
const RECLAIM: &str = "/proc/sys/vm/zone_reclaim_mode";
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const CONTROLLERS: &str = "/sys/class/ipmi";

/// The kernel's default slack of timers, in ns.
const DEFAULT_SLACK: u64 = 50_000;
/// Beyond this distance the kernel places no process at its start; on AMD since Zen, beyond [`FAR_ON_ZEN`].
const FAR: u32 = 30;
const FAR_ON_ZEN: u32 = 32;

/// Looks at scheduler domains, isolated CPUs, slack of timers, transparent huge pages, reclaim, parameters of the kernel, and the
/// console. What the kernel does not tell has no item.
pub fn check(root: &SysRoot, topology: &Topology) -> Vec<CheckupItem> {
    let mut found = Vec::new();
    found.extend(scheduler_domains(root, topology));
    found.extend(isolated(root));
    found.extend(timer_slack(root));
    found.extend(huge_pages(root, topology));
    found.extend(reclaim(root, topology));
    found.extend(parameters(root));
    found.extend(console(root));
    found
}

/// What a file has, without the end of its line. Files of a capture may have anything: what would control a terminal is left out.
fn line(root: &SysRoot, path: &str) -> Option<String> {
    let is_shown = |c: &char| !c.is_control();
    root.text(path).ok().map(|text| text.trim().chars().filter(is_shown).collect())
}

/// Nodes between which the kernel balances nothing when a process or thread starts or wakes up.
fn scheduler_domains(root: &SysRoot, topology: &Topology) -> Option<CheckupItem> {
    const ABOUT: &str = "scheduler domains";
    let farthest = *topology.distances.as_ref()?.rows.iter().flatten().max()?;
    if topology.nodes.len() < 2 {
        return None;
    }
    let far = if is_zen(root) { FAR_ON_ZEN } else { FAR };
    if farthest <= far {
        let seen = format!(
            "the farthest nodes have distance {farthest}: up to {far} the kernel starts processes on any node"
        );
        return Some(CheckupItem::ok(ABOUT, seen));
    }
    let seen = format!(
        "some nodes have distance {farthest}: beyond {far} the kernel starts no process or thread on the other one, and wakes none \
         up there; only periodic balancing brings them over, after their memory was touched. What that costs depends on the program"
    );
    let fix =
        "start programs with 'numa run', which uses the nodes that it is given from the first thread on";
    Some(CheckupItem::note(ABOUT, seen, Fix::Step(fix.to_owned())))
}

/// Whether the processor is AMD's since Zen, or Hygon's, whose distance of two sockets is 32.
fn is_zen(root: &SysRoot) -> bool {
    let cpuinfo = root.text("/proc/cpuinfo").unwrap_or_default();
    let value = |name: &str| {
        let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim()).next()
    };
    let family = value("cpu family").and_then(|family| family.parse::<u32>().ok()).unwrap_or_default();
    match value("vendor_id") {
        Some("AuthenticAMD") => family >= 0x17,
        vendor => vendor == Some("HygonGenuine"),
    }
}

/// CPUs that are in no scheduler domain.
fn isolated(root: &SysRoot) -> Option<CheckupItem> {
    let cpus: CpuSet = line(root, ISOLATED)?.parse().ok()?;
    (!cpus.is_empty()).then(|| {
        let one = if cpus.len() == 1 { "is CPU" } else { "are CPUs" };
        CheckupItem::note(
            "isolated CPUs",
            format!(
                "in no scheduler domain {one} {cpus}: the kernel balances nothing there, and all threads of a program that is bound to \
                 several of them stay on one. What that costs: all of them but one are idle"
            ),
            Fix::Step(format!(
                "bind each thread to a CPU of its own: numa run --cpus {cpus} ./app; or boot without isolcpus="
            )),
        )
    })
}

/// How late sleeps end of what is started from here: children inherit it.
fn timer_slack(root: &SysRoot) -> Option<CheckupItem> {
    const ABOUT: &str = "timer slack";
    let slack = proc::timer_slack(root)?;
    let seen =
        format!("{slack} ns: sleeps and timeouts of programs that are started here end up to so much later");
    if slack <= DEFAULT_SLACK {
        return Some(CheckupItem::ok(ABOUT, seen));
    }
    let fix = format!("numa run --slack {DEFAULT_SLACK} ./app");
    Some(CheckupItem::note(
        ABOUT,
        format!("{seen}; the kernel's default is {DEFAULT_SLACK}"),
        Fix::command(fix),
    ))
}

/// The word in brackets, which is in use.
fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

/// Where one thread decides the node of 2 MiB, and where programs wait for huge pages.
fn huge_pages(root: &SysRoot, topology: &Topology) -> Option<CheckupItem> {
    const ABOUT: &str = "transparent huge pages";
    let (enabled, effort) = (line(root, HUGE_PAGES)?, line(root, HUGE_PAGE_EFFORT).unwrap_or_default());
    let (enabled, effort) = (chosen(&enabled)?, chosen(&effort).unwrap_or("unknown"));
    let command = |value: &str, file: &str| Fix::command(format!("echo {value} > {file}"));
    let (seen, fix) = match (enabled, effort) {
        ("never", _) => (
            "never: a program that reads at random misses the TLB more often, and 'numa run --thp on' changes nothing. What that \
             costs 'numa explain' says of a program (random-on-small-pages)",
            command("madvise", HUGE_PAGES),
        ),
        ("always", "always") => (
            "always, also where memory has to be moved first (defrag: always): a page fault may take milliseconds. What that \
             costs depends on free memory",
            command("madvise", HUGE_PAGE_EFFORT),
        ),
        ("always", _) if topology.nodes.len() > 1 => (
            "always: the first thread that touches a page decides the node of 2 MiB. What that costs 'numa explain' says of a \
             program (huge-pages-across-parts)",
            Fix::Step("for such a program: numa run --thp off ./app".to_owned()),
        ),
        _ => return Some(CheckupItem::ok(ABOUT, format!("{enabled}, defrag: {effort}"))),
    };
    Some(CheckupItem::note(ABOUT, seen, fix))
}

/// Where a full node frees its own cached files first, although other nodes have memory.
fn reclaim(root: &SysRoot, topology: &Topology) -> Option<CheckupItem> {
    const ABOUT: &str = "reclaim of memory";
    let mode = line(root, RECLAIM)?;
    if mode == "0" || topology.nodes.len() < 2 {
        let seen = format!("vm.zone_reclaim_mode is {mode}: a full node uses memory of others");
        return (mode == "0").then(|| CheckupItem::ok(ABOUT, seen));
    }
    let seen = format!(
        "vm.zone_reclaim_mode is {mode}: a node that is full drops files that it caches and waits for that, while other nodes have \
         free memory. Databases and file servers read from the disk again. What that costs is not known"
    );
    Some(CheckupItem::note(ABOUT, seen, Fix::command("sysctl vm.zone_reclaim_mode=0")))
}

/// Parameters by which the kernel does not show the nodes that the machine has.
fn parameters(root: &SysRoot) -> Option<CheckupItem> {
    let options = line(root, "/proc/cmdline")?;
    let hides = |word: &&str| *word == "numa=off" || *word == "acpi=off" || word.starts_with("numa=fake=");
    let word = options.split_ascii_whitespace().find(hides)?;
    let seen = match word.starts_with("numa=fake=") {
        true => format!(
            "{word}: the nodes are parts of memory that the kernel makes up; their distances are not those of the machine"
        ),
        false => format!(
            "{word}: the kernel knows one node, whatever the machine has, and nothing can be placed near its memory"
        ),
    };
    let fix = format!("boot without the kernel parameter {word}");
    Some(CheckupItem::note("kernel parameters", seen, Fix::Step(fix)))
}

/// Whether power and console are reached when the machine hangs.
fn console(root: &SysRoot) -> Option<CheckupItem> {
    const ABOUT: &str = "power and console";
    let controllers = root.list(CONTROLLERS).unwrap_or_default();
    let is_one = |name: &&String| name.strip_prefix("ipmi").is_some_and(|n| n.parse::<u32>().is_ok());
    let Some(controller) = controllers.iter().find(is_one) else {
        let fix =
            || Fix::OtherMachine("one with a controller of IPMI (modprobe ipmi_si shows it)".to_owned());
        let seen = format!("{CONTROLLERS} has no controller");
        // A capture has what sensors read.
        return root.is_host().then(|| CheckupItem::note(ABOUT, seen, fix()));
    };
    let options = line(root, "/proc/cmdline")?;
    let serial = options.split_ascii_whitespace().find_map(|word| word.strip_prefix("console=ttyS"));
    Some(match serial {
        Some(port) => CheckupItem::ok(ABOUT, format!("{controller}; the kernel writes to ttyS{port}")),
        None => CheckupItem::note(
            ABOUT,
            format!(
                "{controller}, but the kernel writes to no serial port: 'ipmitool sol activate' shows nothing of a panic"
            ),
            Fix::KernelParameter { parameter: "console=tty0 console=ttyS1,115200".to_owned(), option: None },
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkup::FindingState::{self, Note, Ok};
    use crate::testing::root;

    const SLACK: &str = "/proc/self/timerslack_ns";

    fn machine(distances: &str) -> Topology {
        numakit_topology::synthetic::parse(&format!("package:2 node:2 core:4 dist={distances}")).unwrap()
    }

    /// The only item about something, with these words.
    fn one(
        files: &[(&str, &str)],
        topology: &Topology,
        about: &str,
        state: FindingState,
        seen: &str,
        fix: &str,
    ) {
        let all = check(&root(files), topology);
        let items: Vec<&CheckupItem> = all.iter().filter(|item| item.about == about).collect();
        let [item] = items[..] else { panic!("{about}: {all:?}") };
        assert!(item.state == state && item.seen.contains(seen), "{item:?}");
        assert_eq!(item.fix.as_ref().map_or(String::new(), ToString::to_string), fix);
    }

    #[test]
    fn far_nodes_get_no_process_at_its_start() {
        const ABOUT: &str = "scheduler domains";
        let fix =
            "start programs with 'numa run', which uses the nodes that it is given from the first thread on";
        one(&[], &machine("10/12/20"), ABOUT, Ok, "distance 20", "");
        one(&[], &machine("10/12/32"), ABOUT, Note, "beyond 30 the kernel starts no process", fix);
        for (vendor, family, state) in [
            ("AuthenticAMD", 23, Ok),
            ("AuthenticAMD", 21, Note),
            ("HygonGenuine", 24, Ok),
            ("GenuineIntel", 25, Note),
        ] {
            let cpuinfo = format!("processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\n");
            let files = [("/proc/cpuinfo", cpuinfo.as_str())];
            one(&files, &machine("10/12/32"), ABOUT, state, "32", if state == Ok { "" } else { fix });
        }
        let single = numakit_topology::synthetic::parse("package:1 node:1 core:4").unwrap();
        assert_eq!(check(&root(&[]), &single), []);
    }

    #[test]
    fn settings_that_are_as_they_should_be() {
        let files = [
            (HUGE_PAGES, "always [madvise] never\n"),
            (HUGE_PAGE_EFFORT, "always defer defer+madvise [madvise] never\n"),
            (RECLAIM, "0\n"),
            (SLACK, "50000\n"),
            (ISOLATED, "\n"),
            ("/proc/cmdline", "root=/dev/sda1 quiet\n"),
        ];
        let all = check(&root(&files), &machine("10/12/20"));
        assert!(all.len() == 4 && all.iter().all(|item| item.state == Ok), "{all:?}");
    }

    #[test]
    fn each_setting_has_its_cost_and_its_command() {
        let machine = machine("10/12/20");
        let one = |path: &str, text: &str, about: &str, seen: &str, fix: &str| {
            one(&[(path, text)], &machine, about, Note, seen, fix);
        };
        one(SLACK, "2000000\n", "timer slack", "2000000 ns", "numa run --slack 50000 ./app");
        let never = format!("echo madvise > {HUGE_PAGES}");
        one(HUGE_PAGES, "always madvise [never]\n", "transparent huge pages", "misses the TLB", &never);
        let off = "for such a program: numa run --thp off ./app";
        one(HUGE_PAGES, "[always] madvise never\n", "transparent huge pages", "2 MiB", off);
        one(RECLAIM, "1\n", "reclaim of memory", "mode is 1", "sysctl vm.zone_reclaim_mode=0");
        let cpus =
            "bind each thread to a CPU of its own: numa run --cpus 4-7 ./app; or boot without isolcpus=";
        one(ISOLATED, "4-7\n", "isolated CPUs", "are CPUs 4-7", cpus);
        let boot = "boot without the kernel parameter numa=";
        let cmdline = "/proc/cmdline";
        one(cmdline, "quiet numa=off\n", "kernel parameters", "one node", &format!("{boot}off"));
        one(cmdline, "numa=fake=4 quiet\n", "kernel parameters", "makes up", &format!("{boot}fake=4"));
    }

    #[test]
    fn huge_pages_that_are_waited_for() {
        let files = [(HUGE_PAGES, "[always] madvise never\n"), (HUGE_PAGE_EFFORT, "[always] defer never\n")];
        let fix = format!("echo madvise > {HUGE_PAGE_EFFORT}");
        one(&files, &machine("10/12/20"), "transparent huge pages", Note, "milliseconds", &fix);
    }

    #[test]
    fn what_is_odd_is_left_out() {
        let files = [
            (HUGE_PAGES, "always madvise never\n"),
            (RECLAIM, "0\n"),
            (SLACK, "-1\n"),
            (ISOLATED, "4-\u{1b}[2J\n"),
            ("/proc/cmdline", "numa=fake=\u{1b}[2J2\n"),
        ];
        let all = check(&root(&files), &machine("10/12/20"));
        let names: Vec<&str> = all.iter().map(|item| item.about.as_str()).collect();
        assert!(!names.contains(&"timer slack") && !names.contains(&"isolated CPUs"), "{all:?}");
        assert!(!names.contains(&"transparent huge pages"), "{all:?}");
        assert!(all.iter().all(|item| !item.seen.contains('\u{1b}')), "{all:?}");
    }

    #[test]
    fn a_console_is_useful_if_the_kernel_writes_to_it() {
        let with = |options: &str| {
            let mut tree = numakit_sys::root::FileTree::new();
            tree.file("/sys/class/ipmi/ipmi0/dev", "240:0\n").file("/proc/cmdline", options.to_owned());
            let [item] = check(&SysRoot::of_tree(tree), &Topology::default()).try_into().unwrap();
            item
        };
        let heard = with("quiet console=ttyS1,115200\n");
        assert!(heard.state == Ok && heard.seen == "ipmi0; the kernel writes to ttyS1,115200", "{heard:?}");
        let mute = with("quiet console=tty0\n");
        assert!(mute.state == Note && mute.fix.unwrap().to_string().contains("console=ttyS1,115200"));
    }
}
