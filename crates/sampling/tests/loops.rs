//! Loops: the next execution of an instruction, the next link of a chain, and all operands ahead.

use numakit_sampling::operand::{
    AccessKind, AddressSpace, ArmDecoder, ArmRegisters, Decoder, Landing, MemoryAccess, Operand,
    RecoveryRule, X86Registers,
};

const START: u64 = 0x40_0000;

/// Code at `START`; each word of data holds `at / 8 % 256`.
struct Loop(Vec<u8>);

impl AddressSpace for Loop {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        for (byte, at) in into.iter_mut().zip(address..) {
            *byte = (at / 8 % 256).to_le_bytes()[(at % 8) as usize];
        }
        true
    }

    fn code(&self, address: u64, into: &mut [u8]) -> usize {
        let there = address.checked_sub(START).and_then(|at| self.0.get(at as usize..)).unwrap_or_default();
        let count = there.len().min(into.len());
        into[..count].copy_from_slice(&there[..count]);
        count
    }
}

/// ```text
/// 00 mov rax, [rdi]    03 call 12    08 add rdi, 8    0c cmp rdi, rsi    0f jne 00    11 hlt
/// 12 mov rcx, [rbx + rax * 8]    16 add [rdx], rcx    19 ret
/// 1a mov rax, [rax + 16]    1e test rax, rax    21 jne 1a    23 hlt
/// 24 mov rbx, [rbx + rcx * 8]    28 add rbx, 1    2c and rbx, 255    33 lea rbx, [r8 + rbx * 8]    37 inc rcx
/// 3a jmp 24
/// ```
fn x86() -> Loop {
    Loop(vec![
        0x48, 0x8b, 0x07, 0xe8, 0x0a, 0, 0, 0, 0x48, 0x83, 0xc7, 0x08, 0x48, 0x39, 0xf7, 0x75, 0xef, 0xf4,
        0x48, 0x8b, 0x0c, 0xc3, 0x48, 0x01, 0x0a, 0xc3, 0x48, 0x8b, 0x40, 0x10, 0x48, 0x85, 0xc0, 0x75, 0xf7,
        0xf4, 0x48, 0x8b, 0x1c, 0xcb, 0x48, 0x83, 0xc3, 0x01, 0x48, 0x81, 0xe3, 0xff, 0, 0, 0, 0x49, 0x8d,
        0x1c, 0xd8, 0x48, 0xff, 0xc1, 0xeb, 0xe8,
    ])
}

fn registers(offset: u64) -> X86Registers {
    let mut general = [0; 16];
    for (number, register) in (0u64..).zip(&mut general) {
        *register = 0x1000_0000 * (number + 1);
    }
    X86Registers { general, ip: START + offset, flags: 0x202, fs_base: None, gs_base: None }
}

fn memory(instruction: u64, address: u64, size: u32, kind: AccessKind, rule: RecoveryRule) -> MemoryAccess {
    MemoryAccess { instruction: START + instruction, address, size, kind, rule }
}

#[test]
fn the_instructions_ahead_go_through_calls_and_round_the_loop() {
    let mut decoder = Decoder::default();
    let found = decoder.ahead(&registers(0), &x86());
    let registers = registers(0).general;
    let (rdi, rbx, rdx, rsp) = (registers[7], registers[3], registers[2], registers[4]);
    let (load, store, update) = (AccessKind::Load, AccessKind::Store, AccessKind::Update);
    let direct = RecoveryRule::Direct;
    let round = |n: u64| {
        let rdi = rdi + 8 * n;
        [
            memory(0, rdi, 8, load, direct),
            memory(3, rsp - 8, 8, store, RecoveryRule::Stack),
            // The index is what the first load reads.
            memory(0x12, rbx + 8 * (rdi / 8 % 256), 8, load, direct),
            memory(0x16, rdx, 8, update, direct),
            memory(0x19, rsp - 8, 8, load, RecoveryRule::Stack),
        ]
    };
    // 8 instructions a round, of which the fifth accesses the last of them.
    let expected: Vec<_> = (0..).flat_map(round).take(found.accesses.len()).collect();
    assert_eq!(found.accesses, expected);
    assert!(
        found.accesses.len() as u32 >= found.instructions / 8 * 5 && found.instructions >= 24,
        "{found:?}"
    );
}

#[test]
fn what_is_counted_ahead_is_not_read() {
    struct Counted(Loop, std::cell::Cell<u32>);
    impl AddressSpace for Counted {
        fn read(&self, address: u64, into: &mut [u8]) -> bool {
            self.1.set(self.1.get() + 1);
            self.0.read(address, into)
        }
        fn code(&self, address: u64, into: &mut [u8]) -> usize {
            self.0.code(address, into)
        }
    }
    // 00 inc qword [rax]    03 add rax, 64    07 mov rcx, [rdx]    0a jmp 00
    let code = vec![0x48, 0xff, 0, 0x48, 0x83, 0xc0, 0x40, 0x48, 0x8b, 0x0a, 0xeb, 0xf4];
    let space = Counted(Loop(code), std::cell::Cell::new(0));
    let mut decoder = Decoder::default();
    let found = decoder.ahead(&registers(0), &space);
    assert_eq!((found.accesses.len() as u32, space.1.get()), (found.instructions / 2, 1));
}

#[test]
fn what_is_behind_a_link_ahead_is_of_the_chain() {
    // 00 add rdx, [rax+8]    04 mov rax, [rax]    07 mov rcx, [rbx+rdx*8]    0b jmp 00
    let code = Loop(vec![0x48, 3, 0x50, 8, 0x48, 0x8b, 0, 0x48, 0x8b, 0x0c, 0xd3, 0xeb, 0xf3]);
    let mut decoder = Decoder::default();
    let rules: Vec<(u64, RecoveryRule)> = decoder
        .ahead(&registers(4), &code)
        .accesses
        .iter()
        .map(|access| (access.instruction - START, access.rule))
        .collect();
    let (direct, chain) = (RecoveryRule::Direct, RecoveryRule::Chain);
    // The sampled register is no link yet; an index that was loaded is none.
    assert_eq!(rules[..5], [(4, direct), (7, direct), (0, chain), (4, chain), (7, direct)]);
}

#[test]
fn the_next_link_of_a_chain_is_the_loaded_value() {
    let registers = registers(0x1e);
    let found = Decoder::default().recover(&registers, &x86(), Landing::Behind);
    let rule = RecoveryRule::Chain;
    assert_eq!(found, Operand::Memory(memory(0x1a, registers.general[0] + 16, 8, AccessKind::Load, rule)));
}

#[test]
fn the_next_execution_stands_for_one_whose_registers_are_gone() {
    let registers = registers(0x28);
    let found = Decoder::default().recover(&registers, &x86(), Landing::Behind);
    let [_, rcx, _, rbx, _, _, _, _, r8, ..] = registers.general;
    let address = r8 + 8 * ((rbx + 1) & 255) + 8 * (rcx + 1);
    assert_eq!(found, Operand::Memory(memory(0x24, address, 8, AccessKind::Load, RecoveryRule::Next)));
}

#[test]
fn one_further_is_the_instruction_before() {
    let registers = registers(0x16);
    let mut decoder = Decoder::default();
    let found = decoder.recover(&registers, &x86(), Landing::Behind);
    let [rax, _, _, rbx, ..] = registers.general;
    let address = rbx + 8 * rax;
    assert_eq!(found, Operand::Memory(memory(0x12, address, 8, AccessKind::Load, RecoveryRule::Direct)));
    // Behind `add [rdx], rcx` the same load waited, and its index still holds.
    let later = X86Registers { ip: START + 0x19, ..registers };
    let found = decoder.recover(&later, &x86(), Landing::OneFurther);
    assert_eq!(found, Operand::Memory(memory(0x12, address, 8, AccessKind::Load, RecoveryRule::Direct)));
    assert!(matches!(
        decoder.recover(&later, &x86(), Landing::BlockStart),
        Operand::Unknown { kind: None, .. }
    ));
}

#[test]
fn rewritten_code_is_read_again() {
    struct Changing(Vec<u8>);
    impl AddressSpace for Changing {
        fn read(&self, _: u64, _: &mut [u8]) -> bool {
            false
        }
        fn code(&self, address: u64, into: &mut [u8]) -> usize {
            Loop(self.0.clone()).code(address, into)
        }
        fn changes(&self, _: u64) -> bool {
            true
        }
    }
    // mov rax, [rbx], and then nop in its place.
    let mut decoder = Decoder::default();
    let before = decoder.recover(&registers(3), &Changing(vec![0x48, 0x8b, 0x03, 0x90]), Landing::Behind);
    assert!(matches!(before, Operand::Memory(_)), "{before:?}");
    let after = decoder.recover(&registers(3), &Changing(vec![0x90; 4]), Landing::Behind);
    assert_eq!(after, Operand::Computing);
    // Without notice of changes what is kept holds until it is forgotten.
    let nops = Loop(vec![0x48, 0x8b, 0x03, 0x90]);
    assert_eq!(decoder.recover(&registers(3), &nops, Landing::Behind), Operand::Computing);
    decoder.forget(START..START + 4);
    assert!(matches!(decoder.recover(&registers(3), &nops, Landing::Behind), Operand::Memory(_)));
}

/// ```text
/// 00 ldr x1, [x1]    04 cbnz x1, 00
/// 08 ldr x4, [x2], #8    0c ldr x5, [x6, x4, lsl #3]    10 subs x3, x3, #1    14 b.ne 08    18 ret
/// ```
fn arm() -> Loop {
    let words: [u32; 7] =
        [0xf940_0021, 0xb5ff_ffe1, 0xf840_8444, 0xf864_78c5, 0xf100_0463, 0x54ff_ffa1, 0xd65f_03c0];
    Loop(words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

fn arm_registers(offset: u64) -> ArmRegisters {
    let mut general = [0; 31];
    for (number, register) in (0u64..).zip(&mut general) {
        *register = 0x1000_0000 * (number + 1);
    }
    ArmRegisters { general, sp: 0x7fff_0000, pc: START + offset, state: 0 }
}

#[test]
fn loops_of_aarch64() {
    let mut decoder = ArmDecoder::default();
    let load = AccessKind::Load;
    let link = decoder.recover(&arm_registers(4), &arm(), Landing::Behind);
    assert_eq!(link, Operand::Memory(memory(0, 0x2000_0000, 8, load, RecoveryRule::Chain)));
    let found = decoder.ahead(&arm_registers(8), &arm()).accesses[..2].to_vec();
    let direct = RecoveryRule::Direct;
    let index = 0x3000_0000 / 8 % 256;
    let expected =
        [memory(8, 0x3000_0000, 8, load, direct), memory(12, 0x7000_0000 + 8 * index, 8, load, direct)];
    assert_eq!(found, expected);
    let further = decoder.recover(&arm_registers(16), &arm(), Landing::OneFurther);
    assert_eq!(further, Operand::Memory(memory(8, 0x3000_0000 - 8, 8, load, RecoveryRule::Slice)));
}
