//! The cure that a command names: a file, or the last one of its program.

use anyhow::{anyhow, bail};
use numakit_cure::{Cure, CureError};
use numakit_findings::comparison::explained::kept;
use numakit_launch::Program;
use numakit_sys::command::quoted;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The word for the newest cure of the program.
const LAST: &str = "last";

/// The cure of this name for a program that is started with these words.
pub fn named(name: &Path, program: &Program, words: &[OsString]) -> anyhow::Result<Cure> {
    match name == Path::new(LAST) {
        true => last(program, &quoted(words)),
        false => Ok(numakit_cure::read(name)?),
    }
}

/// The newest kept cure of this build of the program: of the same command line, else of any.
fn last(program: &Program, command: &str) -> anyhow::Result<Cure> {
    let name = program.name().display();
    let Some(build_id) = &program.build_id else {
        bail!(
            "--apply last: {name} has no build ID, by which its cure would be found; observe it with 'numa explain --cure FILE', and \
             link it with -Wl,--build-id"
        );
    };
    let folder = kept::folder().ok_or_else(|| {
        anyhow!("--apply last: no result is kept, since neither XDG_STATE_HOME nor HOME is set; name the file of a cure")
    })?;
    let (mut other_build, mut of_program) = (false, None);
    for (_, path) in kept::newest_first(&folder).unwrap_or_default() {
        match numakit_cure::read(&path) {
            // A cured run is observed like others, and has nothing left to cure.
            Ok(cure) if cure.objects.is_empty() && cure.environment.is_empty() => {}
            Ok(cure) if cure.program.build_id != *build_id => {
                other_build |= program.name() == OsStr::new(&cure.program.file);
            }
            Ok(cure) if cure.command == command => return Ok(cure),
            Ok(cure) => _ = of_program.get_or_insert(cure),
            Err(CureError::Without(_)) => {}
            // What is damaged cannot be told to be of this program; the next one may be.
            Err(_) => {}
        }
    }
    if let Some(cure) = of_program {
        return Ok(cure);
    }
    let why = if other_build { ": those that are kept are of other builds" } else { "" };
    bail!(
        "--apply last: no cure of this build of {name} is kept in {}{why}; observe it first: numa explain {name}",
        folder.display()
    )
}
