use crate::runner::{Done, Folder, Started};
use serde_json::Value;
use std::fs::{self, File};
use std::process::{Command, Stdio};

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{} {}", done.out, done.err))
}

/// A folder with a file of 3 MB that is on the disk; none if the folder is memory.
fn folder(name: &str) -> Option<Folder> {
    let folder = Folder::new(name);
    fs::write(folder.path("data"), vec![1; 3_000_000]).unwrap();
    File::open(folder.path("data")).unwrap().sync_all().unwrap();
    let kind = Done::of(Command::new("stat").args(["-f", "-c", "%T"]).arg(&folder.0).output().unwrap());
    if ["tmpfs", "ramfs"].contains(&kind.out.trim()) {
        numakit_skips::MACHINE.skip("the temporary folder is memory, which is never evicted");
        return None;
    }
    folder.run("file evict data").says(0, "");
    Some(folder)
}

#[test]
fn what_is_evicted_and_loaded_is_shown() {
    let Some(folder) = folder("file") else { return };
    let shown = |line: &str| json(&folder.run(line))["files"][0].clone();
    let empty = shown("file show --json data");
    assert_eq!((&empty["cached"], &empty["size"]), (&0.into(), &3_000_000.into()));
    assert!(empty["pieces"].as_array().unwrap().iter().all(|piece| piece == "absent"), "{empty}");
    // Looking does not read.
    assert_eq!(shown("file show --json data"), empty);
    folder.run("file load --policy local data").says(0, "");
    let full = shown("file show --json data");
    let on: u64 = full["on"].as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap()).sum();
    assert!((3_000_000..3_100_000).contains(&on) && full["cached"] == on, "{full}");
    let page = folder.run("file show data").out;
    assert!(page.starts_with("FILE ") && page.contains("\ndata  2.86 MiB  2.86 MiB    100.0"), "{page}");
    let moved = json(&folder.run("file spread --json data"));
    assert!(moved["files"][0]["complete"] == true && moved["files"][0]["way"] == "in-place", "{moved}");
}

#[test]
fn a_process_that_maps_a_file_is_listed() {
    let folder = Folder::new("filemapped");
    let sleeper = folder.program("/bin/sleep".as_ref(), "sleeper", 0o755);
    let child = Started::of(Command::new(sleeper).arg("600").stdin(Stdio::null()));
    let done = folder.run("file show --json sleeper");
    let evicted = folder.run("file evict sleeper");
    let file = json(&done)["files"][0].clone();
    let mapper = &file["mapped_by"][0];
    assert_eq!((&mapper["pid"], &mapper["command"]), (&child.id().into(), &"sleeper".into()), "{file}");
    let threads: u64 =
        mapper["threads"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(threads, 1, "{file}");
    evicted.says(1, "");
    assert!(evicted.out.contains("stayed in the cache: process "), "{}", evicted.out);
}

#[test]
fn what_cannot_be_is_an_error_with_its_fix() {
    let folder = Folder::new("fileodd");
    fs::write(folder.path("data"), "1").unwrap();
    fs::create_dir(folder.path("none")).unwrap();
    Command::new("mkfifo").arg(folder.path("fifo")).status().unwrap();
    for (line, message) in [
        ("file show missing", "missing: No such file or directory"),
        ("file show fifo", "it is a FIFO and not a regular file; give a regular file"),
        ("file show /dev/zero", "it is a device and not a regular file"),
        ("file show none", "there is no regular file in none"),
        ("file show", "<PATH>..."),
        ("file shove data", "invalid value 'shove'"),
        ("file move data", "--node <N>"),
        ("file load data", "--policy <POLICY>"),
        ("file load --policy often data", "often"),
        ("file move --node 999 data", "999"),
        ("file spread --nodes 998 data", "998"),
        ("file show --node 0 data", "--node is an option of 'numa file move'; omit it"),
    ] {
        folder.run(line).says(2, message);
    }
}

#[test]
fn a_run_reads_files_before_its_start() {
    let Some(folder) = folder("filespread") else { return };
    let run = "run --busy off --share -c 1 --spread-files";
    folder
        .run(&format!("{run} no* -- true"))
        .says(2, "--spread-files no*: no file matches; quote the pattern");
    folder.run(&format!("{run} dat* -- true")).says(0, "");
    let shown = json(&folder.run("file show --json data"));
    assert!(shown["files"][0]["cached"].as_u64().unwrap() >= 3_000_000, "{shown}");
    folder.run(&format!("{run} dat* --dry-run -- true")).says(2, "--dry-run");
}

#[test]
fn plans_of_other_files_and_machines_are_refused() {
    let folder = Folder::new("fileplan");
    fs::write(folder.path("data"), vec![1; 8192]).unwrap();
    let path = fs::canonicalize(folder.path("data")).unwrap();
    let plan = |pages: u64, node: u32| {
        let range =
            format!(r#"{{"pages":{{"start":0,"end":{pages}}},"target":{{"node":{node}}},"samples":{{}}}}"#);
        fs::write(folder.path("plan"), format!(r#"{{"{}":{{"ranges":[{range}]}}}}"#, path.display()))
            .unwrap();
        folder.run("file spread --plan plan --dry-run --json data")
    };
    let pages = 8192 / numakit_sys::sched::page_size();
    let done = plan(pages, 0);
    done.says(0, "");
    assert_eq!(json(&done)["files"][0]["use"]["pages"]["one"], pages, "{}", done.out);
    plan(pages + 1, 0).says(2, "save a new plan");
    plan(pages, 900).says(2, "the plan names node 900, which has no memory here");
    fs::write(folder.path("plan"), "{}").unwrap();
    folder.run("file spread --plan plan data").says(2, "it has no plan for data");
    fs::write(folder.path("plan"), "[1]").unwrap();
    folder.run("file spread --plan plan data").says(2, "it is no plan; give a file that --save wrote");
}

#[test]
fn options_of_by_use_are_refused_elsewhere() {
    let folder = Folder::new("filebyuse");
    fs::write(folder.path("data"), vec![1; 8192]).unwrap();
    folder
        .run("file move --node 0 --by-use data -- true")
        .says(2, "--by-use is an option of 'numa file spread'");
    folder
        .run("file spread --dry-run data")
        .says(2, "--dry-run is an option of 'numa file spread' with --by-use");
    folder.run("file spread --by-use data").says(2, "--pid <PID,...>|--cgroup <PATH>");
    folder.run("file spread --pid 1 data").says(2, "--by-use");
    folder.run("file spread --by-use data -- no-such-program").says(127, "cannot run 'no-such-program'");
    folder.run("file spread --by-use data -- false").says(2, "the command ended with exit code 1");
}
