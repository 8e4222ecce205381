//! Machines that are not here, by their values: which rule finds each trouble first, and that its control has none. The table
//! of both is `scripted/first-findings.txt`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "scripted/machine.rs"]
mod machine;

use machine::Machine;
use numakit_findings::finding::Findings;
use std::fmt::Write;

/// A trouble by the values that make it, and the values in which it is not.
struct Script {
    name: &'static str,
    /// The rule that must stand first.
    rule: &'static str,
    /// Lines of `SERIES VALUE` or `SERIES FROM..TO`, in the unit of the series, counters per second.
    trouble: &'static str,
    control: &'static str,
}

const SCRIPTS: &[Script] = &[
    Script {
        name: "memory bandwidth of node 1 at its peak",
        rule: "memory-bandwidth",
        trouble: "uncore.dram_read@node1 34e9\nuncore.dram_write@node1 4e9\nuncore.dram_capacity@node1 40e9",
        control: "uncore.dram_read@node1 14e9\nuncore.dram_write@node1 4e9\nuncore.dram_capacity@node1 40e9",
    },
    Script {
        name: "reads of remote memory",
        rule: "remote-reads",
        trouble: "uncore.dram_read_local@node1 1e9\nuncore.dram_read_remote@node1 3e9",
        control: "uncore.dram_read_local@node1 3e9\nuncore.dram_read_remote@node1 1e8",
    },
    Script {
        name: "a link at its peak",
        rule: "saturated-link",
        trouble: "uncore.link_busy_out@link0.1 85e9\nuncore.link_capacity_out@link0.1 100e9",
        control: "uncore.link_busy_out@link0.1 15e9\nuncore.link_capacity_out@link0.1 100e9",
    },
    Script {
        name: "requests wait on an interconnect card",
        rule: "saturated-card",
        trouble: "numaconnect2.n2WaitCycReqSiuRmpe@card0 160e6\nnumaconnect2.n2Cyc@card0 200e6",
        control: "numaconnect2.n2WaitCycReqSiuRmpe@card0 4e6\nnumaconnect2.n2Cyc@card0 200e6",
    },
    Script {
        name: "lines leave a card's cache before they are used again",
        rule: "card-cache-thrashing",
        trouble: "numaconnect2.n2CachelinesRecv@card0 2e6\nnumaconnect2.n2CacheRolloutRmpe@card0 1.8e6\n\
                  numaconnect2.n2CacheReadHitRmpe@card0 2e5\nnumaconnect2.n2CacheStoreHitRmpe@card0 1e4",
        control: "numaconnect2.n2CachelinesRecv@card0 2e5\nnumaconnect2.n2CacheRolloutRmpe@card0 1e3\n\
                  numaconnect2.n2CacheReadHitRmpe@card0 2e6\nnumaconnect2.n2CacheStoreHitRmpe@card0 1e5",
    },
    Script {
        name: "far accesses by counters of cores",
        rule: "remote-reads",
        trouble: "perf.load_local_dram@node0 1e6\nperf.load_remote_dram@node0 3e6\n\
                  resctrl.mbm_total_bytes@node0 4e9\nresctrl.mbm_local_bytes@node0 1e9",
        control: "perf.load_local_dram@node0 3e6\nperf.load_remote_dram@node0 1e5",
    },
    Script {
        name: "far traffic by resctrl",
        rule: "remote-traffic",
        trouble: "resctrl.mbm_total_bytes@node0 4e9\nresctrl.mbm_local_bytes@node0 1e9",
        control: "resctrl.mbm_total_bytes@node0 4e9\nresctrl.mbm_local_bytes@node0 3.9e9",
    },
    Script {
        name: "hint faults at far pages",
        rule: "remote-hint-faults",
        trouble: "vmstat.numa_hint_faults 3000\nvmstat.numa_hint_faults_local 600\nvmstat.pgmigrate_success 0",
        control: "vmstat.numa_hint_faults 3000\nvmstat.numa_hint_faults_local 2900\nvmstat.pgmigrate_success 0",
    },
    Script {
        name: "pages that are moved back and forth",
        rule: "pages-migrate",
        trouble: "vmstat.numa_hint_faults 90000\nvmstat.numa_hint_faults_local 80000\nvmstat.pgmigrate_success 60000",
        control: "vmstat.numa_hint_faults 900\nvmstat.numa_hint_faults_local 800\nvmstat.pgmigrate_success 600",
    },
    Script {
        name: "memory that is allocated from the other node",
        rule: "remote-allocation",
        trouble: "node.local_node@node1 1000\nnode.other_node@node1 9000",
        control: "node.local_node@node1 9000\nnode.other_node@node1 100",
    },
    Script {
        name: "a node is full",
        rule: "full-node",
        trouble: "node.numa_hit@node0 5000\nnode.numa_foreign@node0 4000\nnode.MemFree@node0 2e5",
        control: "node.numa_hit@node0 9000\nnode.numa_foreign@node0 10\nnode.MemFree@node0 9e6",
    },
    Script {
        name: "memory on one node, threads on both",
        rule: "memory-on-one-node",
        trouble: "task.resident@node0 4e9\ntask.resident@node1 1e7\ntask.cpu_time@node0 1e9\ntask.cpu_time@node1 1e9",
        control: "task.resident@node0 2e9\ntask.resident@node1 2e9\ntask.cpu_time@node0 1e9\ntask.cpu_time@node1 1e9",
    },
    Script {
        name: "memory on one node, threads on the other, and the same in a program that hardly runs",
        rule: "memory-on-one-node",
        trouble: "task.resident@node0 4e9\ntask.resident@node1 1e7\ntask.cpu_time@node0 0\ntask.cpu_time@node1 1e9",
        control: "task.resident@node0 4e9\ntask.resident@node1 1e7\ntask.cpu_time@node0 0\ntask.cpu_time@node1 1e7",
    },
    Script {
        name: "memory on one node, threads there",
        rule: "memory-on-one-node",
        trouble: "task.resident@node0 4e9\ntask.resident@node1 1e7\ntask.cpu_time@node0 5e8\ntask.cpu_time@node1 5e8",
        control: "task.resident@node0 4e9\ntask.resident@node1 1e7\ntask.cpu_time@node0 1e9\ntask.cpu_time@node1 0",
    },
    Script {
        name: "threads wander between nodes",
        rule: "threads-wander",
        trouble: "task.threads_away 6\ntask.threads@node0 4\ntask.threads@node1 4\ntask.migrations 80\ntask.cpu 200",
        control: "task.threads_away 0\ntask.threads@node0 4\ntask.threads@node1 4\ntask.migrations 80\ntask.cpu 200",
    },
    Script {
        name: "threads wait for memory of node 0",
        rule: "remote-use",
        trouble: "access.near@node0 150e7\naccess.far@node0 5e7\naccess.near@node1 10e7\naccess.far@node1 150e7\n\
                  access.clusters@node1 160\naccess.clusters@node0 155\ntask.cpu 200",
        control: "access.near@node0 20e7\naccess.far@node0 1e7\naccess.near@node1 20e7\naccess.far@node1 1e7\n\
                  access.clusters@node1 21\naccess.clusters@node0 21\naccess.computing@node0 300e7\ntask.cpu 200",
    },
    Script {
        name: "memory of node 0 that threads wait for, and the same in a program that computes",
        rule: "remote-use",
        trouble: "access.near@node1 1e7\naccess.far@node1 90e7\naccess.clusters@node1 200\n\
                  access.unknown@node1 1e6\naccess.computing@node1 90e7\ntask.cpu 200",
        control: "access.near@node1 1e6\naccess.far@node1 6e7\naccess.clusters@node1 200\n\
                  access.unknown@node1 1e6\naccess.computing@node1 180e7\ntask.cpu 200",
    },
    Script {
        name: "page tables on node 0 of a program on node 1",
        rule: "remote-page-tables",
        trouble: "node.PageTables@node0 1e4..9e5\nnode.PageTables@node1 1e4\n\
                  task.cpu_time@node0 1e7\ntask.cpu_time@node1 2e9",
        control: "node.PageTables@node0 1e4\nnode.PageTables@node1 1e4..9e5\n\
                  task.cpu_time@node0 1e7\ntask.cpu_time@node1 2e9",
    },
    Script {
        name: "the hypervisor takes CPU time",
        rule: "stolen-time",
        trouble: "cpu.steal@cpu0 40\ncpu.steal@cpu1 40",
        control: "cpu.steal@cpu0 1\ncpu.steal@cpu1 1",
    },
    Script {
        name: "a CPU takes all interrupts",
        rule: "interrupts-on-one-cpu",
        trouble: "cpu.irq@cpu2 10\ncpu.softirq@cpu2 70",
        control: "cpu.irq@cpu2 1\ncpu.softirq@cpu2 5",
    },
    Script {
        name: "more threads of the program than CPUs",
        rule: "too-many-threads",
        trouble: "cpu.procs_running 33\ntask.threads@node0 32\ntask.cpu 380",
        control: "cpu.procs_running 4\ntask.threads@node0 3\ntask.cpu 200",
    },
    Script {
        name: "the CPU limit of a control group",
        rule: "cpu-limit",
        trouble: "task.throttled 700000\ntask.cpu 100",
        control: "task.throttled 100\ntask.cpu 100",
    },
    Script {
        name: "a process is killed since memory ran out",
        rule: "out-of-memory",
        trouble: "vmstat.oom_kill 0.1",
        control: "vmstat.oom_kill 0",
    },
    Script {
        name: "swapping",
        rule: "swapping",
        trouble: "vmstat.pswpin 4000\nvmstat.pswpout 4000\npressure.memory_some 300000",
        control: "vmstat.pswpin 1\nvmstat.pswpout 1\npressure.memory_some 100",
    },
    Script {
        name: "files that are evicted and read again",
        rule: "file-thrashing",
        trouble: "vmstat.workingset_refault_file 20000\npressure.memory_some 200000",
        control: "vmstat.workingset_refault_file 20\npressure.memory_some 200",
    },
    Script {
        name: "allocations wait for compaction",
        rule: "compaction",
        trouble: "vmstat.compact_stall 500\npressure.memory_some 200000",
        control: "vmstat.compact_stall 1\npressure.memory_some 200",
    },
    Script {
        name: "threads wait for reclaim",
        rule: "memory-pressure",
        trouble: "pressure.memory_some 150000",
        control: "pressure.memory_some 1500",
    },
    Script {
        name: "page faults wait for storage",
        rule: "storage-faults",
        trouble: "task.major_faults 900\nvmstat.pgmajfault 900\npressure.io_some 500000\ntask.cpu 10",
        control: "task.major_faults 1\nvmstat.pgmajfault 1\npressure.io_some 500\ntask.cpu 10",
    },
    Script {
        name: "huge pages are refused",
        rule: "huge-pages-refused",
        trouble: "vmstat.thp_fault_alloc 5\nvmstat.thp_fault_fallback 95",
        control: "vmstat.thp_fault_alloc 95\nvmstat.thp_fault_fallback 1",
    },
    Script {
        name: "small faults",
        rule: "page-faults",
        trouble: "task.minor_faults 300000\ntask.cpu 100\nself.fault_cost 1000",
        control: "task.minor_faults 3000\ntask.cpu 100\nself.fault_cost 1000",
    },
    Script {
        name: "huge faults",
        rule: "huge-page-faults",
        trouble: "vmstat.thp_fault_alloc 2000\nself.huge_fault_cost 200000\ncpu.system@cpu0 45\ntask.cpu 150",
        control: "vmstat.thp_fault_alloc 20\nself.huge_fault_cost 200000\ncpu.system@cpu0 45\ntask.cpu 150",
    },
    Script {
        name: "a leak",
        rule: "growth",
        trouble: "task.resident@node0 1e8..9e8\ntask.cpu 100",
        control: "task.resident@node0 9e8\ntask.cpu 100",
    },
    Script {
        name: "context switches",
        rule: "context-switches",
        trouble: "cpu.context_switches 400000\ntask.voluntary_switches 200000\ntask.involuntary_switches 0\ntask.cpu 200",
        control: "cpu.context_switches 4000\ntask.voluntary_switches 2000\ntask.involuntary_switches 0\ntask.cpu 200",
    },
    Script {
        name: "processes are started all the time",
        rule: "process-starts",
        trouble: "cpu.forks 3000\ntask.cpu 200",
        control: "cpu.forks 3\ntask.cpu 200",
    },
    Script {
        name: "a program waits for memory",
        rule: "waits-for-memory",
        trouble: "access.near@node0 180e7\naccess.unknown@node0 5e7\naccess.computing@node0 10e7\naccess.clusters@node0 180\ntask.cpu 100",
        control: "access.near@node0 18e7\naccess.unknown@node0 5e7\naccess.computing@node0 170e7\naccess.clusters@node0 18\ntask.cpu 100",
    },
    Script {
        name: "threads fight over a line",
        rule: "contended-lines",
        trouble: "access.near@node0 1e7\naccess.contended@node0 150e7\naccess.computing@node0 40e7\ntask.cpu 100",
        control: "access.near@node0 1e7\naccess.contended@node0 0\naccess.computing@node0 190e7\ntask.cpu 100",
    },
];

fn found(values: &str) -> Findings {
    let mut machine = Machine::idle();
    machine.set(values);
    machine.findings()
}

fn first(findings: &Findings) -> &str {
    findings.problems.first().map_or("-", |finding| finding.rule)
}

#[test]
fn each_trouble_stands_first_and_its_control_has_none() {
    let mut table = format!("{:<24} {:<24} {:<10} TROUBLE\n", "EXPECTED", "FIRST", "CONTROL");
    let mut wrong = String::new();
    for script in SCRIPTS {
        let (trouble, control) = (found(script.trouble), found(script.control));
        let Script { name, rule, .. } = script;
        let _ = writeln!(table, "{rule:<24} {:<24} {:<10} {name}", first(&trouble), first(&control));
        if first(&trouble) != *rule || !control.problems.is_empty() {
            let _ = writeln!(wrong, "{name}: {:#?}\ncontrol: {:#?}", trouble.problems, control.problems);
        }
    }
    print!("{table}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripted/first-findings.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), table, "UPDATE=1 writes {path}");
}

#[test]
fn every_rule_of_a_problem_has_a_script() {
    let guide = numakit_findings::findings_guide();
    let rows = guide.lines().skip(2).filter(|row| !row.contains("(no problem)"));
    let rules: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).map(str::trim).collect();
    assert!(rules.len() > 30, "{guide}");
    // Where time cannot be told: the guest's programs have it.
    let elsewhere = ["remote-pages"];
    for rule in rules.iter().filter(|rule| !elsewhere.contains(rule)) {
        assert!(SCRIPTS.iter().any(|script| script.rule == *rule), "no script for {rule}");
    }
}

/// The first remark.
fn remark(values: &str) -> Option<String> {
    found(values).remarks.into_iter().next().map(|remark| remark.says)
}

#[test]
fn cards_tell_whether_their_cache_is_used_and_what_the_recorder_adds() {
    let used = "numaconnect2.n2CachelinesRecv@card0 2e5\nnumaconnect2.n2CacheRolloutRmpe@card0 1e3\n\
                numaconnect2.n2CacheReadHitRmpe@card0 2e6\nnumaconnect2.n2CacheStoreHitRmpe@card0 1e5";
    let says = remark(used).unwrap();
    assert!(says.starts_with("The cache of card 0 is used well: it serves 91.3 %"), "{says}");
    // One series of the card, ten times a second.
    let says = remark("numaconnect2.n2RdSizedRecv@card0 40").unwrap();
    assert!(says.starts_with("Up to 25.0 % of the small reads that card 0 receives"), "{says}");
    assert_eq!(remark("numaconnect2.n2RdSizedRecv@card0 4000"), None);
}

#[test]
fn too_few_samples_of_a_busy_program_tell_nothing() {
    let verdict = |values: &str| found(values).headline.verdict;
    let pages = |near: f64, far: f64| {
        format!("task.cpu 200\naccess.pages_near@node0 {near}\naccess.pages_far@node0 {far}")
    };
    // Ten seconds: 64 pages, and enough.
    let few = found(&pages(1.4, 5.2));
    assert_eq!(
        few.headline.verdict,
        "Cannot tell yet whether memory is remote: 64 pages in use were sampled, and it takes 100"
    );
    assert!(few.problems.is_empty() && few.untold.iter().any(|untold| untold.what == "use of remote memory"));
    assert!(verdict(&pages(30.0, 0.0)).starts_with("Nothing is wrong"), "{}", verdict(&pages(30.0, 0.0)));
    // Its CPU time was read once only.
    let short = pages(1.4, 5.2).replace("task.cpu 200\n", "");
    assert!(verdict(&short).starts_with("Cannot tell yet"), "{}", verdict(&short));
    // One that sleeps, and one that hardly uses memory.
    let sleeps = pages(1.4, 0.2).replace("task.cpu 200", "task.cpu 1");
    assert!(verdict(&sleeps).starts_with("Nothing is wrong"), "{}", verdict(&sleeps));
    let computes = "task.cpu 200\naccess.near@node0 1e7\naccess.computing@node0 190e7\naccess.unknown@node0 0\n\
                    access.clusters@node0 1";
    assert!(!verdict(computes).starts_with("Cannot tell"), "{}", verdict(computes));
    // Where memory is allocated says nothing of it.
    let allocates = pages(1.4, 5.2) + "\ntask.resident@node0 4e9\ntask.resident@node1 1e6";
    assert!(verdict(&allocates).starts_with("Cannot tell yet"), "{}", verdict(&allocates));
}

#[test]
fn threads_of_others_are_not_a_choice_of_the_program() {
    let remedy = |values: &str| {
        let found = found(values).problems.into_iter().find(|found| found.rule == "too-many-threads");
        found.map(|found| found.remedy).unwrap()
    };
    let own = remedy("cpu.procs_running 33\ntask.threads@node0 32\ntask.cpu 380");
    assert!(own.words.starts_with("Start as many threads as there are CPUs"), "{own:?}");
    for others in ["cpu.procs_running 33", "cpu.procs_running 33\ntask.threads@node0 2\ntask.cpu 50"] {
        let others = remedy(others);
        assert!(others.words.starts_with("See which programs use the CPUs"), "{others:?}");
        assert_eq!(others.commands, ["numa top"]);
    }
}

/// The page faults of a program are among those of the machine: what others cannot have had is its own.
#[test]
fn a_storm_of_huge_faults_belongs_to_the_program_that_has_it() {
    let verdict = |own: f64| {
        let machine = "vmstat.thp_fault_alloc 4000\nvmstat.pgfault 4500\nvmstat.pgmajfault 0\nself.huge_fault_cost 200000";
        // The program runs a third of the busy time.
        let others = "cpu.system@cpu0 80\ncpu.user@cpu1 100\ncpu.user@cpu2 100";
        found(&format!("{machine}\n{others}\ntask.cpu 90\ntask.minor_faults {own}")).headline.verdict
    };
    assert!(verdict(4400.0).starts_with("Clearing huge pages takes 86.7 % of its"), "{}", verdict(4400.0));
    assert!(verdict(100.0).starts_with("Nothing is wrong with the program"), "{}", verdict(100.0));
}

#[test]
fn a_machine_that_is_idle_has_no_finding() {
    assert_eq!(first(&Machine::idle().findings()), "-");
}
