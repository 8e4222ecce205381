//! The cure that a command names: a file, or the last one of its program.

use anyhow::{anyhow, bail};
use numakit_cure::Cure;
use numakit_explain::module_files::ModuleFile;
use numakit_findings::comparison::explained::kept;
use numakit_launch::Program;
use numakit_sys::SysRoot;
use numakit_sys::command::quoted;
use numakit_sys::proc::{TaskDir, tree};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The word for the newest cure of the program.
const LAST: &str = "last";

/// The cure of this name for a program that is started with these words.
pub fn named(name: &Path, program: &Program, words: &[OsString]) -> anyhow::Result<Cure> {
    match name == Path::new(LAST) {
        true => last(program, words, &quoted(words)),
        false => Ok(numakit_cure::read(name)?),
    }
}

/// The cure of this name for processes that run, or for one of those that descend from them.
pub fn of_running(name: &Path, root: &SysRoot, processes: &[u32]) -> anyhow::Result<Cure> {
    if name != Path::new(LAST) {
        return Ok(numakit_cure::read(name)?);
    }
    let of = |process: u32| {
        let (name, read) = ModuleFile::of_process(root, process);
        let build_id = read.map(|read| read.file.build_id).filter(|id| !id.is_empty());
        let line = TaskDir::of(root, process).bytes("cmdline").unwrap_or_default();
        let words = line.strip_suffix(&[0]).unwrap_or(&line).split(|byte| *byte == 0);
        let words: Vec<OsString> = words.map(|word| OsStr::from_bytes(word).to_owned()).collect();
        let program = Program { build_id, ..Program::elsewhere(OsStr::new(&name)) };
        last(&program, &words, &format!("--pid {process}"))
    };
    // Without a cure for any of them, what is said is about the first one.
    let mut first = None;
    for process in tree::families(root, processes) {
        match of(process) {
            Ok(cure) => return Ok(cure),
            Err(why) => _ = first.get_or_insert(why),
        }
    }
    Err(first.unwrap_or_else(|| anyhow!("--apply last: the process has ended")))
}

/// The newest kept cure: of this command line, else of this build of the program, else of what its launcher started, such as
/// `taskset ff ./app`. `observed` is what `numa explain` observes to have one.
fn last(program: &Program, words: &[OsString], observed: &str) -> anyhow::Result<Cure> {
    let folder = kept::folder().ok_or_else(|| {
        anyhow!("--apply last: no result is kept, since neither XDG_STATE_HOME nor HOME is set; name the file of a cure")
    })?;
    let (command, launcher) = (quoted(words), quoted(&words[..words.len().min(1)]) + " ");
    let (mut other_build, mut nothing, mut of_program, mut of_launched) = (false, false, None, None);
    let kept = kept::newest_first(&folder).map_err(|error| {
        anyhow!(
            "--apply last: cannot read {}: {error}; make it readable, or name the file of a cure",
            folder.display()
        )
    })?;
    for (_, path) in kept {
        // What is damaged cannot be told to be of this program; the next one may be.
        let Ok(cure) = numakit_cure::read(&path) else { continue };
        let is_of_build = program.build_id.as_ref() == Some(&cure.program.build_id);
        let is_of_name = program.name() == OsStr::new(&cure.program.file);
        // A cured run is observed like others, and has nothing left to cure.
        if cure.objects.is_empty() && cure.environment.is_empty() && cure.sharing.is_empty() {
            nothing |= is_of_build;
            continue;
        }
        if is_of_name && !is_of_build {
            other_build = true;
        } else if cure.command == command {
            return Ok(cure);
        } else if is_of_build {
            _ = of_program.get_or_insert(cure);
        } else if cure.command.starts_with(&launcher) {
            _ = of_launched.get_or_insert(cure);
        }
    }
    if let Some(cure) = of_program.or(of_launched) {
        return Ok(cure);
    }
    let name = program.name().display();
    if nothing {
        bail!(
            "--apply last: {name} was observed, and that gave no cure: nothing in it needs one, or too little was seen; \
             'numa show' says which"
        );
    }
    let why = match (other_build, &program.build_id) {
        (true, _) => ": those that are kept are of other builds",
        (false, None) => ", and it has no build ID, by which it would be found: link it with -Wl,--build-id",
        (false, Some(_)) => "",
    };
    bail!(
        "--apply last: no cure of this build of {name} is kept in {}{why}; observe it first: numa explain {observed}",
        folder.display()
    )
}
