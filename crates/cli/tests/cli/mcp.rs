//! `numa mcp`, asked by the Python client of the protocol.

use crate::runner::{Done, Folder, Started};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

/// A recording in the format of NUMAscope: allocations per tenth of a second, local and remote.
fn recording(local: u64, remote: u64) -> String {
    let rows = (0..50u64).map(|row| format!(",[{},{local},{remote}]", 1_000_000 + row * 100_000));
    format!(
        "[[\"kernel VMstat\",1,0],[\"numa_local\",\"allocation from non-local node\"]{}]",
        rows.collect::<String>()
    )
}

/// `in` with two recordings and a link, beside a recording that nobody may see.
fn recordings(name: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::create_dir_all(folder.path("in/deep")).unwrap();
    std::fs::write(folder.path("in/spread.json"), recording(15010, 4990)).unwrap();
    std::fs::write(folder.path("in/deep/good.json"), recording(20000, 0)).unwrap();
    std::fs::write(folder.path("secret.json"), recording(1, 1)).unwrap();
    symlink("../secret.json", folder.path("in/linked.json")).unwrap();
    folder
}

/// The request that a client begins with.
pub const INITIALIZE: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\
    \"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"test\",\"version\":\"1\"}}}\n";

/// What `numa mcp` for this directory says to these lines.
pub fn asked(folder: &Folder, directory: &str, lines: &str) -> Done {
    let mut numa = folder.numa(&format!("mcp {directory}"));
    let piped = Stdio::piped;
    let mut started = Started::of(numa.stdin(piped()).stdout(piped()).stderr(piped()));
    started.child().stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    started.end()
}

#[test]
fn a_client_gets_right_answers() {
    let folder = recordings("mcp-client");
    let skip = |why: &str| numakit_skips::PYTHON.skip(why);
    let Some(python) = std::env::var_os("NUMAKIT_PYTHON") else {
        return skip("NUMAKIT_PYTHON names no python with the packages; 'cargo xtask test' sets it");
    };
    if !Command::new(&python).args(["-c", "import mcp"]).output().is_ok_and(|done| done.status.success()) {
        return skip("that python has no package 'mcp'");
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_client.py");
    let mut asks = Command::new(&python);
    asks.args([script, env!("CARGO_BIN_EXE_numa")]).arg(folder.path("in"));
    let done = Done::of(folder.isolate(&mut asks).output().unwrap());
    assert!(done.code == 0 && done.out.contains("13 answers are right"), "{}\n{}", done.out, done.err);
}

#[test]
fn it_ends_with_its_input_and_refuses_what_is_no_directory() {
    let folder = recordings("mcp-end");
    let done = asked(&folder, "in", INITIALIZE);
    assert!(
        done.code == 0 && done.out.contains("\"serverInfo\":{\"name\":\"numa\""),
        "{} {}",
        done.out,
        done.err
    );

    let missing = folder.run("mcp nowhere");
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("nowhere") && missing.err.contains("give the directory"), "{}", missing.err);
}

#[test]
fn a_line_that_is_not_json_is_answered() {
    let folder = recordings("mcp-broken");
    let done = asked(&folder, "in", "{\"jsonrpc\":\n");
    let answer: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert!(
        done.code == 0 && answer["id"].is_null() && answer["error"]["code"] == -32700,
        "{} {}",
        done.out,
        done.err
    );
}
