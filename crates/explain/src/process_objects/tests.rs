use super::*;
use numakit_sampling::process::parse_mappings;
use numakit_sys::allocation_log::LOG_SLOT_WORDS;
use numakit_sys::registers::UserRegisters;

const MAPS: &str = "\
55d000000000-55d000001000 r--p 00000000 08:01 7 /no/such/folder/app
55d000001000-55d000002000 r-xp 00001000 08:01 7 /no/such/folder/app
55d000002000-55d000003000 rw-p 00002000 08:01 7 /no/such/folder/app
55d000003000-55d000009000 rw-p 00000000 00:00 0
55d000100000-55d000200000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000800000 rw-p 00000000 00:00 0
7f0000801000-7f0000901000 rw-p 00000000 00:00 0
7f0000a00000-7f0000b00000 rw-s 00000000 08:01 9 /data/table
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]
";

fn sample(thread: u32, pointer: u64, time: u64) -> Sample {
    let mut registers = UserRegisters::default();
    registers.general[4] = pointer;
    Sample { process: 7, thread, time, registers, ..Sample::default() }
}

/// The name of the object of an address at a time.
fn name(objects: &mut ProcessObjects, sample: &Sample, address: u64) -> String {
    objects.note_thread(sample, None);
    let found = objects.find(address, sample.time, &mut VariableFiles::default());
    found.map_or_else(|| "nothing".to_owned(), |found| objects.row(found).unwrap().origin.to_string())
}

#[test]
fn mappings_have_names_for_people() {
    let mut objects = ProcessObjects::new(PathBuf::from("/"));
    objects.update(&parse_mappings(MAPS), 100);
    let first = sample(7, 0x7ffd_0002_0000, 50);
    for (address, expected) in [
        (0x55d0_0000_1800, "/no/such/folder/app"),
        (0x55d0_0000_2800, "data of app"),
        (0x55d0_0000_8000, "data of app"),
        (0x55d0_0010_0000, "heap"),
        (0x7f00_0000_1000, "anonymous memory at 0x7f0000000000"),
        (0x7f00_00a0_0000, "/data/table"),
        (0x7ffd_0000_1000, "stack of the first thread"),
        (0x1000, "nothing"),
    ] {
        assert_eq!(name(&mut objects, &first, address), expected);
    }
    // The second mapping is the stack of a thread that was not seen before.
    assert_eq!(name(&mut objects, &first, 0x7f00_0090_0000), "anonymous memory at 0x7f0000801000");
    let second = sample(8, 0x7f00_0090_0000, 160);
    assert_eq!(name(&mut objects, &second, 0x7f00_0090_0000), "stacks of the other threads");
}

/// The kernel places it anywhere, and it has no addresses by which it is known.
#[test]
fn the_heap_of_a_large_java_machine_is_what_it_reserves_in_one_piece() {
    let mut objects = ProcessObjects::new(PathBuf::from("/"));
    let maps = |used: &str| {
        format!(
            "7f1a90000000-7f1a94000000 rw-p 00000000 00:00 0\n\
             7f1ac8000000-{used} rw-p 00000000 00:00 0\n\
             {used}-7f24c8000000 ---p 00000000 00:00 0\n\
             7f24e6600000-7f24e6852000 r-xp 00000000 08:01 7 /usr/lib/jvm/lib/server/libjvm.so\n"
        )
    };
    objects.update(&parse_mappings(&maps("7f1ba0000000")), 100);
    let at = sample(7, 0x7ffd_0002_0000, 150);
    for (address, expected) in
        [(0x7f1a_c800_1000, "Java heap"), (0x7f1a_9000_1000, "anonymous memory at 0x7f1a90000000")]
    {
        assert_eq!(name(&mut objects, &at, address), expected);
    }
    // Most of it is used now.
    objects.update(&parse_mappings(&maps("7f24c0000000")), 200);
    let later = sample(7, 0x7ffd_0002_0000, 250);
    assert_eq!(name(&mut objects, &later, 0x7f24_0000_0000), "Java heap");
}

/// V8 maps its builtins again near the code that it compiles; what lies between is no part of its file.
#[test]
fn code_that_a_runtime_maps_again_does_not_widen_its_program() {
    let mut objects = ProcessObjects::new(PathBuf::from("/"));
    let maps = "00400000-00b00000 r--p 00000000 08:01 7 /usr/bin/node\n\
                00b00000-02500000 r-xp 00700000 08:01 7 /usr/bin/node\n\
                02500000-02600000 rw-p 02100000 08:01 7 /usr/bin/node\n\
                02600000-02700000 rw-p 00000000 00:00 0\n\
                1e4c00000-1e4c40000 rw-p 00000000 00:00 0\n\
                1e5c01000-1e5c42000 rw-p 00000000 00:00 0\n\
                7f0000000000-7f0000400000 r-xp 00772000 08:01 7 /usr/bin/node\n";
    objects.update(&parse_mappings(maps), 1);
    let at = sample(7, 0, 5);
    assert_eq!(name(&mut objects, &at, 0x25f_0000), "data of node");
    assert_eq!(name(&mut objects, &at, 0x268_0000), "data of node");
    assert_eq!(name(&mut objects, &at, 0x1_e4c1_0000), "JavaScript heap");
    assert_eq!(name(&mut objects, &at, 0x1_e5c2_0000), "anonymous memory at 0x1e5c01000");
}

/// The kernel joins new memory with its neighbour, and allocators map downwards.
#[test]
fn memory_that_grows_keeps_its_name() {
    let mut objects = ProcessObjects::new(PathBuf::from("/"));
    let map = |objects: &mut ProcessObjects, ranges: &[&str], read| {
        let maps: String = ranges.iter().map(|range| format!("{range} rw-p 00000000 00:00 0\n")).collect();
        objects.update(&parse_mappings(&maps), read);
    };
    map(&mut objects, &["7f0000400000-7f0000800000"], 1);
    map(&mut objects, &["7f0000200000-7f0000800000", "7f0000a00000-7f0000b00000"], 2);
    let at = sample(7, 0, 5);
    for address in [0x7f00_0020_0000, 0x7f00_0070_0000] {
        assert_eq!(name(&mut objects, &at, address), "anonymous memory at 0x7f0000400000");
    }
    assert_eq!(name(&mut objects, &at, 0x7f00_00a0_0000), "anonymous memory at 0x7f0000a00000");
    // A part in the middle is unmapped.
    map(&mut objects, &["7f0000200000-7f0000300000", "7f0000600000-7f0000800000"], 6);
    let later = sample(7, 0, 9);
    assert_eq!(name(&mut objects, &later, 0x7f00_0070_0000), "anonymous memory at 0x7f0000400000");
}

#[test]
fn stacks_of_go_are_blocks_of_its_heap() {
    let mut objects = ProcessObjects::new(PathBuf::from("/"));
    objects.note_go();
    objects.update(&parse_mappings("4f11d000000-4f123800000 rw-p 00000000 00:00 0\n"), 1);
    let at = sample(7, 0x4f1_1d40_ce90, 5);
    assert_eq!(name(&mut objects, &at, 0x4f1_1d40_d000), "Go heap");
}

#[test]
fn memory_behind_a_file_of_data_is_not_a_part_of_it() {
    let mut objects = ProcessObjects::new(PathBuf::from("/"));
    let maps = "7f0000000000-7f0000a00000 rw-s 00000000 00:01 9 /memfd:ring (deleted)\n\
                7f0000a00000-7f0004a00000 rw-p 00000000 00:00 0\n";
    objects.update(&parse_mappings(maps), 1);
    let at = sample(7, 0, 5);
    assert_eq!(name(&mut objects, &at, 0x7f00_00b0_0000), "anonymous memory at 0x7f0000a00000");
    assert_eq!(name(&mut objects, &at, 0x7f00_0010_0000), "shared memory /memfd:ring");
}

#[test]
fn what_is_unmapped_ends_and_what_grows_stays() {
    let mut objects = ProcessObjects::new(PathBuf::from("/"));
    objects.update(&parse_mappings(MAPS), 100);
    let at = |time| sample(7, 0x7ffd_0002_0000, time);
    let grown = MAPS
        .replace("55d000200000 rw-p", "55d000300000 rw-p")
        .replace("7f0000000000-7f0000800000 rw-p 00000000 00:00 0\n", "");
    objects.update(&parse_mappings(&grown), 200);
    assert_eq!(name(&mut objects, &at(150), 0x7f00_0000_1000), "anonymous memory at 0x7f0000000000");
    assert_eq!(name(&mut objects, &at(250), 0x7f00_0000_1000), "nothing");
    // It may have grown at any time since the last look.
    assert_eq!(name(&mut objects, &at(120), 0x55d0_0020_8000), "heap");
    assert_eq!(name(&mut objects, &at(90), 0x55d0_0010_8000), "heap");
}

#[test]
fn the_java_machine_keeps_its_heap_and_its_classes_at_known_places() {
    let mut objects = ProcessObjects::new(PathBuf::from("/"));
    let maps = "\
600000000-640000000 rw-p 00000000 00:00 0
800000000-800c00000 rw-p 00001000 08:01 5 /jvm/classes.jsa
801000000-802000000 rw-p 00000000 00:00 0
7f0000000000-7f0000001000 r-xp 00000000 08:01 6 /jvm/libjvm.so
";
    objects.update(&parse_mappings(maps), 1);
    let at = sample(7, 0, 5);
    assert_eq!(name(&mut objects, &at, 0x6_1000_0000), "Java heap");
    assert_eq!(name(&mut objects, &at, 0x8_0100_0000), "Java classes");
    assert_eq!(name(&mut objects, &at, 0x8_0000_1000), "/jvm/classes.jsa");
}

#[test]
fn variables_of_a_program_in_memory_are_found() {
    static COUNTERS: [std::sync::atomic::AtomicU64; 4] = [const { std::sync::atomic::AtomicU64::new(7) }; 4];
    let address = COUNTERS.as_ptr() as u64 + 8;
    let mut objects = ProcessObjects::new(PathBuf::from("/"));
    objects.update(&parse_mappings(&std::fs::read_to_string("/proc/self/maps").unwrap()), 1);
    let found = name(&mut objects, &sample(7, 0, 5), address);
    assert!(found.ends_with("COUNTERS"), "{found}");
    assert_eq!(name(&mut objects, &sample(7, 0, 6), address + 16), found);
    assert!(!name(&mut objects, &sample(7, 0, 6), address + 24).ends_with("COUNTERS"));
}

#[test]
fn the_storage_of_a_thread_that_just_begins_is_looked_for_again() {
    let mut objects = ProcessObjects::new(PathBuf::from("/"));
    objects.update(&parse_mappings(MAPS), 100);
    let first = sample(7, 0x7ffd_0002_0000, 50);
    objects.note_thread(&first, None);
    assert!(!objects.knows(7));
    objects.note_thread(&first, Some(0x7f00_0000_1000));
    assert!(objects.knows(7) && objects.bases.contains(&0x7f00_0000_1000));
}

/// A record of `mmap` of 4 MiB at an address, called from here.
fn mmap(address: u64, protection: u64, flags: u64, time: u64) -> AllocationRecord {
    let mut words = [0; LOG_SLOT_WORDS];
    words[1] = 7 | 7 << 32;
    (words[2], words[3], words[4], words[5]) = (time, address, 4 << 20, protection | flags << 32);
    // A mapping, by the tenth function, with one frame.
    words[6] = 9 << 32 | 10 << 40 | 1 << 48;
    words[10] = 0x55d0_0000_1800;
    AllocationRecord::parse(&words).unwrap()
}

#[test]
fn a_file_that_the_program_maps_is_that_file_and_a_private_copy_is_the_programs() {
    let [read, write, shared, private, anonymous] = [1u64, 2, 1, 2, 0x20];
    let maps = "\
55d000001000-55d000002000 r-xp 00001000 08:01 7 /no/such/folder/app
7f0000000000-7f0000400000 r--s 00000000 08:01 9 /models/large
7f0001000000-7f0001400000 r--p 00000000 08:01 9 /models/large
7f0002000000-7f0002400000 rw-p 00000000 08:01 9 /models/large
7f0003000000-7f0003400000 rw-s 00000000 00:01 9 /dev/shm/segment
7f0004000000-7f0004400000 rw-p 00000000 00:00 0
";
    let mut objects = ProcessObjects::new(PathBuf::from("/"));
    let pushed = PushedCalls { chain: &[], deciding: 0 };
    let site = AllocationSite { after: 0x55d0_0000_1800, callers: None, pushed };
    for (address, protection, flags) in [
        (0x7f00_0000_0000, read, shared),
        (0x7f00_0100_0000, read, private),
        (0x7f00_0200_0000, read | write, private),
        (0x7f00_0300_0000, read | write, shared),
        (0x7f00_0400_0000, read | write, private | anonymous),
    ] {
        let record = mmap(address, protection, flags, 50);
        objects.log(&record, Some(site), LogThreshold { least: 4096, period: 0, first: 0 }, None);
    }
    objects.update(&parse_mappings(maps), 100);
    let at = |address| name(&mut objects.clone(), &sample(7, 0, 150), address);
    assert_eq!([at(0x7f00_0000_1000), at(0x7f00_0100_1000)], ["/models/large"; 2]);
    assert_eq!(at(0x7f00_0200_1000), "mmap at 0x55d000001800");
    assert_eq!(at(0x7f00_0300_1000), "mmap of a file at 0x55d000001800");
    assert_eq!(at(0x7f00_0400_1000), "mmap at 0x55d000001800");
}
