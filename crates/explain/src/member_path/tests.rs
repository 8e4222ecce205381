use super::*;
use std::process::Command;

const SOURCE: &str = "
#include <pthread.h>
struct inner { int a; short grid[2][3]; };
struct counter { long hits; struct inner in[2]; union { float f; int i; }; };
struct counter counters[4];
pthread_mutex_t lock;
extern int declared;
int declared = 3;
long plain;
int main(void) { static struct inner local; local.a = 1; return local.a - 1 + (int)plain; }
";

/// Compiles a program; `None` without a compiler.
fn compiled(compiler: &str, source: &str, name: &str) -> Option<std::path::PathBuf> {
    let folder = std::env::temp_dir().join(format!("numakit-members-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, program) = (folder.join(name), folder.join("program"));
    std::fs::write(&file, source).unwrap();
    let output = match Command::new(compiler).arg("-g").arg("-o").arg(&program).arg(&file).output() {
        Ok(output) => output,
        Err(error) => {
            numakit_skips::COMPILERS.skip(format_args!("{compiler}: {error}"));
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

fn address(program: &Path, end: &str) -> u64 {
    use object::ObjectSymbol;
    let bytes = std::fs::read(program).unwrap();
    let elf = object::File::parse(bytes.as_slice()).unwrap();
    let is_it = |symbol: &object::Symbol<'_, '_>| {
        symbol.kind() == object::SymbolKind::Data && symbol.name().is_ok_and(|name| name.contains(end))
    };
    elf.symbols().find(is_it).unwrap().address()
}

/// The member of a variable.
fn member(program: &Path, symbol: &str, offset: u64) -> Option<String> {
    let byte = VariableByte { variable: address(program, symbol), offset };
    of_file(program, &[byte]).remove(&byte)
}

#[test]
fn members_of_c_are_named_by_their_offsets() {
    let Some(program) = compiled("cc", SOURCE, "members.c") else { return };
    // A counter: 8 bytes, two of 16 bytes, 4 of the union, 4 of padding.
    for (symbol, offset, expected) in [
        ("counters", 0, "[0].hits"),
        ("counters", 48 + 8, "[1].in[0].a"),
        ("counters", 2 * 48 + 8 + 16 + 4 + 2 * 5, "[2].in[1].grid[1][2]"),
        ("counters", 3 * 48 + 40, "[3].f|i"),
        ("counters", 3 * 48 + 44, "[3]"),
        ("lock", 0, ""),
        ("declared", 0, ""),
        ("local", 0, ".a"),
        ("plain", 4, ""),
    ] {
        assert_eq!(member(&program, symbol, offset).as_deref(), Some(expected), "{symbol} {offset}");
    }
}

#[test]
fn members_of_cpp_are_named_through_bases_and_declarations() {
    let source = "#include <atomic>\nstruct Base { long base; };\n\
        namespace shop { struct Stats : Base { std::atomic<long> hits; static Stats all[2]; }; Stats Stats::all[2]; }\n\
        int main() { return (int)shop::Stats::all[0].base; }\n";
    let Some(program) = compiled("c++", source, "members.cpp") else { return };
    assert_eq!(member(&program, "ZN4shop5Stats3allE", 0).as_deref(), Some("[0].base"));
    assert_eq!(member(&program, "ZN4shop5Stats3allE", 24).as_deref(), Some("[1].hits"));
}

#[test]
fn members_of_rust_end_at_atomics() {
    let source = "use std::sync::atomic::*;\n#[repr(C)] struct Counter { hits: AtomicU64, misses: u64 }\n\
        #[unsafe(no_mangle)] static COUNTERS: [Counter; 2] = [const { Counter { hits: AtomicU64::new(0), misses: 1 } }; 2];\n\
        fn main() { COUNTERS[1].hits.fetch_add(COUNTERS[0].misses, Ordering::Relaxed); }\n";
    let Some(program) = compiled("rustc", source, "members.rs") else { return };
    assert_eq!(member(&program, "COUNTERS", 16).as_deref(), Some("[1].hits"));
    assert_eq!(member(&program, "COUNTERS", 8).as_deref(), Some("[0].misses"));
}

#[test]
fn layouts_have_the_type_and_the_members_of_an_element() {
    let Some(program) = compiled("cc", SOURCE, "layouts.c") else { return };
    let names = ["counters", "lock", "plain", "local"];
    let variables = names.map(|name| address(&program, name));
    let mut found = layout::of_file(&program, &variables);
    let counters = found.remove(&variables[0]).unwrap();
    assert_eq!((counters.name.as_str(), counters.element), ("struct counter[4]", 48));
    let members: Vec<(&str, u64, u64)> =
        counters.members.iter().map(|m| (m.name.as_str(), m.offset, m.size)).collect();
    assert_eq!(members, [(".hits", 0, 8), (".in", 8, 32), (".f", 40, 4), (".i", 40, 4)]);
    let name = |offset| counters.member(offset).map(|member| member.name.as_str());
    assert_eq!([48 * 3 + 7, 48 + 8, 41, 45].map(name), [Some(".hits"), Some(".in"), Some(".f"), None]);
    let local = found.remove(&variables[3]).unwrap();
    assert_eq!((local.name.as_str(), local.members[0].name.as_str()), ("struct inner", ".a"));
    // A number, and what the C library hides.
    assert!(found.is_empty(), "{found:?}");
}

/// A variable on the stack, one of the file, and a pointer to what has no members.
#[test]
fn the_result_of_a_call_has_the_type_of_the_variable_that_gets_it() {
    use numakit_sampling::result_flow::ResultPlace;
    use object::{ObjectSegment, ObjectSymbol};
    let source = "#include <stdlib.h>\nstruct cell { int key; long id; };\nstruct cell *table;\n\
        int main(void) { struct cell *mine = malloc(160); char *text = malloc(9); table = mine; return text == 0; }\n";
    let Some(program) = compiled("cc", source, "pointee.c") else { return };
    let bytes = std::fs::read(&program).unwrap();
    let elf = object::File::parse(bytes.as_slice()).unwrap();
    let of = |name| elf.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address();
    let (main, table) = (of("main"), of("table"));
    // The process has the file elsewhere. gcc places the variables below the frame pointer in turn.
    let (moved, after) = (0x5555_0000_0000, main + 8);
    let text =
        elf.segments().find(|part| (part.address()..part.address() + part.size()).contains(&main)).unwrap();
    let call = |place| pointee::CallResult {
        after: moved + after,
        offset: after - text.address() + text.file_range().0,
        places: vec![place],
    };
    let found = |place| {
        let found = pointee::of_file(&program, &[call(place)]);
        found.get(&(moved + after)).map(|layout| (layout.name.clone(), layout.element, layout.members.len()))
    };
    let cell = Some(("struct cell".to_owned(), 16, 2));
    assert_eq!(found(ResultPlace::Memory { address: moved + table }), cell);
    assert_eq!(found(ResultPlace::Memory { address: moved + table + 8 }), None);
    let frames: Vec<_> = (-8..=-1)
        .filter_map(|word| found(ResultPlace::Frame { offset: 8 * word, at: moved + main + 8 }))
        .collect();
    assert_eq!(frames, Vec::from_iter(cell), "one of them is a pointer to a structure");
}

#[test]
fn damaged_files_have_fewer_members_and_nothing_else_happens() {
    assert!(of_file(Path::new("/no/such/file"), &[]).is_empty());
    let Some(program) = compiled("cc", SOURCE, "damaged.c") else { return };
    let (bytes, variable) = (std::fs::read(&program).unwrap(), address(&program, "counters"));
    let elf = object::File::parse(bytes.as_slice()).unwrap();
    let wanted = [VariableByte { variable, offset: 8 }];
    let mut rest = 0x2545_f491_4f6c_dd1du64;
    for section in [".debug_info", ".debug_abbrev", ".debug_str"] {
        let (begin, size) = elf.section_by_name(section).unwrap().file_range().unwrap();
        for _ in 0..numakit_skips::rounds(20, 200) {
            let mut damaged = bytes.clone();
            for _ in 0..4 {
                rest ^= rest << 13;
                rest ^= rest >> 7;
                rest ^= rest << 17;
                damaged[(begin + rest % size) as usize] = (rest >> 32) as u8;
            }
            std::fs::write(program.with_extension("damaged"), &damaged).unwrap();
            assert!(of_file(&program.with_extension("damaged"), &wanted).len() <= 1);
        }
    }
}
