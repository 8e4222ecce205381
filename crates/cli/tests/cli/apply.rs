//! `numa run --apply`: a cure reaches the objects of an unmodified program, and changes nothing else.

use crate::run::{compiled, run};
use crate::runner::{Done, Folder};
use std::path::Path;
use std::process::Command;

const BUILD_ID: &str = "0123456789abcdef";
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
double variable[1 << 19];
__attribute__((noipa)) static double *make(size_t count)
{
    double *made = malloc(count * sizeof *made);
    made[0] = 1;
    return made;
}
static void policy_of(const char *name, const void *address)
{
    char line[512], path[64];
    unsigned long wanted = (unsigned long)address, start;
    snprintf(path, sizeof path, "/proc/%d/numa_maps", getpid());
    FILE *maps = fopen(path, "r");
    char found[128] = "none";
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx", &start) == 1 && start <= wanted)
            sscanf(line, "%*x %127s", found);
    printf("%s %s\n", name, found);
}
int main(int count, char **words)
{
    double *heap = make(1 << 19), sum = 0;
    for (int i = 0; i < 1 << 19; i++) {
        variable[i] = i;
        heap[i] = variable[i];
        sum += heap[i];
    }
    policy_of("variable", variable + (1 << 18));
    policy_of("block", heap + (1 << 18));
    heap = realloc(heap, sizeof *heap << 20);
    policy_of("realloc", heap + (1 << 18));
    printf("sum %.0f\n", sum + heap[1] - 1);
    free(heap);
    return count > 1 ? atoi(words[1]) : 0;
}
"#;

/// The address of the symbol, and the one behind the first call of `malloc` in `make`.
fn addresses(program: &Path) -> [String; 2] {
    let printed = |command: &str, option: &str| {
        let output = Command::new(command).arg(option).arg(program).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let names = printed("nm", "-P");
    let symbol = names.lines().find_map(|line| line.strip_prefix("variable ")?.split(' ').nth(1)).unwrap();
    let code = printed("objdump", "-d");
    let made = code.split("<make>:").nth(1).unwrap();
    let behind = made.lines().skip_while(|line| !line.contains("malloc@plt")).nth(1).unwrap();
    [format!("0x{symbol}"), format!("0x{}", behind.trim().split(':').next().unwrap())]
}

/// A folder with the program and its cure.
struct Cured {
    folder: Folder,
    program: String,
    cure: String,
}

fn cured(name: &str) -> Option<Cured> {
    let folder = Folder::new(name);
    let build_id = format!("-Wl,--build-id=0x{BUILD_ID}");
    let program = compiled(&folder, "app", PROGRAM, &["-O2", "-fno-inline", &build_id])?;
    let [variable, behind] = addresses(&program);
    let module = format!(r#"{{"file": "app", "build_id": "{BUILD_ID}"}}"#);
    let part = |from: u32, to: u32, thread: u32| {
        format!(r#"{{"from": {from}, "to": {to}, "thread": {thread}, "samples": 9, "sure": 1}}"#)
    };
    let text = format!(
        r#"{{"cure": 1, "command": "./app", "program": {module}, "threads": {{"working": [0, 1], "count": 2, "cpus": 2}},
            "environment": [{{"name": "PYTHONMALLOC", "value": "malloc", "reason": "a test"}}],
            "objects": [
              {{"name": "variable", "verdict": "first-touch", "reason": "",
                "variable": {{"module": {module}, "address": "{variable}", "bytes": 4194304}},
                "policy": {{"parts": {{"over": "block", "parts": [{}, {}]}}}}}},
              {{"name": "malloc in make", "verdict": "shared-by-all", "reason": "",
                "blocks": {{"by": "malloc", "chain": [{{"module": {module}, "address": "{behind}", "name": "make"}}],
                  "count": 1, "smallest": 4194304, "largest": 4194304}},
                "policy": "interleave"}}]}}"#,
        part(0, 32, 0),
        part(32, 64, 1)
    );
    std::fs::write(folder.path("c"), text).unwrap();
    let (program, cure) =
        (program.to_str().unwrap().to_owned(), folder.path("c").to_str().unwrap().to_owned());
    Some(Cured { folder, program, cure })
}

impl Cured {
    fn run(&self, words: &[&str]) -> Done {
        let always = ["-c", "1", "--busy", "off", "--apply", &self.cure];
        run(&self.folder, &[&always, words].concat())
    }

    /// The cure with this many copies of its first object.
    fn write_many(&self, count: usize) {
        let text = std::fs::read_to_string(&self.cure).unwrap();
        let mut cure: serde_json::Value = serde_json::from_str(&text).unwrap();
        let object = cure["objects"][0].to_string();
        cure["objects"] = serde_json::Value::Array(Vec::new());
        let all = vec![object; count].join(",");
        std::fs::write(
            &self.cure,
            cure.to_string().replace(r#""objects":[]"#, &format!(r#""objects":[{all}]"#)),
        )
        .unwrap();
    }
}

#[test]
fn objects_get_their_policies_and_the_program_stays_as_it_is() {
    let Some(cured) = cured("apply") else { return };
    let plain = Command::new(&cured.program).output().unwrap();
    let sum = String::from_utf8(plain.stdout).unwrap().lines().last().unwrap().to_owned();
    let done = cured.run(&[&cured.program, "7"]);
    assert_eq!(done.code, 7, "{}{}", done.out, done.err);
    assert!(done.out.contains(&sum), "{}", done.out);
    assert!(done.err.contains("variable: 1 variable, 4.00 MiB: parts on the nodes"), "{}", done.err);
    assert!(done.err.contains("malloc in make: "), "{}", done.err);
    // A kernel without NUMA has no policies, and says so by having none in the map.
    if !Path::new("/proc/self/numa_maps").exists() {
        numakit_skips::MACHINE.skip("this kernel has no memory policies");
        return;
    }
    assert!(done.out.contains("variable prefer"), "{}", done.out);
    for name in ["block", "realloc"] {
        assert!(done.out.contains(&format!("{name} interleave:")), "{name}: {}", done.out);
    }
}

#[test]
fn a_dry_run_says_what_objects_would_get() {
    let Some(cured) = cured("apply-dry") else { return };
    let done = cured.run(&["--dry-run", &cured.program]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(
        done.err.contains("malloc in make, 1 block of 4.00 MiB by app: pages on all nodes"),
        "{}",
        done.err
    );
    assert!(done.out.contains("PYTHONMALLOC=malloc") && !done.out.contains("NUMA_APPLY"), "{}", done.out);
    // The command without numa sets each variable once, and does without the library.
    assert!(!done.out.contains("libnumaapply"), "{}", done.out);
    assert_eq!(done.out.matches("LD_PRELOAD=").count(), 1, "{}", done.out);
}

#[test]
fn programs_that_share_their_cores_have_cures_too() {
    let Some(cured) = cured("apply-share") else { return };
    let done = cured.run(&["--share", &cured.program, "5"]);
    assert_eq!(done.code, 5, "{}{}", done.out, done.err);
    assert!(done.err.contains("variable: 1 variable, 4.00 MiB: parts on the nodes"), "{}", done.err);
    let killed = cured.run(&["--share", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.code, -9, "{}{}", killed.out, killed.err);
}

/// The sentences name the reason, and the programs do what they do without a cure.
#[test]
fn programs_that_can_have_no_cure_run_as_ever() {
    let Some(cured) = cured("apply-kinds") else { return };
    for (name, option, says) in [
        ("static", "-static", "static is statically linked: only programs that it starts are cured"),
        ("address", "-fsanitize=address", "which needs its own malloc: it gets no cure"),
        ("thread", "-fsanitize=thread", "which needs its own malloc: it gets no cure"),
    ] {
        let Some(program) = compiled(&cured.folder, name, PROGRAM, &["-O2", option]) else { continue };
        let done = cured.run(&[program.to_str().unwrap(), "7"]);
        assert_eq!(done.code, 7, "{name}: {}{}", done.out, done.err);
        assert!(done.err.contains(says), "{name}: {}", done.err);
    }
}

#[test]
fn ordinary_users_have_cures_and_raised_programs_none() {
    const NOBODY: &str = "65534";
    let Some(cured) = cured("apply-user") else { return };
    if numakit_sys::user::id() != 0 || !Path::new("/usr/bin/setpriv").exists() {
        numakit_skips::ROOT.skip("only root with setpriv can be two users");
        return;
    }
    let numa = cured.folder.program(env!("CARGO_BIN_EXE_numa").as_ref(), "numa", 0o755);
    let raised = cured.folder.program(cured.program.as_ref(), "raised", 0o4755);
    let nobody = |program: &Path| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(&numa);
        command
            .args(["run", "--share", "-c", "1", "--busy", "off", "--apply", &cured.cure])
            .arg(program)
            .arg("7");
        // A folder of the cache that is root's is not for others.
        command
            .env_remove("NUMAKIT_CACHE")
            .current_dir(&cured.folder.0)
            .env_remove("LD_PRELOAD")
            .env("HOME", "/")
            .env("TMPDIR", "/tmp");
        Done::of(command.output().unwrap())
    };
    let done = nobody(cured.program.as_ref());
    assert_eq!(done.code, 7, "{}{}", done.out, done.err);
    assert!(done.err.contains("variable: 1 variable, 4.00 MiB: parts on the nodes"), "{}", done.err);
    let done = nobody(&raised);
    assert_eq!(done.code, 7, "{}{}", done.out, done.err);
    assert!(done.err.contains("raised is setuid: it gets no cure"), "{}", done.err);
}

#[test]
fn cures_with_too_many_objects_are_refused() {
    let Some(cured) = cured("apply-many") else { return };
    // What a table has no room for is left alone.
    cured.write_many(4096);
    let done = cured.run(&[&cured.program, "3"]);
    assert_eq!(done.code, 3, "{}", done.err);
    assert!(
        done.err.contains("variable: nothing was done: the cure has too many objects or files"),
        "{}",
        done.err
    );
    let refused = |says: &str| {
        let done = cured.run(&[&cured.program]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{}", done.err);
        assert!(done.err.contains(says), "{}", done.err);
    };
    cured.write_many(100_000);
    refused("more objects than the 4096");
    // As large as a million of them.
    std::fs::OpenOptions::new().write(true).open(&cured.cure).unwrap().set_len(300 << 20).unwrap();
    refused("of which at most 67108864 are read");
}

#[test]
fn another_build_gets_nothing_and_is_told() {
    let Some(cured) = cured("apply-build") else { return };
    let other = cured.folder.program("/usr/bin/true".as_ref(), "run/app", 0o755);
    for (program, says) in [
        (other.to_str().unwrap(), "the cure is for another build of app (build ID 0123456789abcdef"),
        ("true", "the cure is for app (build ID 0123456789abcdef): true gets nothing itself"),
    ] {
        let done = cured.run(&[program]);
        assert_eq!(done.code, 0, "{}", done.err);
        assert!(done.err.contains(says), "{}", done.err);
        assert!(done.err.contains("not found: variable, malloc in make: no process loaded"), "{}", done.err);
    }
}

#[test]
fn what_is_no_cure_is_refused_before_the_program_runs() {
    let folder = Folder::new("apply-bad");
    std::fs::write(folder.path("bad"), r#"{"cure": 1, "objects": 7}"#).unwrap();
    std::fs::write(folder.path("newer"), r#"{"cure": 2}"#).unwrap();
    for (name, says) in [
        ("bad", "is not a cure of 'numa explain --cure', or it is damaged"),
        ("newer", "has version 2 of the form; this numa reads 1"),
        ("missing", "cannot read "),
    ] {
        let path = folder.path(name);
        let done = run(&folder, &["--apply", path.to_str().unwrap(), "sh", "-c", "echo ran"]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{}", done.err);
        assert!(done.err.contains(says), "{}", done.err);
    }
    let done = run(&folder, &["--apply", "last", "true"]);
    assert_eq!(done.code, 2, "{}", done.err);
    assert!(done.err.contains("--apply last: no cure of this build of true is kept in "), "{}", done.err);
    assert!(done.err.contains("observe it first: numa explain true"), "{}", done.err);
    // What cannot be read is not called empty.
    std::fs::create_dir_all(folder.path("state/numakit")).unwrap();
    std::fs::write(folder.path("state/numakit/explained"), "").unwrap();
    let done = run(&folder, &["--apply", "last", "true"]);
    assert_eq!(done.code, 2, "{}", done.err);
    assert!(done.err.contains("--apply last: cannot read "), "{}", done.err);
}

#[test]
fn the_last_cure_may_be_about_threads_alone() {
    let Some(cured) = cured("apply-threads") else { return };
    let mut cure: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&cured.cure).unwrap()).unwrap();
    cure["objects"] = serde_json::json!([]);
    cure["sharing"] = serde_json::json!([{"threads": [0, 1], "share": 0.5}]);
    let kept = cured.folder.path("state/numakit/explained");
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::write(kept.join("app-1.json"), cure.to_string()).unwrap();
    let done = run(&cured.folder, &["-c", "1", "--busy", "off", "--apply", "last", &cured.program]);
    assert_eq!(done.code, 0, "{}", done.err);
}

#[test]
fn the_last_cure_of_what_a_launcher_starts_is_found() {
    let Some(cured) = cured("apply-launched") else { return };
    let text = std::fs::read_to_string(&cured.cure).unwrap();
    let kept = cured.folder.path("state/numakit/explained");
    std::fs::create_dir_all(&kept).unwrap();
    let keep = |command: &str| {
        std::fs::write(kept.join("env-1.json"), text.replace("./app", command)).unwrap();
    };
    let last = |program: &str| {
        run(&cured.folder, &["-c", "1", "--busy", "off", "--apply", "last", program, &cured.program])
    };
    keep("env app 5");
    let done = last("env");
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("variable: 1 variable, 4.00 MiB: parts"), "{}", done.err);
    assert_eq!(last("nice").code, 2, "another launcher may start another program");
    keep(&format!("nice {}", cured.program));
    let done = last("nice");
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("variable: 1 variable, 4.00 MiB: parts"), "{}", done.err);
}

/// The cure of a program that ends before anybody has looked at it is that of its build all the same.
#[test]
fn programs_that_end_at_once_are_known_by_their_file() {
    let folder = Folder::new("apply-short");
    let done = folder.run("explain --cure c true");
    assert_eq!(done.code, 0, "{}", done.err);
    let cure: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path("c")).unwrap()).unwrap();
    assert_eq!(cure["program"]["file"], "true", "{cure}");
    assert!(cure["program"]["build_id"].as_str().is_some_and(|id| id.len() > 8), "{cure}");
}
