//! Containers in which tests run `numa` as its users meet it: under the seccomp filter of Docker or
//! Podman, with few capabilities, as root or not, with a root file system that may be read-only.
//!
//! runc runs them. Their files are those of this machine's `/usr`, and `/opt/numa` has the program.

mod container;
mod profile;

pub use container::{Container, ContainerError};
pub use profile::Profile;

use numakit_skips::CONTAINERS;
use std::process::{Command, Stdio};

/// Whether this machine can run containers; if not, after a line that says so.
pub fn are_here() -> bool {
    let works = |program: &str| {
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    let lacking = if !works("runc") {
        "there is no runc; apt-get install -y runc golang-github-containers-common"
    } else if !profile::is_installed() {
        "there is no seccomp profile of Podman; apt-get install -y golang-github-containers-common"
    } else {
        return true;
    };
    CONTAINERS.skip(lacking);
    false
}
