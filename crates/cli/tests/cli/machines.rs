//! Machines by name, and the numbers of CPUs in described ones.

use crate::runner::{Done, Folder};

fn with(folder: &Folder, verb: &str, machine: &str, rest: &[&str]) -> Done {
    Done::of(folder.numa(verb).arg(machine).args(rest).output().unwrap())
}

#[test]
fn a_machine_has_a_name() {
    let folder = Folder::new("machines-topo");
    let done = with(&folder, "topo --machine", "2x AMD epyc 9755 128-Core Processor", &[]);
    done.says(0, "");
    assert!(done.out.starts_with("2 packages, 2 nodes, 256 cores, 512 PUs\n"), "{}", done.out);
    assert!(done.out.contains("note: from https://www.amd.com/"), "{}", done.out);
    assert!(done.out.contains("unknown here: the memory of nodes, distances\n"), "{}", done.out);
    let list = folder.run("topo --machine list");
    list.says(0, "");
    assert!(list.out.starts_with("name ") && list.out.lines().count() > 40, "{}", list.out);
    folder.run("topo --machine list --json").says(2, "omit the other options");
    with(&folder, "topo --machine", "EPYC 9755", &[]).says(2, "did you mean 'EPYC 9755 x2'?");
    with(&folder, "topo --machine", "GH200", &["--synthetic", "core:2"]).says(2, "--synthetic");
}

#[test]
fn two_processes_get_the_cores_of_a_package_each() {
    let folder = Folder::new("machines-plan");
    let rest = ["--processes", "2", "--threads", "128", "--for", "numactl", "--", "./server"];
    let expected = "numactl -C 0-127 -l ./server &\nnumactl -C 128-255 -l ./server &\nwait\n";
    let described = "package:2 node:1(mem=768G) l3:16(size=32M) core:8(l1=48K,l2=1M) pu:2";
    let assumed = with(&folder, "plan --synthetic", described, &rest);
    assert_eq!(assumed.out, expected);
    assumed.says(0, "core 0 is CPUs 0,256; if it is CPUs 0-1: numbering=sequential");
    let stated = with(&folder, "plan --synthetic", &format!("{described} numbering=interleaved"), &rest);
    assert_eq!(stated.out, expected);
    assert!(!stated.err.contains("numbered"), "{}", stated.err);
    let named = with(&folder, "plan --machine", "EPYC 9755 x2", &rest);
    assert_eq!(named.out, expected);
    assert!(!named.err.contains("numbered"), "{}", named.err);
    with(&folder, "plan --machine", "EPYC 9755", &rest).says(2, "did you mean 'EPYC 9755 x2'?");
}

#[test]
fn a_plan_says_which_nodes_it_leaves_idle_and_a_language_model_gets_all_of_them() {
    let folder = Folder::new("machines-idle");
    let plan = |rest: &[&str]| with(&folder, "plan --machine", "EPYC 9755 x2", rest);
    plan(&["-c", "128"]).says(0, "node 1 has no thread; '--policy balanced'");
    let model = ["-c", "128", "--for", "llama", "llama-server", "-m", "m.gguf"];
    let lines = plan(&model);
    assert_eq!(lines.out, "llama-server -m m.gguf --threads 128 --numa distribute\n");
    assert!(!lines.err.contains("has no thread"), "{}", lines.err);
    let one = plan(&["-c", "64", "--policy", "compact", "--for", "llama", "llama-cli"]);
    assert_eq!(one.out, "numactl -C 0-63 -l llama-cli --threads 64 --numa numactl\n");
}

#[test]
fn a_dry_run_for_another_machine() {
    let folder = Folder::new("machines-run");
    // The program need not be on this machine.
    let words = ["-c", "128", "--dry-run", "--", "no-such-server"];
    let done = with(&folder, "run --machine", "EPYC 9755 x2", &words);
    done.says(0, "numakit must be installed there, and 'numa run -c 128 no-such-server' there");
    assert!(done.out.contains("0-127"), "{}", done.out);
    let gpus = with(
        &folder,
        "run --machine",
        "DGX A100",
        &["-c", "4", "--policy", "near:gpu4", "--dry-run", "true"],
    );
    assert!(gpus.out.contains("112-115"), "{}{}", gpus.out, gpus.err);
    with(&folder, "run --machine", "EPYC 9755 x2", &["true"])
        .says(2, "'EPYC 9755 x2' is another one; add --dry-run");
    for (verb, last) in [("plan", ""), ("run", " true")] {
        let never = folder.run(&format!("{verb} -c 60000 true"));
        never.says(2, "60000 cores are requested, and this machine has ");
        never.says(2, &format!("-c 60000 --machine NAME{last} ('numa topo --machine list' lists them)"));
    }
    with(&folder, "plan --machine", "EPYC", &[]).says(2, "did you mean 'EPYC ");
    with(&folder, "run --machine", "EPYC 9755", &words).says(2, "did you mean 'EPYC 9755 x2'?");
}

#[test]
fn a_program_is_projected_on_a_machine_with_a_name() {
    let folder = Folder::new("machines-as");
    with(&folder, "explain --as", "EPYC 9755", &["--", "true"])
        .says(2, "--as: there is no machine 'EPYC 9755'");
}
