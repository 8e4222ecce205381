//! AArch64.

use crate::expression::evaluate;
use crate::golden::{Assembler, Line, kind};
use numakit_sampling::operand::{AddressSpace, ArmDecoder, ArmRegisters, Landing, Operand};

const ASSEMBLER: Assembler = Assembler {
    file: "arm.txt",
    program: "aarch64-linux-gnu-as",
    copy: "aarch64-linux-gnu-objcopy",
    head: ".arch armv8.5-a\n.text",
};
const START: u64 = 0x40_0040;
const NOP: u32 = 0xd503_201f;

/// Instructions between others; all data addresses are there.
struct Words(Vec<u32>);

impl AddressSpace for Words {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        // Each word holds its own address and some bits.
        for (byte, at) in into.iter_mut().zip(address..) {
            *byte = ((at & !7) ^ 0x55).to_le_bytes()[(at % 8) as usize];
        }
        true
    }

    fn code(&self, address: u64, into: &mut [u8]) -> usize {
        if !(START - 0x1000..START + 0x2000).contains(&address) {
            return 0;
        }
        for (byte, at) in into.iter_mut().zip(address..) {
            let inside = at.checked_sub(START).and_then(|at| self.0.get(at as usize / 4));
            *byte = inside.copied().unwrap_or(NOP).to_le_bytes()[(at % 4) as usize];
        }
        into.len()
    }
}

fn registers(pc: u64) -> ArmRegisters {
    let mut general = [0; 31];
    for (number, register) in (0u64..).zip(&mut general) {
        *register = 0x5500_1000_0000 + 0x10_1000 * number;
    }
    ArmRegisters { general, sp: 0x7fff_0000_1000, pc, state: 0 }
}

/// What is wrong with what is found.
fn check(line: &Line) -> Option<String> {
    let registers = registers(START + line.bytes.len() as u64);
    let value = |name: &str| match name {
        "start" => START,
        "sp" => registers.sp,
        name => registers.general[name[1..].parse::<usize>().unwrap()],
    };
    let code = line.bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let found = ArmDecoder::default().recover(&registers, &Words(code), Landing::Behind);
    let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
    let address = evaluate(&line.address, &value);
    let right = match (words.as_slice(), found) {
        (["none"], found) => found == Operand::Computing,
        (["unknown"], Operand::Unknown { kind, .. }) => kind.is_some(),
        (["unknown"], Operand::Object { .. }) => line.assembly.contains("lsl"),
        ([what, size, rule], Operand::Memory(access)) => {
            let found = (access.instruction, access.address, access.size, access.kind, access.rule.word());
            found == (registers.pc - 4, address, size.parse().unwrap(), kind(what), *rule)
        }
        _ => false,
    };
    (!right).then(|| format!("{}: {:?} {address:x}: {found:x?}", line.assembly, line.words))
}

#[test]
fn each_operand_of_aarch64_is_recovered() {
    let lines = ASSEMBLER.lines();
    assert!(lines.len() > 70, "{}", lines.len());
    let wrong: Vec<String> = lines.iter().filter_map(check).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_bytes_for_aarch64_are_those_of_the_assembler() {
    ASSEMBLER.check();
}
