use super::*;
use numakit_sys::registers::UserRegisters;

#[inline(never)]
fn leaf(number: u64) -> u64 {
    std::hint::black_box(number) + 1
}

#[inline(never)]
fn caller(number: u64) -> u64 {
    leaf(number) * std::hint::black_box(3)
}

#[test]
fn what_is_not_in_the_piece_is_read_now_and_is_not_certain() {
    let process = ObservedProcess::open(std::process::id()).unwrap();
    // A thread at the first instruction of a function, whose caller stands on top of the stack.
    let (at, after) = (leaf as fn(u64) -> u64 as usize as u64, caller as fn(u64) -> u64 as usize as u64 + 1);
    let stack = [after, 0, 0, 0].map(u64::to_ne_bytes).concat();
    let address = stack.as_ptr() as u64;
    let mut registers = UserRegisters { ip: at, ..UserRegisters::default() };
    registers.general[crate::operand::STACK_POINTER] = address;
    let mut chains = CallChains::default();
    let mut counts = |bytes: usize| {
        let piece = StackPiece { address, bytes: stack[..bytes].to_vec() };
        let chain = chains.of(&process, &registers, &piece);
        (chain.first().copied(), chain.get(1).copied(), chains.certain(&process, &registers, &piece) > 1)
    };
    assert_eq!(counts(0), (Some(at), Some(after), false));
    assert_eq!(counts(16), (Some(at), Some(after), true));
    assert_eq!(caller(1), 6);
}
