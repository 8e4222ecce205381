//! The cure that a command names: a file, or the last one of its program.

use anyhow::{anyhow, bail};
use numakit_cure::{Cure, CureError};
use numakit_findings::comparison::explained::kept;
use numakit_launch::Program;
use std::path::Path;

/// The word for the newest cure of the program.
const LAST: &str = "last";

/// The cure of this name for a program.
pub fn named(name: &Path, program: &Program) -> anyhow::Result<Cure> {
    match name == Path::new(LAST) {
        true => last(program.build_id.as_deref(), &program.name().to_string_lossy()),
        false => Ok(numakit_cure::read(name)?),
    }
}

/// The newest kept cure of the program with this build ID.
pub fn last(build_id: Option<&str>, name: &str) -> anyhow::Result<Cure> {
    let Some(build_id) = build_id else {
        bail!(
            "--apply last: {name} has no build ID, by which its cure would be found; observe it with 'numa explain --cure FILE', and \
             link it with -Wl,--build-id"
        );
    };
    let folder = kept::folder().ok_or_else(|| {
        anyhow!("--apply last: no result is kept, since neither XDG_STATE_HOME nor HOME is set; name the file of a cure")
    })?;
    let mut other_build = false;
    for (_, path) in kept::newest_first(&folder).unwrap_or_default() {
        match numakit_cure::read(&path) {
            Ok(cure) if cure.program.build_id == build_id => return Ok(cure),
            Ok(cure) => other_build |= cure.program.file == name,
            Err(CureError::Without(_)) => {}
            // What is damaged cannot be told to be of this program; the next one may be.
            Err(_) => {}
        }
    }
    let why = if other_build { ": those that are kept are of other builds" } else { "" };
    bail!(
        "--apply last: no cure of this build of {name} is kept in {}{why}; observe it first: numa explain {name}",
        folder.display()
    )
}
