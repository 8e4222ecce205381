//! The bases of threads: those that are searched for are those that ptrace shows.

use crate::program::prepared;
use numakit_sampling::process::ObservedProcess;
use numakit_sampling::ptrace::PtraceMethod;
use numakit_sampling::{Landing, Method, MethodEvent, SampleSettings};
use numakit_sys::command::Running;
use numakit_sys::permissions::{Permission, Permissions};
use numakit_testing::until;
use std::collections::BTreeMap;

#[test]
fn measuring_the_bases_of_all_threads_are_found() {
    if let Err(refusal) = Permissions::own_of(&[Permission::Tracing]).check(Permission::Tracing) {
        return numakit_skips::PRIVILEGES.skip(refusal);
    }
    // The first thread spins too, once.
    for arguments in ["threads 3 900", "spin 1 2700"] {
        let Some(prepared) = prepared(arguments) else { return };
        let words = prepared.words.clone();
        let start = move || Running::start(&words);
        let (mut method, mut running) =
            PtraceMethod::for_command(&SampleSettings::default(), Landing::Other, start).unwrap();
        let mut process = ObservedProcess::open(running.id()).unwrap();
        let mut found = BTreeMap::new();
        until!({
            method
                .drain(&mut |event| match event {
                    MethodEvent::Executed { .. } => {
                        process.executed();
                        found.clear();
                    }
                    MethodEvent::Sample(sample) if !sample.in_kernel => {
                        let pointer = sample.registers.stack_pointer();
                        process.know(pointer);
                        if process.mapping(pointer).is_some() {
                            let base = process.thread_base(sample.thread, pointer);
                            *found.entry((base, sample.registers.thread_base)).or_insert(0) += 1;
                        }
                    }
                    _ => {}
                })
                .unwrap();
            running.ended().unwrap().is_some()
        });
        let sum: i32 = found.values().sum();
        let right: i32 =
            found.iter().filter(|((base, exact), _)| base == exact).map(|(_, count)| count).sum();
        // A sample from before the C library was ready has no base yet.
        assert!(sum > 10 && right * 10 >= sum * 9, "{right} of {sum}: {found:x?}");
    }
}
