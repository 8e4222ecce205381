//! The functions are those that gcc 12 makes of these, without and with optimization, up to the end of their first call of
//! an allocator:
//! ```c
//! void *xmalloc(size_t n) { void *p = malloc(n); if (!p) fail(); memset(p, 1, n); return p; }
//! void *header(void *ctx, size_t n) { if (n == 0) n = 1; if (n > 1000000000) fail(); ... malloc(n + 16) ... }
//! void *zcalloc(size_t a, size_t b) { void *p = calloc(a, b); ... }
//! void *aligned(size_t n) { void *p; if (posix_memalign(&p, 64, (n + 63) & ~63ul)) fail(); return p; }
//! struct t *array(size_t n) { struct t *p = malloc(n * sizeof *p); ... }
//! void *fixed(size_t n) { void *p = malloc(200); ... memset(p, 0, n) ... }
//! void *one(size_t n) { void *p = calloc(1, n); ... }
//! void *other(char *s) { void *p = malloc(strlen(s) + 1); ... }
//! ```

use super::*;

const START: u64 = 0x1000;

/// Code from `START` on, and words of memory.
struct Program(Vec<u8>, Vec<(u64, u64)>);

impl AddressSpace for Program {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let word = self.1.iter().find(|(at, _)| *at == address).map(|(_, word)| word.to_le_bytes());
        word.filter(|_| into.len() == 8).map(|word| into.copy_from_slice(&word)).is_some()
    }

    fn code(&self, address: u64, into: &mut [u8]) -> usize {
        let code = self.0.get(address.wrapping_sub(START) as usize..).unwrap_or_default();
        let count = code.len().min(into.len());
        into[..count].copy_from_slice(&code[..count]);
        count
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Name, code up to the end of the call, wanted arguments of the call, and the function's own that reach them.
type Case = (&'static str, &'static str, &'static [u8], ArgumentOrigin);

const FIRST: ArgumentOrigin = ArgumentOrigin::PassedOn(Arguments::at(&[0]));

const CASES: [Case; 16] = [
    ("xmalloc O0", "554889e54883ec2048897de8488b45e84889c7e800000000", &[0], FIRST),
    (
        "header O0",
        "554889e54883ec2048897de8488975e048837de000750848c745e00100000048817de000ca9a3b7605e800000000488b45e04883c0104889c7e800000000",
        &[0],
        ArgumentOrigin::PassedOn(Arguments::at(&[1])),
    ),
    (
        "zcalloc O0",
        "554889e54883ec2048897de8488975e0488b55e0488b45e84889d64889c7e800000000",
        &[0, 1],
        ArgumentOrigin::PassedOn(Arguments::at(&[0, 1])),
    ),
    (
        "aligned O0",
        "554889e54883ec2048897de8488b45e84883c03f4883e0c04889c2488d45f8be400000004889c7e800000000",
        &[2],
        FIRST,
    ),
    ("array O0", "554889e54883ec2048897de8488b45e848c1e0054889c7e800000000", &[0], ArgumentOrigin::Decided),
    ("fixed O0", "554889e54883ec2048897de8bfc8000000e800000000", &[0], ArgumentOrigin::Constant),
    ("one O0", "554889e54883ec2048897de8488b45e84889c6bf01000000e800000000", &[0, 1], FIRST),
    (
        "other O0",
        "554889e54883ec2048897de8488b45e84889c7e8000000004883c0014889c7e800000000",
        &[0],
        ArgumentOrigin::Decided,
    ),
    ("xmalloc O2", "554889fd534883ec08e800000000", &[0], FIRST),
    (
        "header O2",
        "534885f674224889f34881fe00ca9a3b772e488d7b10e800000000",
        &[0],
        ArgumentOrigin::PassedOn(Arguments::at(&[1])),
    ),
    ("zcalloc O2", "4883ec18e800000000", &[0, 1], ArgumentOrigin::PassedOn(Arguments::at(&[0, 1]))),
    ("aligned O2", "53488d573fbe400000004883e2c04883ec10488d7c2408e800000000", &[2], FIRST),
    ("array O2", "4883ec1848c1e705e800000000", &[0], ArgumentOrigin::Decided),
    ("fixed O2", "554889fdbfc8000000534883ec08e800000000", &[0], ArgumentOrigin::Constant),
    ("one O2", "4883ec184889febf01000000e800000000", &[0, 1], FIRST),
    ("other O2", "4883ec18e800000000488d7801e800000000", &[0], ArgumentOrigin::Decided),
];

#[test]
fn wrappers_pass_a_size_on_and_others_decide() {
    for (name, code, wanted, expected) in CASES {
        let code = bytes(code);
        let call = START + code.len() as u64;
        let found = origin(START, call, Arguments::at(wanted), &Program(code, Vec::new()));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn code_that_cannot_be_followed_passes_nothing_on() {
    let code = bytes(CASES[0].1);
    let wanted = Arguments::at(&[0]);
    let space = Program(code.clone(), Vec::new());
    // A call in the middle of an instruction, no call there, code that is not there, a function that ends before it begins.
    let end = START + code.len() as u64;
    for (function, call) in [(START, end - 1), (START, end + 1), (START, START), (end, START)] {
        assert_eq!(origin(function, call, wanted, &space), ArgumentOrigin::Decided, "{function:x} {call:x}");
    }
    assert_eq!(origin(START, end, Arguments::default(), &space), ArgumentOrigin::Decided);
}

#[test]
fn the_called_function_is_found_through_a_stub() {
    // call 0x1010; at 0x1010: endbr64; jmp *0x100(%rip)
    let mut code = bytes("e80b000000");
    code.resize(16, 0x90);
    code.extend(bytes("f30f1efaff2500010000"));
    let words = vec![(0x101a + 0x100, 0x7000)];
    let after = START + 5;
    assert_eq!(called(after, &Program(code.clone(), words)), Some(0x7000));
    // The table is not filled in yet: the stub itself.
    assert_eq!(called(after, &Program(code.clone(), Vec::new())), Some(0x1010));
    assert_eq!(called(after + 1, &Program(code, Vec::new())), None);
    // call *0x100(%rip), and call *%rax.
    let through = Program(bytes("ff1500010000"), vec![(0x1106, 0x7000)]);
    assert_eq!(called(START + 6, &through), Some(0x7000));
    assert_eq!(called(START + 2, &Program(bytes("ffd0"), Vec::new())), None);
}

#[test]
fn a_jump_to_another_function_at_the_end_is_a_call() {
    // mov $200,%edi; jmp 0x2000
    let code = bytes("bfc8000000e9f60f0000");
    let function = START..START + code.len() as u64;
    let space = Program(code, Vec::new());
    assert_eq!(tail_jump(function.clone(), &|to| to == 0x2000, &space), Some(function.end));
    assert_eq!(tail_jump(function.clone(), &|to| to == 0x3000, &space), None);
    assert_eq!(origin(START, function.end, Arguments::at(&[0]), &space), ArgumentOrigin::Constant);
}
