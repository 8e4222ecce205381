//! Where xtask has unpacked what recipes are followed with.

use numakit_guest::place;
use std::path::PathBuf;

/// Where Debian's packages have libraries.
pub const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// The folder of a set of packages; none, and a line that says so, where it was not fetched.
pub fn sciences(name: &str) -> Option<PathBuf> {
    let own = || place::target().join("sciences");
    let folder = std::env::var_os("NUMAKIT_SCIENCES").map_or_else(own, PathBuf::from).join(name);
    if folder.join("complete").is_file() {
        return Some(folder);
    }
    let missing = format_args!("there is no {}; 'cargo xtask test --thorough' fetches it", folder.display());
    numakit_skips::SCIENCES.skip(missing);
    None
}

/// The program of an MPI that was fetched from PyPI.
pub fn of_mpi(name: &str, program: &str) -> PathBuf {
    let own = || place::target().join("mpi");
    std::env::var_os("NUMAKIT_MPIS").map_or_else(own, PathBuf::from).join(name).join("bin").join(program)
}
