//! Names of code: asking runtimes for them, and where they are missing.

use super::Explainer;
use crate::processes::{Processes, map_paths};
use crate::runtime::{self, NamelessCode, NamesReport, NamesSource, RuntimeNames, RuntimeProgram};
use numakit_sys::file::remove_own;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Component, Path};

impl Explainer {
    /// Takes the names that runtimes tell; asks those that run for the last time if this is the `complete` answer.
    pub(super) fn take_names(&mut self, complete: bool) {
        let Self { java, waits, processes, accounts, .. } = self;
        match (complete, waits) {
            (true, _) => java.finish(processes),
            (false, Some(waits)) => java.visit(processes, &|pid| waits.has_java_waiters(pid, accounts)),
            (false, None) => {}
        }
    }

    /// Removes the maps that processes of Node.js have written because this observation asked for them.
    fn remove_maps(&mut self) {
        for pid in self.processes.numbers() {
            if is_node(&self.processes, pid) {
                // Those of others, and what is no file, are left alone.
                let [_, path] = map_paths(pid);
                let _ = remove_own(&path);
            }
        }
    }

    /// How names came about, and where they are missing. Ask for it when all samples have been named: the `complete` answer
    /// leaves nothing behind.
    pub(super) fn names_report(&mut self, complete: bool) -> NamesReport {
        let (of_process, nameless) = self.nameless();
        let node = |process: u32| RuntimeNames {
            process,
            program: RuntimeProgram::Node,
            source: NamesSource::Nothing,
            // V8 keeps frame pointers.
            chains: true,
            nameless: 0,
            dumps: 0,
            longest_dump: 0,
        };
        let Self { java, processes, .. } = self;
        let numbers = processes.numbers().into_iter();
        let of_node: Vec<RuntimeNames> = numbers.filter(|pid| is_node(processes, *pid)).map(node).collect();
        let mut runtimes: Vec<RuntimeNames> = java.names().chain(of_node).collect();
        for names in &mut runtimes {
            names.nameless = of_process.get(&names.process).copied().unwrap_or(0);
            if !matches!(names.source, NamesSource::Asked { .. }) && processes.has_names(names.process) {
                names.source = NamesSource::Map;
            }
        }
        if complete && self.writes_maps {
            self.remove_maps();
        }
        NamesReport { runtimes, nameless }
    }

    /// The CPU time of samples without names: in code that each process has compiled, and by file.
    fn nameless(&self) -> (BTreeMap<u32, u64>, Vec<NamelessCode>) {
        let (mut of_process, mut of_file) = (BTreeMap::new(), BTreeMap::new());
        for at in &self.collector.observations {
            match self.processes.nameless(at.process, at.instruction) {
                Some(Some(path)) => *of_file.entry(inside(path)).or_insert(0) += at.weight,
                Some(None) => {
                    let pid = self.processes.number_at(at.process);
                    pid.into_iter().for_each(|pid| *of_process.entry(pid).or_insert(0) += at.weight);
                }
                None => {}
            }
        }
        let mut files: Vec<NamelessCode> =
            of_file.into_iter().map(|(path, time)| NamelessCode { path, time }).collect();
        files.sort_by_key(|file| Reverse(file.time));
        (of_process, files)
    }
}

fn is_node(processes: &Processes, pid: u32) -> bool {
    processes.has_loaded(pid, runtime::is_node)
}

/// A path as its process sees it, without `/proc/PID/root`.
fn inside(path: &Path) -> String {
    let parts: Vec<Component<'_>> = path.components().collect();
    let is = |at: usize, name: &str| parts.get(at).is_some_and(|part| part.as_os_str() == name);
    let skipped = if is(1, "proc") && is(3, "root") { 4 } else { 1 };
    let rest: std::path::PathBuf = parts.iter().skip(skipped).collect();
    Path::new("/").join(rest).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_as_its_process_sees_it() {
        for (path, expected) in [
            ("/usr/lib/a.so", "/usr/lib/a.so"),
            ("/proc/12/root/usr/lib/a.so", "/usr/lib/a.so"),
            ("/proc/x", "/proc/x"),
        ] {
            assert_eq!(inside(Path::new(path)), expected);
        }
    }
}
