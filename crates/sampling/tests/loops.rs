//! Loops: the next execution of an instruction, the next link of a chain, and all operands ahead.

use numakit_sampling::operand::{
    AccessKind, AddressSpace, ArmDecoder, ArmRegisters, Decoder, Landing, MemoryAccess, Operand, Reach,
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
    let found = decoder.ahead(&registers(0), &x86(), Reach::NEAR);
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
    let found = decoder.ahead(&registers(0), &space, Reach::NEAR);
    assert_eq!((found.accesses.len() as u32, space.1.get()), (found.instructions / 2, 1));
}

#[test]
fn what_is_behind_a_link_ahead_is_of_the_chain() {
    // 00 add rdx, [rax+8]    04 mov rax, [rax]    07 mov rcx, [rbx+rdx*8]    0b jmp 00
    let code = Loop(vec![0x48, 3, 0x50, 8, 0x48, 0x8b, 0, 0x48, 0x8b, 0x0c, 0xd3, 0xeb, 0xf3]);
    let mut decoder = Decoder::default();
    let rules: Vec<(u64, RecoveryRule)> = decoder
        .ahead(&registers(4), &code, Reach::NEAR)
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
    let found = decoder.ahead(&arm_registers(8), &arm(), Reach::NEAR).accesses[..2].to_vec();
    let direct = RecoveryRule::Direct;
    let index = 0x3000_0000 / 8 % 256;
    let expected =
        [memory(8, 0x3000_0000, 8, load, direct), memory(12, 0x7000_0000 + 8 * index, 8, load, direct)];
    assert_eq!(found, expected);
    let further = decoder.recover(&arm_registers(16), &arm(), Landing::OneFurther);
    assert_eq!(further, Operand::Memory(memory(8, 0x3000_0000 - 8, 8, load, RecoveryRule::Slice)));
}

/// The address that a load has behind these instructions, with these numbers in rax, rcx, rdx and rsi.
fn address_behind(instructions: &[u8], load: &[u8], [rax, rcx, rdx, rsi]: [u64; 4]) -> Option<u64> {
    let code = Loop([instructions, load].concat());
    let mut registers = registers(0);
    (registers.general[0], registers.general[1]) = (rax, rcx);
    (registers.general[2], registers.general[6]) = (rdx, rsi);
    let at = START + instructions.len() as u64;
    let mut decoder = Decoder::default();
    let ahead = decoder.ahead(&registers, &code, Reach::to_next(at));
    ahead.accesses.iter().find(|access| access.instruction == at).map(|access| access.address)
}

/// A hash is divided by the number of buckets on the way to a bucket.
#[test]
fn products_and_quotients_are_followed() {
    const LOAD_RAX: [u8; 3] = [0x48, 0x8b, 0x38];
    const LOAD_RDX: [u8; 3] = [0x48, 0x8b, 0x3a];
    let numbers = [0x1234_5678_9abc_def0, 0xfeed_beef_cafe_0001, 0x77, 0x1_0003];
    let [rax, rcx, rdx, rsi] = numbers;
    let product = u128::from(rax) * u128::from(rcx);
    // mul rcx
    assert_eq!(address_behind(&[0x48, 0xf7, 0xe1], &LOAD_RAX, numbers), Some(product as u64));
    assert_eq!(address_behind(&[0x48, 0xf7, 0xe1], &LOAD_RDX, numbers), Some((product >> 64) as u64));
    // imul rcx
    let signed = i128::from(rax as i64) * i128::from(rcx as i64);
    assert_eq!(address_behind(&[0x48, 0xf7, 0xe9], &LOAD_RDX, numbers), Some((signed >> 64) as u64));
    // xor edx, edx; div rsi
    let quotient = [0x31, 0xd2, 0x48, 0xf7, 0xf6];
    assert_eq!(address_behind(&quotient, &LOAD_RAX, numbers), Some(rax / rsi));
    assert_eq!(address_behind(&quotient, &LOAD_RDX, numbers), Some(rax % rsi));
    // div rsi, of 128 bits
    let dividend = u128::from(rdx) << 64 | u128::from(rax);
    let found = address_behind(&[0x48, 0xf7, 0xf6], &LOAD_RDX, numbers);
    assert_eq!(found, Some((dividend % u128::from(rsi)) as u64));
    // cqo; idiv rsi, of negative numbers
    let numbers = [(-100_000i64) as u64, 0, 0, (-7i64) as u64];
    assert_eq!(address_behind(&[0x48, 0x99, 0x48, 0xf7, 0xfe], &LOAD_RAX, numbers), Some(14_285));
    // A division by 0, or with a quotient that has no room, traps.
    assert_eq!(address_behind(&quotient, &LOAD_RAX, [1, 0, 0, 0]), None);
    assert_eq!(address_behind(&[0x48, 0xf7, 0xf6], &LOAD_RAX, [1, 0, 9, 3]), None);
}

/// A jump behind a shift or a search for a bit depends on the result.
#[test]
fn flags_of_shifts_and_searches_are_known() {
    const LOAD_RAX: [u8; 3] = [0x48, 0x8b, 0x38];
    // shr rcx, 4; je over the addition; add rax, 64
    let shift = [0x48, 0xc1, 0xe9, 0x04, 0x74, 0x04, 0x48, 0x83, 0xc0, 0x40];
    assert_eq!(address_behind(&shift, &LOAD_RAX, [0x1000, 0x0f, 0, 0]), Some(0x1000));
    assert_eq!(address_behind(&shift, &LOAD_RAX, [0x1000, 0x1f, 0, 0]), Some(0x1040));
    // bt rcx, 5; jae over the addition.
    let test = [0x48, 0x0f, 0xba, 0xe1, 0x05, 0x73, 0x04, 0x48, 0x83, 0xc0, 0x40];
    assert_eq!(address_behind(&test, &LOAD_RAX, [0x1000, 0x20, 0, 0]), Some(0x1040));
    assert_eq!(address_behind(&test, &LOAD_RAX, [0x1000, 0xdf, 0, 0]), Some(0x1000));
}

/// A thread that waits at a barrier waits for its last store. The atomic instruction on the stack is what compilers make of a
/// barrier.
#[test]
fn a_barrier_waits_for_the_store_before_it() {
    let recovered = |code: &[u8]| {
        let code = Loop([code, &[0x90, 0x90, 0xc3]].concat());
        Decoder::default().recover(&registers(code.0.len() as u64 - 3), &code, Landing::Behind)
    };
    let general = registers(0).general;
    let (rdi, rsp) = (general[7], general[4]);
    let store = [0x90, 0x48, 0x89, 0x07, 0x48, 0x89, 0x44, 0x24, 0x08];
    // nop; mov [rdi], rax; mov [rsp+8], rax; then lock add qword [rsp-64], 0; or mfence
    let found = Operand::Memory(memory(1, rdi, 8, AccessKind::Store, RecoveryRule::Direct));
    let lock_add = [0xf0, 0x48, 0x83, 0x44, 0x24, 0xc0, 0x00];
    assert_eq!(recovered(&[&store[..], &lock_add].concat()), found);
    assert_eq!(recovered(&[&store[..], &[0x0f, 0xae, 0xf0]].concat()), found);
    // An atomic instruction elsewhere waits for its own line: lock add qword [rdi], 0.
    let own = Operand::Memory(memory(9, rdi, 8, AccessKind::Atomic, RecoveryRule::Direct));
    assert_eq!(recovered(&[&store[..], &[0xf0, 0x48, 0x83, 0x07, 0x00]].concat()), own);
    // So does one that changes a variable on the stack: lock add qword [rsp-64], 1.
    let local = [0xf0, 0x48, 0x83, 0x44, 0x24, 0xc0, 0x01];
    let variable = Operand::Memory(memory(9, rsp - 64, 8, AccessKind::Atomic, RecoveryRule::Direct));
    assert_eq!(recovered(&[&store[..], &local].concat()), variable);
    // Without a store before it, there is only the stack.
    let alone = Operand::Memory(memory(1, rsp - 64, 8, AccessKind::Atomic, RecoveryRule::Direct));
    assert_eq!(recovered(&[&[0x90][..], &lock_add].concat()), alone);
}

/// The group of control bytes of a hash table that is searched for the byte of a hash, as compiled Rust does it.
#[test]
fn a_group_of_control_bytes_is_searched() {
    const LOAD: [u8; 4] = [0x4c, 0x8b, 0x04, 0xc8];
    let code = [
        &[0x66, 0x0f, 0x6e, 0xc2][..],   // movd xmm0, edx
        &[0x66, 0x0f, 0x60, 0xc0],       // punpcklbw xmm0, xmm0
        &[0xf2, 0x0f, 0x70, 0xc0, 0x00], // pshuflw xmm0, xmm0, 0
        &[0x66, 0x0f, 0x70, 0xc0, 0x44], // pshufd xmm0, xmm0, 0x44
        &[0xf3, 0x0f, 0x6f, 0x0e],       // movdqu xmm1, [rsi]
        &[0x66, 0x0f, 0x6f, 0xd1],       // movdqa xmm2, xmm1
        &[0x66, 0x0f, 0x74, 0xd0],       // pcmpeqb xmm2, xmm0
        &[0x66, 0x0f, 0xd7, 0xca],       // pmovmskb ecx, xmm2
        &[0x0f, 0xbc, 0xc9],             // bsf ecx, ecx
    ]
    .concat();
    // The words of the group are 1 and 2.
    let group = 0x5000_0008;
    let found = |byte: u64| address_behind(&code, &LOAD, [0x9000, 0, byte, group]);
    assert_eq!(found(1), Some(0x9000));
    assert_eq!(found(2), Some(0x9000 + 8 * 8));
    assert_eq!(found(0), Some(0x9000 + 8));
    // Without a match, bsf leaves its register as it was, and the address is not known.
    assert_eq!(found(7), None);
}

/// A hash of a key and a seed by a round of AES, as Go's maps compute it.
#[test]
fn a_hash_by_aes_is_followed() {
    const LOAD: [u8; 4] = [0x4c, 0x8b, 0x04, 0xc8];
    let code = [
        &[0x66, 0x48, 0x0f, 0x6e, 0xc2][..],         // movq xmm0, rdx
        &[0x66, 0x48, 0x0f, 0x3a, 0x22, 0x06, 0x01], // pinsrq xmm0, [rsi], 1
        &[0x66, 0x0f, 0x38, 0xdc, 0x06],             // aesenc xmm0, [rsi]
        &[0x66, 0x48, 0x0f, 0x7e, 0xc1],             // movq rcx, xmm0
        &[0x81, 0xe1, 0xff, 0x00, 0x00, 0x00],       // and ecx, 0xff
    ]
    .concat();
    // The words of the key are 1 and 2, and the first is the seed too.
    let found = |seed: u64| address_behind(&code, &LOAD, [0x9000, 0, seed, 0x5000_0008]);
    assert_eq!(found(1), Some(0x9000 + 8 * 0x5c));
    assert_eq!(found(7), Some(0x9000 + 8 * 0x35));
}
