//! x86-64.

use crate::expression::evaluate;
use crate::golden::{Assembler, Line, kind};
use numakit_sampling::operand::{AddressSpace, Decoder, Landing, Operand, X86Registers};

const ASSEMBLER: Assembler =
    Assembler { file: "x86.txt", program: "as", copy: "objcopy", head: ".intel_syntax noprefix\n.text" };
const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];
const START: u64 = 0x40_0040;
const FS: u64 = 0x7f00_0000_0000;
const GS: u64 = 0x7e00_0000_0000;

/// One instruction between instructions of one byte; all data addresses are there.
struct Bytes<'a>(&'a [u8]);

impl AddressSpace for Bytes<'_> {
    fn read(&self, _: u64, into: &mut [u8]) -> bool {
        into.fill(0);
        true
    }

    fn code(&self, address: u64, into: &mut [u8]) -> usize {
        if !(START - 0x1000..START + 0x2000).contains(&address) {
            return 0;
        }
        for (byte, at) in into.iter_mut().zip(address..) {
            let inside = at.checked_sub(START).and_then(|at| self.0.get(at as usize));
            // No operand is in a nop or in a halt.
            *byte = inside.copied().unwrap_or(if at < START { 0x90 } else { 0xf4 });
        }
        into.len()
    }
}

fn registers(line: &Line) -> X86Registers {
    let mut general = [0; 16];
    for (number, register) in (0u64..).zip(&mut general) {
        *register = 0x5500_1000_0000 + 0x10_1000 * number;
    }
    let ip = START + line.bytes.len() as u64;
    X86Registers { general, ip, flags: 0x202, fs_base: Some(FS), gs_base: Some(GS) }
}

/// What is wrong with what is found.
fn check(line: &Line) -> Option<String> {
    let registers = registers(line);
    let value = |name: &str| match name {
        "end" => registers.ip,
        "fs" => FS,
        "gs" => GS,
        name => registers.general[NAMES.iter().position(|n| *n == name).unwrap()],
    };
    let found = Decoder::default().recover(&registers, &Bytes(&line.bytes), Landing::Behind);
    let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
    let address = evaluate(&line.address, &value);
    let right = match (words.as_slice(), found) {
        (["none"], found) => found == Operand::Computing,
        (["unknown"], Operand::Unknown { instruction, kind }) => instruction == START && kind.is_some(),
        ([what, _, "object"], Operand::Object { instruction, base, kind: found }) => {
            (instruction, base, found) == (START, address, kind(what))
        }
        ([what, size, rule], Operand::Memory(access)) => {
            let found = (access.instruction, access.address, access.size, access.kind, access.rule.word());
            found == (START, address, size.parse().unwrap(), kind(what), *rule)
        }
        _ => false,
    };
    (!right).then(|| format!("{}: {:?} {address:x}: {found:x?}", line.assembly, line.words))
}

#[test]
fn each_operand_is_recovered() {
    let lines = ASSEMBLER.lines();
    assert!(lines.len() > 90, "{}", lines.len());
    let wrong: Vec<String> = lines.iter().filter_map(check).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_bytes_are_those_of_the_assembler() {
    ASSEMBLER.check();
}
