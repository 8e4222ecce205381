//! Cures for tests.

use crate::{
    Cure, CuredIdentity, CuredObject, CuredThreads, ObjectPart, ObjectPolicy, PageSize, PartsOver,
    ProgramFile, SetVariable,
};

/// Parts from, to, of a thread.
pub(crate) fn parts(all: &[(u32, u32, u32)]) -> ObjectPolicy {
    let part =
        |&(from, to, thread): &(u32, u32, u32)| ObjectPart { from, to, thread, samples: 20, sure: 0.97 };
    ObjectPolicy::Parts { over: PartsOver::Block, parts: all.iter().map(part).collect() }
}

/// A cure of one variable in these parts, by as many threads as the machine has CPUs.
pub(crate) fn cure(all: &[(u32, u32, u32)]) -> Cure {
    let program = ProgramFile { file: "app".to_owned(), build_id: "ab12".to_owned() };
    let working: std::collections::BTreeSet<u32> = all.iter().map(|part| part.2).collect();
    Cure {
        version: Cure::VERSION,
        command: "./app".to_owned(),
        threads: CuredThreads {
            count: working.last().map_or(0, |last| last + 1),
            cpus: working.len() as u32,
            working: working.into_iter().collect(),
            open_mp: false,
        },
        environment: vec![SetVariable {
            name: "OMP_PROC_BIND".to_owned(),
            value: "true".to_owned(),
            reason: "threads stay".to_owned(),
        }],
        objects: vec![CuredObject {
            name: "p".to_owned(),
            verdict: "first-touch".to_owned(),
            reason: "one thread touched it first".to_owned(),
            identity: CuredIdentity::Variable { module: program.clone(), address: 0x4040, bytes: 1 << 20 },
            policy: parts(all),
            pages: PageSize::AsItIs,
        }],
        program,
        left: Vec::new(),
        sharing: Vec::new(),
    }
}
