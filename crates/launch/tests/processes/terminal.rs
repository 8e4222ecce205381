//! Keys and job control of a shell on a terminal.

use crate::scene::Scene;
use std::path::Path;
use std::process::Command;

#[test]
fn keys_and_job_control_reach_the_program() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/processes/terminal.py");
    let scene = Scene::new("terminal");
    let mut python = Command::new("python3");
    python.arg(script).arg(env!("CARGO_BIN_EXE_hold")).env("NUMAKIT_REGISTRY", scene.registry());
    let Ok(output) = python.output() else {
        numakit_skips::PYTHON.skip("there is no python3, which opens the terminal");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    scene.until_held("");
}
