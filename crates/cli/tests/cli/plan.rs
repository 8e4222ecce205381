use crate::runner::{Done, Folder};
use numakit_testing::{sysfs, until};
use std::process::{Child, Command, Stdio};

/// The machine of the best-practice guide: 8 servers with two packages of 16 cores, in pairs that
/// share a unit.
const GUIDE: &str = "package:16 node:2 unit:4 core:2";
/// Two PUs a core, numbers dealt to the packages in turn.
const DEALT: &str = "package:2 node:2 core:4 pu:2 numbering=roundrobin";

fn plan(folder: &Folder, machine: &str, arguments: &str) -> Done {
    Done::of(
        folder.numa("plan --synthetic").arg(machine).args(arguments.split_whitespace()).output().unwrap(),
    )
}

fn lines(folder: &Folder, machine: &str, arguments: &str) -> Vec<String> {
    let done = plan(folder, machine, arguments);
    done.says(0, "");
    done.out.lines().map(str::to_owned).collect()
}

#[test]
fn rank_files_of_the_guide_are_written() {
    let folder = Folder::new("planrank");
    let file = lines(&folder, GUIDE, "--processes 64 --stride 4 --for openmpi1");
    let expected = (0..64).map(|rank| format!("rank {rank}=HOST slot={}:{}", rank / 4, rank % 4 * 4));
    assert_eq!(file, expected.collect::<Vec<_>>());
    let file = lines(&folder, GUIDE, "--processes 128 --stride 2 --for openmpi1 --host numademo");
    let expected = (0..128).map(|rank| format!("rank {rank}=numademo slot={}:{}", rank / 8, rank % 8 * 2));
    assert_eq!(file, expected.collect::<Vec<_>>());
    let file = lines(&folder, GUIDE, "--processes 16 --threads 2 --stride 2 --for openmpi1 --host localhost");
    assert_eq!(file[0], "rank 0=localhost slot=0:0,0:2");
    assert_eq!(file[3], "rank 3=localhost slot=0:12,0:14");
    assert_eq!((file.len(), file[15].as_str()), (16, "rank 15=localhost slot=3:12,3:14"));
    let file = lines(&folder, GUIDE, "--processes 16 --threads 8 --stride 2 --for openmpi1 --host h8qgl");
    let slots = |rank| (0..8).map(|core| format!("{rank}:{}", core * 2)).collect::<Vec<_>>().join(",");
    let expected = (0..16).map(|rank| format!("rank {rank}=h8qgl slot={}", slots(rank)));
    assert_eq!(file, expected.collect::<Vec<_>>());
    let one = plan(&folder, GUIDE, "--processes 64 --stride 4 --for openmpi1");
    assert!(one.err.contains("mpirun -np 64 -rf rankfile"), "{}", one.err);
}

#[test]
fn openmp_lines_of_the_guide_are_written() {
    let folder = Folder::new("planomp");
    for (arguments, affinity) in [
        ("--threads 64 --stride 4", "\"0-252:4\""),
        ("--threads 128", "\"0-127\""),
        ("--threads 128 --stride 2", "\"0-254:2\""),
        ("-c 128 --stride 2", "\"0-254:2\""),
    ] {
        let file = lines(&folder, GUIDE, &format!("{arguments} --for gomp"));
        assert!(file.contains(&format!("export GOMP_CPU_AFFINITY={affinity}")), "{arguments}: {file:?}");
    }
    let file = lines(&folder, GUIDE, "--threads 128 --stride 2 --for nvhpc");
    let list = (0..128).map(|at| (at * 2).to_string()).collect::<Vec<_>>().join(",");
    assert!(file.contains(&format!("export MP_BLIST='{list}'")), "{file:?}");
}

#[test]
fn the_files_of_the_guides_machine_are_planned_as_hwloc_counts_them() {
    let folder = Folder::new("planunits");
    let t = numakit_topology::json::parse(numakit_captures::OPTERON_6276).unwrap();
    sysfs::write(&sysfs::tree(&t), &folder.path("machine")).unwrap();
    let tree = folder.run("topo --sysroot machine");
    assert!(tree.out.starts_with("4 packages, 8 nodes, 64 cores, 64 PUs"), "{}", tree.out);
    let unit = "unit  CPUs 14-15  L2 2 MiB  L1i 64 KiB  2 cores  L1d 16 KiB\n";
    assert!(tree.out.contains(unit) && tree.out.contains("--stride 2"), "{}", tree.out);
    let planned = |arguments: &str| folder.run(&format!("plan --sysroot machine {arguments}"));
    let json: serde_json::Value = serde_json::from_str(&planned("--processes 4 --json").out).unwrap();
    let cpus: Vec<_> = json["plan"]["steps"].as_array().unwrap().iter().map(|step| &step["cpu"]).collect();
    assert_eq!(cpus, [0, 1, 2, 3]);
    assert!(json["plan"]["warnings"][0].as_str().unwrap().contains("--stride 2"), "{json}");
    let file = planned("--processes 4 --for openmpi4").out;
    assert_eq!(file, "rank 0=HOST slot=0\nrank 1=HOST slot=1\nrank 2=HOST slot=2\nrank 3=HOST slot=3\n");
    let file = planned("--processes 16 --stride 4 --for openmpi1 --host numademo").out;
    let expected: String =
        (0..16).map(|rank| format!("rank {rank}=numademo slot={}:{}\n", rank / 4, rank % 4 * 4)).collect();
    assert_eq!(file, expected);
}

#[test]
fn lines_name_this_host_and_the_application() {
    let folder = Folder::new("planhost");
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let here = here.trim();
    let plain = folder.run("plan -c 1 --for openmpi4 -- ./app -x 1");
    plain.says(0, &format!("mpirun -np 1 --host {here}:1 -rf rankfile"));
    plain.says(0, " ./app -x 1\n");
    assert!(plain.out.starts_with(&format!("rank 0={here} slot=")), "{}", plain.out);
    let named = folder.run("plan -c 1 --for openmpi4 --host other");
    assert!(named.out.starts_with("rank 0=other slot="), "{}", named.out);
    // Another machine's name is unknown.
    assert!(plan(&folder, DEALT, "-c 1 --for openmpi4").out.starts_with("rank 0=HOST slot=0"));
    let gomp = plan(&folder, DEALT, "-c 2 --for gomp -- ./app -x");
    assert!(gomp.out.ends_with("\n./app -x\n"), "{}", gomp.out);
    let words =
        Done::of(folder.numa("plan -c 1 --for taskset --").args(["./my app", "it's"]).output().unwrap());
    assert!(words.out.ends_with(" './my app' 'it'\\''s'\n"), "{}", words.out);
    // Of a described machine: on this one, other programs come and go.
    let (of_command, without) = (plan(&folder, DEALT, "-c 1 ./app"), plan(&folder, DEALT, "-c 1"));
    assert_eq!((of_command.code, of_command.out), (0, without.out), "{}", of_command.err);
}

#[test]
fn the_commands_of_the_guide_work() {
    let folder = Folder::new("planguide");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/plan.md");
    let page = std::fs::read_to_string(page).unwrap();
    let described = |line: &&str| line.starts_with("M=") || line.starts_with("numa plan --synthetic");
    let lines: Vec<&str> = page.lines().filter(described).collect();
    assert!(lines.len() > 8, "{lines:?}");
    let numa = std::path::Path::new(env!("CARGO_BIN_EXE_numa")).parent().unwrap().to_owned();
    let script = format!("set -e\nPATH={}:$PATH\n{}\n", numa.display(), lines.join("\n"));
    let done = Done::of(folder.isolate(Command::new("sh").args(["-c", &script])).output().unwrap());
    done.says(0, "");
    let rank64 = std::fs::read_to_string(folder.path("rank64")).unwrap();
    assert!(rank64.starts_with("rank 0=numademo slot=0:0\n"), "{rank64}");
    assert!(rank64.ends_with("rank 63=numademo slot=15:12\n"), "{rank64}");
}

#[test]
fn a_plan_is_shown_in_every_form() {
    let folder = Folder::new("planforms");
    let table = plan(&folder, DEALT, "--processes 2 --threads 4");
    table.says(0, "");
    assert!(table.out.starts_with("2 processes of 4 threads on 8 CPUs"), "{}", table.out);
    let explained = plan(&folder, DEALT, "--processes 2 --threads 4 --explain");
    assert!(explained.out.contains("process 1 thread 3: CPU "), "{}", explained.out);
    let json = plan(&folder, DEALT, "--processes 2 --threads 4 --json");
    let read: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&read["request"]["processes"], &read["schema"]), (&2.into(), &1.into()));
    assert_eq!(read["plan"]["steps"].as_array().unwrap().len(), 8);
    plan(&folder, DEALT, "--processes 2 --threads 4 --svg plan.svg").says(0, "");
    let drawing = std::fs::read_to_string(folder.path("plan.svg")).unwrap();
    assert!(drawing.starts_with("<svg") && drawing.contains(">r1.t3<"));
    assert!(plan(&folder, DEALT, "--svg -").out.starts_with("<svg"));
    // For the machine that this runs on, too.
    let here = folder.run("plan -c 1 --for taskset");
    here.says(0, "");
    assert!(here.out.starts_with("taskset -c "), "{}", here.out);
}

#[test]
fn every_launcher_that_help_names_has_lines() {
    let folder = Folder::new("planall");
    let help = folder.run("plan --help").out;
    let names: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Launchers:")
        .skip(1)
        .map_while(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names.len(), 17, "{help}");
    for name in names {
        let done = plan(&folder, DEALT, &format!("--processes 2 --threads 2 --for {name}"));
        done.says(0, "");
        assert!(done.out.contains("./app") || done.out.starts_with("rank 0="), "{name}: {}", done.out);
    }
}

#[test]
fn a_machine_that_tells_no_distances_is_planned_with_a_warning() {
    let folder = Folder::new("plandistances");
    let machine = r#"{"nodes": [{"os_index": 0, "cpus": "0-3", "memory_kb": 16777216},
        {"os_index": 1, "cpus": "4-7", "memory_kb": 16777216},
        {"os_index": 2, "cpus": "8-11", "memory_kb": 16777216}]}"#;
    std::fs::write(folder.path("machine.json"), machine).unwrap();
    let table = folder.run("plan --synthetic machine.json -c 6");
    table.says(0, "");
    let said = table.out.lines().find(|line| line.starts_with("warning: "));
    assert!(said.is_some_and(|line| line.contains("distances")), "{}", table.out);
    let lines = folder.run("plan --synthetic machine.json -c 6 --for taskset");
    assert!(lines.out.starts_with("taskset -c ") && lines.out.lines().count() == 1, "{}", lines.out);
    lines.says(0, "warning: ");
}

#[test]
fn what_cannot_be_planned_is_told() {
    let folder = Folder::new("planbad");
    let says = |arguments: &str, words: &str| plan(&folder, DEALT, arguments).says(2, words);
    says("--for openmp4", "'openmp4' is no launcher; did you mean ");
    says("--for", "a value is required for '--for <LAUNCHER>'");
    says("--for openmpi4 --host a/b", "'a/b' is no name of a host");
    says("-c 0", "'0' is not a number of at least 1");
    says("-c -3", "'-3' is not a number of at least 1");
    says("-c few", "'auto' for all that are free");
    says("--processes 0", "number of processes '0'");
    says("--threads-per-core 0", "number of threads per core '0'");
    says("--stride 0", "stride '0'");
    says("--policy near", "name the device");
    says("--policy spread", "name what to spread over");
    says("--policy spread:l3", "this machine shows no L3 caches to spread over; take spread:node or");
    says("--memory bnd", "did you mean 'bind'?");
    says("--nodes 9", "9");
    says("--cpus 99", "99");
    says("--cpus 4-1", "4-1");
    says("-c 17", "17 cores");
    says("--processes 9 --threads 2", "18 cores");
    says("--policy near:0000:99:00.0", "0000:99:00.0");
    says("--json --for gomp", "cannot be used with");
    says("--svg /nowhere/plan.svg", "cannot write /nowhere/plan.svg");
    plan(&folder, "nod:2", "").says(2, "'nod' is unknown at column 1");
    folder.run("plan --sysroot nowhere.tar").says(2, "--sysroot nowhere.tar cannot be read");
    folder.run("plan --synthetic none.json").says(2, "none.json");
}

struct Started(Child);

impl Started {
    /// `sleep` through a shell that first says that it runs.
    fn on(cpus: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", cpus, "sleep", "600"]).stdin(Stdio::null()).envs(variables.iter().copied());
        let child = Self(command.spawn().unwrap());
        let name = format!("/proc/{}/comm", child.0.id());
        until!(std::fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n"));
        child
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_job_is_compared_with_its_plan() {
    let folder = Folder::new("plancheck");
    let allowed = numakit_sys::sched::affinity().unwrap();
    let (first, last) = (allowed.first().unwrap(), allowed.last().unwrap());
    if Command::new("taskset").arg("--version").output().is_err() {
        return numakit_skips::TOOLS.skip("taskset is not installed (Debian package util-linux)");
    }
    let (at_first, at_last) = (first.to_string(), last.to_string());
    let check =
        |started: &Started, options: &str| folder.run(&format!("plan --check {} {options}", started.0.id()));
    let job = Started::on(&at_first, &[]);
    let same = check(&job, &format!("--cpus {first}"));
    assert!(same.code == 0 && same.out.contains("its thread is where this plan has"), "{}", same.out);
    let placed = Started::on(&at_first, &[("NUMA_PLACE", &at_first), ("NUMA_MEMORY", "default")]);
    assert!(check(&placed, "").out.contains("the plan of 'numa run'"));
    let damaged = Started::on(&at_first, &[("NUMA_PLACE", "x")]);
    check(&damaged, "").says(2, "NUMA_PLACE is 'x'");
    check(&job, "--processes 2 --threads-per-core 1 -c 2 --cpus all").says(2, "");
    let end = Started::on(&at_first, &[]);
    let pid = end.0.id();
    drop(end);
    folder.run(&format!("plan --check {pid}")).says(2, "there is no process");
    folder.run("plan --check 0").says(2, "");
    if first == last {
        return numakit_skips::MACHINE.skip_part("with one CPU nothing can be elsewhere");
    }
    let elsewhere = Started::on(&at_last, &[("NUMA_PLACE", &at_first)]);
    let differs = check(&elsewhere, "");
    assert!(
        differs.code == 1 && differs.out.contains(&format!("may run on CPU {last}, outside")),
        "{}",
        differs.out
    );
}

#[test]
fn a_rank_that_a_launcher_started_is_near_its_own_device() {
    let folder = Folder::new("planrankdevice");
    let run = |variables: &[(&str, &str)]| {
        let mut numa = folder.numa("run -c 1 --share --dry-run --policy near:gpu{rank} -- true");
        for name in ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"] {
            numa.env_remove(name);
        }
        Done::of(numa.envs(variables.iter().copied()).output().unwrap())
    };
    // No machine has this number of cores.
    run(&[("OMPI_COMM_WORLD_LOCAL_RANK", "9099")]).says(2, "there is no device 'gpu9099'");
    run(&[("SLURM_LOCALID", "9098")]).says(2, "there is no device 'gpu9098'");
    let processes = folder.run("plan --processes 9000 --synthetic node:1000 --policy near:gpu{rank}");
    assert!(processes.code == 2, "{}", processes.err);
}
