//! The rank files of the best-practice guide on the machine that it was written for: processors
//! whose cores share a unit in pairs, read from its files.
#![allow(clippy::unwrap_used)]

use numakit_model::{CpuSet, Topology};
use numakit_placement::launchers::{LauncherOptions, emit, lines};
use numakit_placement::{CorePolicy, Cores, Level, PlacementRequest, Taken, plan};
use numakit_sys::SysRoot;
use numakit_testing::sysfs;
use numakit_topology::{json, read, synthetic};
use std::process::Command;

/// As it is read from the files of such a machine.
fn through_files(t: &Topology) -> Topology {
    read(&SysRoot::of_tree(sysfs::tree(t))).unwrap()
}

/// Four of the guide's processors, as hwloc lists a machine of four.
fn four() -> Topology {
    through_files(&json::parse(numakit_captures::OPTERON_6276).unwrap())
}

/// The guide's 8 servers with two processors each.
fn sixteen() -> Topology {
    let description = "board:8 package:2 node:2 l3:1(size=6M) unit:4 core:2(l1=16K) dist=10/16/16/100";
    through_files(&synthetic::parse(description).unwrap())
}

fn request(processes: u32, threads: Option<u32>, stride: u32) -> PlacementRequest {
    PlacementRequest { processes, threads, stride, ..PlacementRequest::default() }
}

fn cpus(t: &Topology, request: &PlacementRequest) -> Vec<u32> {
    plan(t, request, &Taken::default()).unwrap().steps.iter().map(|step| step.cpu).collect()
}

fn rank_file(t: &Topology, name: &str, request: &PlacementRequest, host: &str) -> Vec<String> {
    let plan = plan(t, request, &Taken::default()).unwrap();
    assert_eq!(plan.warnings, Vec::<String>::new());
    let options = LauncherOptions { host: Some(host.to_owned()), ..LauncherOptions::default() };
    lines(name, t, &plan, &options).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn rank_files_of_the_guide_come_out_for_its_machine() {
    let t = sixteen();
    assert_eq!((t.cores.len(), t.units.len(), t.packages.len()), (256, 128, 16));
    let file = rank_file(&t, "openmpi1", &request(128, None, 2), "numademo");
    let expected = (0..128).map(|rank| format!("rank {rank}=numademo slot={}:{}", rank / 8, rank % 8 * 2));
    assert_eq!(file, expected.collect::<Vec<_>>());
    let file = rank_file(&t, "openmpi1", &request(64, None, 4), "numademo");
    let expected = (0..64).map(|rank| format!("rank {rank}=numademo slot={}:{}", rank / 4, rank % 4 * 4));
    assert_eq!(file, expected.collect::<Vec<_>>());
    let file = rank_file(&t, "openmpi1", &request(16, Some(2), 2), "localhost");
    assert_eq!(file[0], "rank 0=localhost slot=0:0,0:2");
    assert_eq!(file[3], "rank 3=localhost slot=0:12,0:14");
    let file = rank_file(&t, "openmpi1", &request(16, Some(8), 2), "h8qgl");
    let slots = |rank| (0..8).map(|core| format!("{rank}:{}", core * 2)).collect::<Vec<_>>().join(",");
    let expected = (0..16).map(|rank| format!("rank {rank}=h8qgl slot={}", slots(rank)));
    assert_eq!(file, expected.collect::<Vec<_>>());
}

#[test]
fn rank_files_of_the_guide_come_out_for_four_of_its_processors() {
    let t = four();
    assert_eq!((t.cores.len(), t.units.len()), (64, 32));
    let file = rank_file(&t, "openmpi1", &request(32, None, 2), "numademo");
    let expected = (0..32).map(|rank| format!("rank {rank}=numademo slot={}:{}", rank / 8, rank % 8 * 2));
    assert_eq!(file, expected.collect::<Vec<_>>());
    let file = rank_file(&t, "openmpi1", &request(16, None, 4), "numademo");
    let expected = (0..16).map(|rank| format!("rank {rank}=numademo slot={}:{}", rank / 4, rank % 4 * 4));
    assert_eq!(file, expected.collect::<Vec<_>>());
}

#[test]
fn a_plan_and_its_rank_file_mean_the_same_cpus() {
    let t = four();
    for (processes, stride, first) in [(4, 1, [0, 1, 2, 3]), (4, 2, [0, 2, 4, 6]), (4, 4, [0, 4, 8, 12])] {
        let request = request(processes, None, stride);
        let planned = plan(&t, &request, &Taken::default()).unwrap();
        let cpus: Vec<u32> = planned.steps.iter().map(|step| step.cpu).collect();
        assert_eq!(cpus, first);
        let file = lines("openmpi4", &t, &planned, &LauncherOptions::default()).unwrap();
        // Core numbers are CPU numbers on this machine.
        let expected: String =
            cpus.iter().enumerate().map(|(rank, cpu)| format!("rank {rank}=HOST slot={cpu}\n")).collect();
        assert_eq!(file, expected);
    }
}

#[test]
fn hwloc_takes_the_slots_of_a_rank_file_for_the_planned_cpus() {
    let folder = std::env::temp_dir().join(format!("numakit-slots-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let t = four();
    sysfs::write(&sysfs::tree(&t), &folder).unwrap();
    std::fs::write(folder.join("proc/hwloc-nofile-info"), "OSName: Linux\nArchitecture: x86_64\n").unwrap();
    let of_cpu = |cpu: u32| format!("processor\t: {cpu}\nvendor_id\t: AuthenticAMD\ncpu family\t: 21\n\n");
    std::fs::write(folder.join("proc/cpuinfo"), (0..64).map(of_cpu).collect::<String>()).unwrap();
    let planned = plan(&t, &request(8, Some(2), 2), &Taken::default()).unwrap();
    let file = lines("openmpi4", &t, &planned, &LauncherOptions::default()).unwrap();
    for (line, steps) in file.lines().zip(planned.processes()) {
        let slots = line.rsplit_once("slot=").unwrap().1;
        let cores: Vec<String> =
            CpuSet::parse_list(slots).unwrap().iter().map(|core| format!("core:{core}")).collect();
        let output = Command::new("hwloc-calc")
            .env("HWLOC_FSROOT", &folder)
            .env("HWLOC_COMPONENTS", "linux,stop")
            .env("HWLOC_THISSYSTEM", "0")
            .args(["--physical-output", "--intersect", "pu"])
            .args(&cores)
            .output();
        let Ok(output) = output else {
            return numakit_skips::TOOLS.skip("hwloc-calc is not installed (Debian package hwloc)");
        };
        let theirs = String::from_utf8(output.stdout).unwrap();
        let ours: Vec<String> = steps.iter().map(|step| step.cpu.to_string()).collect();
        assert_eq!(theirs.trim(), ours.join(","), "{line}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn sharing_units_while_others_are_free_is_a_warning() {
    let t = four();
    let warnings = |request: PlacementRequest| plan(&t, &request, &Taken::default()).unwrap().warnings;
    let cores = |count| PlacementRequest { cores: Some(Cores::Count(count)), ..PlacementRequest::default() };
    assert_eq!(
        warnings(cores(8)),
        ["4 units of cores have several threads while 28 others are free: --stride 2 gives each thread \
             its own unit"]
    );
    assert_eq!(
        warnings(cores(40)),
        ["20 units of cores have several threads while 12 others are free: --policy spread:unit uses these \
             first"]
    );
    for quiet in [
        PlacementRequest { stride: 2, ..cores(8) },
        PlacementRequest { policy: CorePolicy::Spread(Level::Unit), ..cores(40) },
        cores(64),
        cores(1),
    ] {
        assert_eq!(warnings(quiet.clone()), Vec::<String>::new(), "{quiet:?}");
    }
    assert_eq!(
        cpus(&t, &PlacementRequest { policy: CorePolicy::Spread(Level::Unit), ..cores(8) }),
        [0, 2, 4, 6, 8, 10, 12, 14]
    );
    assert_eq!(cpus(&t, &PlacementRequest { policy: CorePolicy::Scatter, ..cores(8) }).len(), 8);
}

#[test]
fn the_application_stands_in_the_lines() {
    let t = four();
    let planned = plan(&t, &request(2, None, 2), &Taken::default()).unwrap();
    let command = ["./my app", "-x", "it's"].map(str::to_owned).to_vec();
    let options = LauncherOptions { host: Some("here".into()), command };
    for launcher in numakit_placement::launchers::LAUNCHERS {
        let lines = emit(launcher.name, &t, &planned, &options).unwrap();
        let all = format!("{}{}", lines.text, lines.hints.join("\n"));
        let quoted = match launcher.name {
            "kubernetes" => r#"command: ["./my app", "-x", "it's"]"#,
            _ => r"'./my app' -x 'it'\''s'",
        };
        assert!(all.contains(quoted) && !all.contains("./app"), "{}: {all}", launcher.name);
    }
}
