//! Programs and libraries of computing centres that recipes of the guide are followed with: Debian packages, unpacked into
//! `target/sciences` (20 and 75 MB), each set into a folder of its own. Only the second tier of tests needs them.

use crate::{peers, workspace};
use anyhow::Result;
use std::path::PathBuf;

/// The names of folders, and the packages in them.
const SETS: [(&str, &[&str]); 2] = [
    (
        "linear",
        &[
            "hpcc",
            "libopenblas0-pthread",
            "libblis4-pthread",
            "libscalapack-openmpi2.2",
            "libblas3",
            "liblapack3",
            "libgfortran5",
            "libquadmath0",
            "python3-numpy",
        ],
    ),
    (
        "gromacs",
        &[
            "gromacs",
            "gromacs-data",
            "libgromacs7",
            "libblas3",
            "liblapack3",
            "libfftw3-double3",
            "libfftw3-single3",
            "libgfortran5",
            "libmuparser2v5",
            "libquadmath0",
        ],
    ),
];

/// The folder with a folder for each set; fetched on first use.
pub fn folder() -> Result<PathBuf> {
    let folder = workspace::target().join("sciences");
    for (name, packages) in SETS {
        peers::unpacked(packages, &folder.join(name))?;
    }
    Ok(folder)
}
