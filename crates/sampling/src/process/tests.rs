use super::*;
use mappings::MappingTable;
use numakit_sys::registers::STACK_POINTER;
use numakit_sys::root::FileTree;
use numakit_testing::until;
use proptest::prelude::*;

const MAPS: &str = "\
55d000000000-55d000001000 r--p 00000000 08:01 7                          /bin/x y
55d000001000-55d000002000 r-xp 00001000 08:01 7                          /bin/x y
55d000002000-55d000003000 rw-p 00002000 08:01 7                          /bin/x y
55d000100000-55d000121000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000100000 rwxp 00000000 00:00 0 
7f0000100000-7f0000200000 rw-s 00000000 00:01 9                          /dev/zero (deleted)
7f0000200000-7f0000300000 rw-p 00000000 00:00 0 
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
7ffd00100000-7ffd00102000 r-xp 00000000 00:00 0                          [vdso]
";

#[test]
fn addresses_have_the_kinds_of_their_mappings() {
    let mappings = MappingTable::parse(MAPS);
    let kind = |address| mappings.find(address).map(|mapping| mapping.kind);
    assert_eq!(mappings.all().len(), 9);
    for (address, expected) in [
        (0x55d0_0000_0000, Some(MemoryKind::File)),
        (0x55d0_0000_1fff, Some(MemoryKind::Code)),
        (0x55d0_0000_3000, None),
        (0x55d0_0010_0000, Some(MemoryKind::Heap)),
        (0x7f00_0000_0000, Some(MemoryKind::Code)),
        (0x7f00_0010_0000, Some(MemoryKind::Shared)),
        (0x7f00_0020_0000, Some(MemoryKind::Anonymous)),
        (0x7ffd_0000_0000, Some(MemoryKind::Stack)),
        (0x7ffd_0010_0000, Some(MemoryKind::Kernel)),
        (0, None),
        (u64::MAX, None),
    ] {
        assert_eq!(kind(address), expected, "{address:x}");
    }
    let generated = |address| mappings.find(address).unwrap().is_generated_code();
    assert!(generated(0x7f00_0000_0000) && !generated(0x55d0_0000_1000) && !generated(0x7ffd_0010_0000));
    assert_eq!(&*mappings.find(0x55d0_0000_1000).unwrap().name, "/bin/x y");
}

#[test]
fn stacks_and_thread_local_storage_are_those_of_the_thread() {
    let mappings = MappingTable::parse(MAPS);
    let mapping = mappings.find(0x7f00_0020_0000).unwrap();
    let mut registers = UserRegisters { thread_base: Some(0x7f00_002f_f640), ..UserRegisters::default() };
    registers.general[STACK_POINTER] = 0x7f00_0024_0000;
    for (address, kind) in [
        (0x7f00_0024_0010, MemoryKind::Stack),
        (0x7f00_0023_fff0, MemoryKind::Stack),
        (0x7f00_0023_0000, MemoryKind::Anonymous),
        (0x7f00_002f_f600, MemoryKind::ThreadLocal),
        (0x7f00_002f_f668, MemoryKind::ThreadLocal),
    ] {
        assert_eq!(mapping.kind_for(address, &registers), kind, "{address:x}");
    }
    // A pointer near the top of the stack: what is near it is stack.
    registers.general[STACK_POINTER] = 0x7f00_002f_ee00;
    assert_eq!(mapping.kind_for(0x7f00_002f_ee10, &registers), MemoryKind::Stack);
    assert_eq!(mapping.kind_for(0x7f00_002f_f638, &registers), MemoryKind::ThreadLocal);
    let heap = mappings.find(0x55d0_0010_0000).unwrap();
    assert_eq!(heap.kind_for(0x55d0_0010_0000, &registers), MemoryKind::Heap);
}

#[test]
fn code_that_is_mapped_elsewhere_or_anew_has_changed() {
    let before = MappingTable::parse(MAPS);
    let changed = |from: &str, to: &str| before.changed_code(&MappingTable::parse(&MAPS.replace(from, to)));
    assert_eq!(changed("", ""), []);
    let code = 0x55d0_0000_1000..0x55d0_0000_2000;
    let one = std::slice::from_ref(&code);
    // Another file, another part of it, no code, nothing.
    assert_eq!(changed("00001000 08:01 7", "00001000 08:01 8"), *one);
    assert_eq!(changed("r-xp 00001000", "r-xp 00005000"), *one);
    assert_eq!(changed("r-xp 00001000", "r--p 00001000"), *one);
    assert_eq!(changed("55d000001000-55d000002000 r-xp", "x"), *one);
    // Memory that grew is the same.
    assert_eq!(changed("7f0000000000-7f0000100000", "7effff000000-7f0000100000"), []);
}

#[test]
fn this_process_is_read() {
    let mut process = ObservedProcess::open(std::process::id()).unwrap();
    let data = *b"seventeen letters";
    let address = &raw const data as u64;
    let mut copy = [0; 17];
    assert!(process.read(address, &mut copy) && copy == data && process.is_readable());
    assert!(!process.read(0, &mut copy) && !process.has_ended());
    let function = this_process_is_read as *const () as u64;
    let (mut code, mut same) = ([0; 64], [0; 64]);
    assert_eq!(process.code(function, &mut code), 64);
    assert_eq!(process.code(address, &mut same), 0, "data is no code");
    // The same from the file.
    let mapping = process.mapping(function).unwrap();
    assert_eq!(process.files.borrow_mut().read(mapping, function, &mut same), 64);
    assert_eq!(code, same);
    assert!(process.know(function).is_empty());
    let end = process.mapping(function).unwrap().range.end;
    assert_eq!(process.code(end - 3, &mut code), 3);
    assert!(process.refresh().is_empty());
}

#[test]
fn what_was_read_of_a_process_that_ended_stays() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    // Until it executes its program it has the memory of this one.
    let is_sleep = |process: &ObservedProcess| {
        process.mappings().iter().any(|m| m.executable && m.name.contains("/sleep"))
    };
    let mut process = ObservedProcess::open(child.id()).unwrap();
    until!({
        process.executed();
        is_sleep(&process)
    });
    let code =
        process.mappings().iter().find(|m| m.executable && m.name.contains("/sleep")).unwrap().range.start;
    let (mut before, mut after) = ([0; 32], [0; 32]);
    assert_eq!(process.code(code, &mut before), 32);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(process.code(code, &mut after), 32);
    assert_eq!(before, after);
    assert!(process.refresh().is_empty() && process.has_ended() && process.mapping(code).is_some());
    assert!(!process.read(code, &mut after));
    assert!(ObservedProcess::open(child.id()).is_err());
}

proptest! {
    #[test]
    fn every_address_is_in_the_mapping_that_contains_it(starts in prop::collection::btree_set(1u64..1000, 1..20), at in 0u64..1100) {
        let line = |start: &u64| format!("{:x}-{:x} rw-p 00000000 00:00 0 \n", start * 16, start * 16 + 10);
        let mappings = MappingTable::parse(&starts.iter().map(line).collect::<String>());
        let found = mappings.find(at * 16 + 9).map(|mapping| mapping.range.start);
        prop_assert_eq!(found, starts.contains(&at).then_some(at * 16));
        prop_assert!(mappings.find(at * 16 + 10).is_none());
    }
}

#[test]
fn a_base_is_searched_for_ever_more_rarely() {
    let searched: Vec<u32> = (0..2000).filter(|asked| super::is_searched(*asked)).collect();
    assert_eq!(searched, [0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256, 512, 1024]);
}

/// Between the end of its memory and that of the process.
#[test]
fn mappings_of_a_process_without_memory_stay() {
    let mut process = ObservedProcess::open(std::process::id()).unwrap();
    let (count, start) = (process.mappings().len(), process.start.unwrap());
    let pid = process.id();
    let mut tree = FileTree::new();
    tree.file(
        &format!("/proc/{pid}/stat"),
        format!("{pid} (x) R 1 {}{start}{}\n", "0 ".repeat(17), " 0".repeat(30)),
    );
    tree.file(&format!("/proc/{pid}/maps"), "");
    process.root = SysRoot::of_tree(tree);
    assert!(process.refresh().is_empty() && process.has_ended());
    assert!(count > 0 && process.mappings().len() == count);
}
