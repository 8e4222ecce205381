//! From a real program to the addresses that it waited for: method, memory and decoder together.

use crate::program::prepared;
use numakit_sampling::choice::{self, SampledProgram};
use numakit_sampling::operand::sampled::{SampledMemory, registers};
use numakit_sampling::operand::{Decoder, Operand};
use numakit_sampling::process::{MemoryKind, ObservedProcess};
use numakit_sampling::{Landing, MethodEvent, SampleSettings, open};
use numakit_sys::command::Running;
use numakit_sys::permissions::Permissions;
use numakit_testing::until;
use std::collections::HashMap;

/// A chain of loads through 64 MiB of anonymous memory, and the addresses between which it is.
#[test]
fn measuring_the_addresses_of_a_chain_are_in_its_array() {
    let Some(prepared) = prepared("chain 64 600") else { return };
    let permissions = Permissions::own_of(&choice::PERMISSIONS);
    // No library here.
    let obstacle = choice::PreloadObstacle("is sampled without a library".to_owned());
    let Ok(choice) = choice::choose(&permissions, SampledProgram::Command(Some(&obstacle)), None) else {
        return numakit_skips::SAMPLES.skip("neither performance events nor ptrace are permitted");
    };
    let (words, settings) =
        (prepared.words.clone(), SampleSettings { frequency: 499, ..SampleSettings::default() });
    let (mut method, mut running) =
        open::command(&choice, &settings, None, move |_| Running::start(&words)).unwrap();
    let (mut process, mut decoder) = (ObservedProcess::open(running.id()).unwrap(), Decoder::default());
    let landing = method.landing();
    if landing == Landing::Other {
        return numakit_skips::MACHINE.skip("samples of this machine land in no one place");
    }
    let mut found = Vec::new();
    until!({
        let ended = running.ended().unwrap();
        method
            .drain(&mut |event| match event {
                MethodEvent::Executed { .. } => {
                    process.executed();
                    decoder = Decoder::default();
                }
                MethodEvent::Mapped { .. } => {
                    process.refresh().into_iter().for_each(|range| decoder.forget(range));
                }
                MethodEvent::Sample(sample) if !sample.in_kernel => {
                    process.know(sample.registers.ip).into_iter().for_each(|range| decoder.forget(range));
                    let memory = SampledMemory { now: &process, stack: &sample.stack };
                    let operand = decoder.recover(&registers(&sample.registers), &memory, landing);
                    let address = match operand {
                        Operand::Memory(access) => Some(access.address),
                        _ => None,
                    };
                    let kind = address.and_then(|address| {
                        process.know(address);
                        process.kind(address, &sample.registers)
                    });
                    found.push((address, kind));
                }
                _ => {}
            })
            .unwrap();
        ended.is_some()
    });
    let words = prepared.output("array ");
    let (start, end) = words.split_once(' ').unwrap();
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let array = hex(start)..hex(end);
    let inside = found.iter().filter(|(address, _)| address.is_some_and(|address| array.contains(&address)));
    let mut kinds = HashMap::new();
    inside.clone().for_each(|(_, kind)| *kinds.entry(*kind).or_insert(0) += 1);
    // The array is written before it is read, so that some samples are elsewhere.
    let count = inside.count();
    assert!(count * 10 >= found.len() * 7, "{count} of {}: {kinds:?}", found.len());
    assert!(kinds.keys().all(|kind| *kind == Some(MemoryKind::Anonymous)), "{kinds:?}");
}
