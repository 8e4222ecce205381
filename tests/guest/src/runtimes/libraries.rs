//! The shared libraries that programs need.

use crate::failure::{Failure, on};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Libraries of all these programs and libraries, looked for in these folders first. One that is
/// not there is left out: a plugin that needs it is then not loaded, as on a machine without it.
pub fn of(programs: &[PathBuf], folders: &str) -> Result<BTreeSet<PathBuf>, Failure> {
    let Some(first) = programs.first() else { return Ok(BTreeSet::new()) };
    let mut ldd = Command::new("ldd");
    let output =
        ldd.args(programs).env("LD_LIBRARY_PATH", folders).output().map_err(on("look with ldd at", first))?;
    Ok(paths(&String::from_utf8_lossy(&output.stdout)))
}

/// The paths in lines of ldd, `libm.so.6 => /lib/libm.so.6 (0x...)`; the loader itself has none.
fn paths(text: &str) -> BTreeSet<PathBuf> {
    let found = text.lines().filter_map(|line| line.split_once(" => ")?.1.split(" (").next());
    found.filter(|path| path.starts_with('/')).map(|path| Path::new(path).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_that_are_there_are_named_once() {
        let text = "a:\n\tlinux-vdso.so.1 (0x7f)\n\tlibm.so.6 => /lib/libm.so.6 (0x7f)\nb:\n\
                    \tlibgone.so => not found\n\tlibm.so.6 => /lib/libm.so.6 (0x7e)\n\t/lib64/ld.so (0x7f)\n";
        assert_eq!(paths(text).into_iter().collect::<Vec<_>>(), [Path::new("/lib/libm.so.6")]);
    }
}
