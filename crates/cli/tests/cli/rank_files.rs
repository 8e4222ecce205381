//! The rank files of the best-practice guide, line by line, and what today's launchers make of the same plans on its machine.

use crate::runner::{Done, Folder};
use numakit_model::CpuSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the guide prints of each file, under a line with its name, how many lines it has, and the options that write it.
const PRINTED: &str = include_str!("rank_files.txt");
/// The machine of the guide: 16 packages of 16 cores, whose numbers are those of their CPUs.
const MACHINE: &str = "Opteron 6380 x16 NumaConnect";
const CORES_OF_A_PACKAGE: u32 = 16;
/// The one line that the guide has otherwise: these slots are those of rank 14, which it leaves out.
const MISPRINTED: &str = "rank 15=localhost slot=3:8,3:10";
const RIGHT: &str = "rank 15=localhost slot=3:12,3:14";

struct Printed {
    name: &'static str,
    count: usize,
    options: &'static str,
    lines: Vec<&'static str>,
}

fn all() -> Vec<Printed> {
    let mut files: Vec<Printed> = Vec::new();
    for line in PRINTED.lines() {
        if let Some(head) = line.strip_prefix("# ") {
            let (name, rest) = head.split_once(", ").unwrap();
            let (count, options) = rest.split_once(" lines: ").unwrap();
            files.push(Printed { name, count: count.parse().unwrap(), options, lines: Vec::new() });
        } else {
            files.last_mut().unwrap().lines.push(line);
        }
    }
    assert_eq!(files.len(), 4);
    files
}

/// What `numa plan --for` writes for the guide's machine.
fn planned(folder: &Folder, options: &str, launcher: &str) -> String {
    let mut numa = folder.numa(&format!("plan {options} --for {launcher}"));
    let done = Done::of(numa.args(["--machine", MACHINE]).output().unwrap());
    assert_eq!(done.code, 0, "{options}: {}", done.err);
    done.out
}

/// The number of the rank of a line.
fn rank(line: &str) -> usize {
    line.strip_prefix("rank ").unwrap().split_once('=').unwrap().0.parse().unwrap()
}

/// The CPUs of each rank, by slots such as `15:8,15:10`.
fn cpus(file: &str) -> Vec<CpuSet> {
    let cpu = |slot: &str| {
        let (package, core) = slot.split_once(':').unwrap();
        package.parse::<u32>().unwrap() * CORES_OF_A_PACKAGE + core.parse::<u32>().unwrap()
    };
    let of_line = |line: &str| line.rsplit_once("slot=").unwrap().1.split(',').map(cpu).collect();
    file.lines().map(of_line).collect()
}

#[test]
fn each_line_that_the_guide_prints_is_written_byte_for_byte() {
    let folder = Folder::new("rank-files");
    for file in all() {
        let written = planned(&folder, file.options, "openmpi1");
        let written: Vec<&str> = written.split_inclusive('\n').collect();
        assert_eq!(written.len(), file.count, "{}", file.name);
        for line in file.lines {
            let expected = if line == MISPRINTED { RIGHT } else { line };
            assert_eq!(written[rank(line)], format!("{expected}\n"), "{}", file.name);
        }
        if file.name == "rank16_2" {
            let slots = |line: &str| line.rsplit_once('=').unwrap().1.trim().to_owned();
            assert_eq!(slots(written[14]), slots(MISPRINTED), "the guide has rank 14's slots twice");
        }
    }
}

/// The CPUs of each rank in the lines for a launcher of today. Numbers of cores are those of CPUs on this machine.
fn cpus_of(launcher: &str, lines: &str) -> Vec<CpuSet> {
    let set = |list: &str| CpuSet::parse_list(list).unwrap();
    match launcher {
        "mpich" => {
            let (_, rest) = lines.split_once("-bind-to user:").unwrap();
            rest.split(' ').next().unwrap().split(',').map(|list| set(&list.replace('+', ","))).collect()
        }
        _ => lines.lines().map(|line| set(line.rsplit_once("slot=").unwrap().1)).collect(),
    }
}

#[test]
fn launchers_of_today_get_the_same_cpus() {
    let folder = Folder::new("rank-files-today");
    for file in all() {
        let expected = cpus(&planned(&folder, file.options, "openmpi1"));
        for launcher in ["openmpi4", "openmpi5", "mpich"] {
            let lines = planned(&folder, file.options, launcher);
            assert_eq!(cpus_of(launcher, &lines), expected, "{} for {launcher}", file.name);
        }
    }
}

/// The guide's machine as hwloc describes one.
const OF_HWLOC: &str = "group:8 pack:2 numa:2 l3:1 l2:4 core:2 pu:1";

/// Open MPI 5 of the Python package index.
fn open_mpi5() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mpi");
    std::env::var_os("NUMAKIT_MPIS").map_or_else(own, PathBuf::from).join("openmpi5/bin/mpirun")
}

/// The cores of each rank in the map that mpirun prints: `Binding: package[3][core:L60,62]`.
fn mapped(map: &str) -> Vec<CpuSet> {
    let bindings = map.lines().filter_map(|line| line.trim().strip_prefix("Binding: package["));
    let cores = |binding: &str| {
        let (_, list) = binding.split_once("[core:L").unwrap();
        CpuSet::parse_list(list.strip_suffix(']').unwrap()).unwrap()
    };
    bindings.map(cores).collect()
}

#[test]
fn mpirun_of_open_mpi_5_maps_the_ranks_of_the_guide_to_these_cores() {
    let folder = Folder::new("rank-files-mapped");
    let mpirun = open_mpi5();
    if !mpirun.is_file() {
        return numakit_skips::RUNTIMES.skip(format_args!("there is no {}", mpirun.display()));
    }
    let machine = folder.path("machine.xml");
    let drawn = Command::new("lstopo-no-graphics")
        .args(["--input", OF_HWLOC, "--of", "xml", "-f"])
        .arg(&machine)
        .status();
    if !drawn.is_ok_and(|status| status.success()) {
        return numakit_skips::TOOLS.skip("lstopo-no-graphics is not installed (Debian package hwloc)");
    }
    for file in all() {
        let (options, _) = file.options.split_once(" --host").unwrap();
        // The name that its simulated machine has.
        let lines = planned(&folder, &format!("{options} --host nodeA0"), "openmpi5");
        std::fs::write(folder.path("rankfile"), lines).unwrap();
        let mut command = Command::new(&mpirun);
        command.arg("--prtemca").arg("hwloc_use_topo_file").arg(&machine);
        command.args([
            "--prtemca",
            "ras_simulator_num_nodes",
            "1",
            "--runtime-options",
            "donotlaunch",
            "--display",
            "map",
        ]);
        command.args(["--map-by", "rankfile:file=rankfile", "-np", &file.count.to_string(), "true"]);
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        let done = Done::of(folder.isolate(&mut command).output().unwrap());
        let expected = cpus(&planned(&folder, file.options, "openmpi1"));
        assert_eq!(
            mapped(&format!("{}{}", done.out, done.err)),
            expected,
            "{}: {} {}",
            file.name,
            done.out,
            done.err
        );
    }
}
