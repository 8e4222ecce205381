//! What kind of program a file is, from its first bytes.

use numakit_model::numbers::hexadecimal;
use std::fmt;

/// The kinds of files that the kernel or a shell executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileKind {
    /// A program in machine code.
    Elf(Elf),
    /// Text that an interpreter runs.
    Script {
        /// The program after `#!`.
        interpreter: String,
        /// The rest of the line.
        argument: Option<String>,
    },
    /// Something else; shells run it as a shell script.
    Other,
}

/// A program in machine code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elf {
    /// 32 or 64.
    pub bits: u8,
    /// Its processor architecture: ELF's `e_machine`.
    pub machine: u16,
    /// The dynamic loader; `None` if the program is statically linked.
    pub interpreter: Option<String>,
    /// Whether the program was built by Go, which creates threads without libc.
    pub go: bool,
    /// The sanitizer that it is built with.
    pub sanitizer: Option<Sanitizer>,
    /// Whether it needs LLVM's or Intel's OpenMP.
    pub libomp: bool,
    /// Its build ID in hexadecimal digits, if it has one.
    pub build_id: Option<String>,
}

/// A sanitizer, which has a malloc of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sanitizer {
    /// The library of the AddressSanitizer, which checks that it is the first library. An option turns that check off.
    Lenient,
    /// The AddressSanitizer of GCC 7 and before, whose check cannot be turned off.
    Strict,
    /// Another sanitizer, with its name. It does not check its place.
    Other(&'static str),
}

impl Sanitizer {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lenient | Self::Strict => "AddressSanitizer",
            Self::Other(name) => name,
        }
    }
}

/// Words in the names of sanitizers' libraries and functions. Clang builds the library into the program: its functions are
/// then among the names that the program has for its loader.
const SANITIZERS: [(&str, &str); 5] = [
    ("asan", "AddressSanitizer"),
    ("tsan", "ThreadSanitizer"),
    ("lsan", "LeakSanitizer"),
    ("msan", "MemorySanitizer"),
    ("hwasan", "HWAddressSanitizer"),
];

/// Machine code that is truncated or inconsistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged(&'static str);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// ELF's `e_machine` of programs that run here.
#[cfg(target_arch = "x86_64")]
pub const OWN_MACHINE: u16 = 62;
/// ELF's `e_machine` of programs that run here.
#[cfg(target_arch = "aarch64")]
pub const OWN_MACHINE: u16 = 183;
/// ELF's `e_machine` of programs that run here; unknown.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const OWN_MACHINE: u16 = 0;

/// How much of a script's first line the kernel reads.
const LINE: usize = 256;
/// More than linkers produce.
const MAX_SEGMENTS: u64 = 512;
/// The longest name of a loader, and the longest note, that is read.
const MAX_BYTES: u64 = 4096;
/// The longest table of names that a program has for its loader, and that is read.
const MAX_NAMES: u64 = 1 << 20;
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const LOADER: u32 = 3;
const NOTE: u32 = 4;
/// Tags of the dynamic section: a needed library, the string table.
const NEEDED: u64 = 1;
const STRINGS: u64 = 5;
const STRINGS_BYTES: u64 = 10;
/// The beginnings of the names of LLVM's and Intel's OpenMP.
const LIBOMP: [&[u8]; 2] = [b"libomp.so", b"libiomp5.so"];
/// Enough bytes for a sanitizer's name and version.
const NAME: usize = 24;
/// The first version of libasan that can turn the check off: that of GCC 8.
const LENIENT: u32 = 5;

/// Determines the kind of a file. `read` returns up to N bytes at an offset, fewer at the end.
pub fn inspect(read: &mut dyn FnMut(u64, usize) -> Vec<u8>) -> Result<FileKind, Damaged> {
    let front = read(0, LINE);
    if let Some(line) = front.strip_prefix(b"#!") {
        return Ok(script(line));
    }
    if !front.starts_with(b"\x7fELF") {
        return Ok(FileKind::Other);
    }
    elf(&front, read).map(FileKind::Elf)
}

fn script(rest: &[u8]) -> FileKind {
    let line = rest.split(|&b| b == b'\n' || b == 0).next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let line = line.trim_matches([' ', '\t']);
    let (interpreter, argument) = line.split_once([' ', '\t']).map_or((line, ""), |(i, a)| (i, a.trim()));
    if interpreter.is_empty() {
        return FileKind::Other;
    }
    let argument = Some(argument.to_owned()).filter(|argument| !argument.is_empty());
    FileKind::Script { interpreter: interpreter.to_owned(), argument }
}

/// Byte order and width of numbers, from the file's header.
#[derive(Clone, Copy)]
struct Layout {
    wide: bool,
    little: bool,
}

impl Layout {
    fn number(self, bytes: &[u8], at: usize, length: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(length)?)?;
        let value = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(if self.little { bytes.iter().rev().fold(0, value) } else { bytes.iter().fold(0, value) })
    }

    /// A number of the file's width.
    fn word(self, bytes: &[u8], at: [usize; 2]) -> Option<u64> {
        if self.wide { self.number(bytes, at[1], 8) } else { self.number(bytes, at[0], 4) }
    }
}

fn elf(front: &[u8], read: &mut dyn FnMut(u64, usize) -> Vec<u8>) -> Result<Elf, Damaged> {
    const SHORT: Damaged = Damaged("its header is truncated");
    let layout = match front.get(4..6).ok_or(SHORT)? {
        [width @ 1..=2, order @ 1..=2] => Layout { wide: *width == 2, little: *order == 1 },
        _ => return Err(Damaged("its ELF class or byte order is unknown")),
    };
    let machine = layout.number(front, 18, 2).ok_or(SHORT)? as u16;
    let table = layout.word(front, [28, 32]).ok_or(SHORT)?;
    let at = if layout.wide { 54 } else { 42 };
    let size = layout.number(front, at, 2).ok_or(SHORT)?;
    let count = layout.number(front, at + 2, 2).ok_or(SHORT)?.min(MAX_SEGMENTS);
    if size < if layout.wide { 56 } else { 32 } {
        return Err(Damaged("its program headers are too small"));
    }
    let segments = read(table, (size * count) as usize);
    let mut elf = Elf { bits: if layout.wide { 64 } else { 32 }, machine, ..Elf::default() };
    let (mut dynamic, mut loaded) = (Vec::new(), Vec::new());
    for segment in segments.chunks_exact(size as usize) {
        let kind = layout.number(segment, 0, 4).ok_or(SHORT)? as u32;
        let offset = layout.word(segment, [4, 8]).ok_or(SHORT)?;
        let whole = layout.word(segment, [16, 32]).ok_or(SHORT)?;
        let length = whole.min(MAX_BYTES) as usize;
        match kind {
            LOADER => elf.interpreter = Some(loader(&read(offset, length))?),
            NOTE => {
                let notes = read(offset, length);
                elf.go |= note(&notes, layout, GO).is_some();
                elf.build_id = elf.build_id.or_else(|| note(&notes, layout, GNU).map(hexadecimal));
            }
            DYNAMIC => dynamic = read(offset, length),
            LOAD => loaded.push((layout.word(segment, [8, 16]).ok_or(SHORT)?, whole, offset)),
            _ => {}
        }
    }
    let needed = needed(&dynamic, &loaded, layout, read);
    elf.libomp = needed.iter().any(|name| LIBOMP.iter().any(|start| name.starts_with(start)));
    elf.sanitizer = sanitizer(&needed, &dynamic, &loaded, layout, read);
    Ok(elf)
}

/// The tags of the dynamic section with their values.
fn entries(dynamic: &[u8], layout: Layout) -> impl Iterator<Item = (u64, u64)> {
    let words = dynamic.chunks_exact(if layout.wide { 16 } else { 8 });
    words.filter_map(move |entry| Some((layout.word(entry, [0, 0])?, layout.word(entry, [4, 8])?)))
}

/// Where the table of names is in the file. `loaded` are addresses, lengths and file offsets.
fn strings(dynamic: &[u8], loaded: &[(u64, u64, u64)], layout: Layout) -> Option<u64> {
    let address = entries(dynamic, layout).find(|(tag, _)| *tag == STRINGS)?.1;
    loaded.iter().find_map(|(from, length, offset)| {
        let inside = address.checked_sub(*from).filter(|inside| inside < length)?;
        offset.checked_add(inside)
    })
}

/// The beginnings of the names of the libraries that a program needs.
fn needed(
    dynamic: &[u8],
    loaded: &[(u64, u64, u64)],
    layout: Layout,
    read: &mut dyn FnMut(u64, usize) -> Vec<u8>,
) -> Vec<Vec<u8>> {
    let Some(strings) = strings(dynamic, loaded, layout) else { return Vec::new() };
    let needed = entries(dynamic, layout).filter(|(tag, _)| *tag == NEEDED);
    needed.filter_map(|(_, at)| strings.checked_add(at)).map(|at| read(at, NAME)).collect()
}

/// The sanitizer among the needed libraries or in the program.
fn sanitizer(
    needed: &[Vec<u8>],
    dynamic: &[u8],
    loaded: &[(u64, u64, u64)],
    layout: Layout,
    read: &mut dyn FnMut(u64, usize) -> Vec<u8>,
) -> Option<Sanitizer> {
    needed.iter().find_map(|name| sanitizer_named(name)).or_else(|| {
        let length = entries(dynamic, layout).find(|(tag, _)| *tag == STRINGS_BYTES)?.1.min(MAX_NAMES);
        let names = read(strings(dynamic, loaded, layout)?, length as usize);
        let built_in = |text: &str| names.split(|&byte| byte == 0).any(|name| name == text.as_bytes());
        let (_, name) = SANITIZERS.iter().find(|(short, _)| built_in(&format!("__{short}_init")))?;
        Some(Sanitizer::Other(name))
    })
}

/// The sanitizer of this name: `libasan.so.8` of GCC, `libclang_rt.asan-x86_64.so` of Clang.
fn sanitizer_named(name: &[u8]) -> Option<Sanitizer> {
    if name.starts_with(b"libclang_rt.asan") {
        return Some(Sanitizer::Lenient);
    }
    if let Some(number) = name.strip_prefix(b"libasan.so.") {
        let number = number.split(|byte| !byte.is_ascii_digit()).next()?;
        let number: u32 = std::str::from_utf8(number).ok()?.parse().ok()?;
        return Some(if number < LENIENT { Sanitizer::Strict } else { Sanitizer::Lenient });
    }
    let is_of = |short: &str| {
        [format!("lib{short}.so."), format!("libclang_rt.{short}")]
            .iter()
            .any(|start| name.starts_with(start.as_bytes()))
    };
    SANITIZERS.iter().find(|(short, _)| is_of(short)).map(|(_, name)| Sanitizer::Other(name))
}

fn loader(bytes: &[u8]) -> Result<String, Damaged> {
    let name = bytes.split(|&b| b == 0).next().unwrap_or_default();
    match std::str::from_utf8(name) {
        Ok(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(Damaged("its loader has no name")),
    }
}

/// The owners of build IDs with the types of their notes.
const GO: (u64, &[u8]) = (4, b"Go\0\0");
const GNU: (u64, &[u8]) = (3, b"GNU\0");

/// The content of the note of this type and owner.
fn note<'a>(notes: &'a [u8], layout: Layout, (kind, owner): (u64, &[u8])) -> Option<&'a [u8]> {
    let mut at = 0;
    loop {
        let field = |index: usize| layout.number(notes, at + index * 4, 4).map(|number| number as usize);
        let (name, length, found) = (field(0)?, field(1)?, field(2)?);
        let content = at + 12 + name.next_multiple_of(4);
        let is_it = found as u64 == kind && notes.get(at + 12..at + 12 + name)? == owner;
        if is_it {
            return notes.get(content..content + length);
        }
        at = content + length.next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Result<FileKind, Damaged> {
        inspect(&mut |offset, length| {
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            rest[..length.min(rest.len())].to_vec()
        })
    }

    /// A program with these segments.
    fn program(wide: bool, segments: &[(u32, &[u8])]) -> Vec<u8> {
        let (head, size) = if wide { (64, 56) } else { (52, 32) };
        let mut bytes = vec![0; head];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 1 + u8::from(wide), 1]);
        bytes[18] = 62;
        bytes[if wide { 32 } else { 28 }] = head as u8;
        let at = if wide { 54 } else { 42 };
        (bytes[at], bytes[at + 2]) = (size, segments.len() as u8);
        let mut content = head + usize::from(size) * segments.len();
        for (kind, data) in segments {
            let mut segment = vec![0; usize::from(size)];
            segment[0] = *kind as u8;
            let (offset, length) = if wide { (8, 32) } else { (4, 16) };
            segment[offset..offset + 2].copy_from_slice(&(content as u16).to_le_bytes());
            segment[length..length + 2].copy_from_slice(&(data.len() as u16).to_le_bytes());
            bytes.extend(segment);
            content += data.len();
        }
        segments.iter().for_each(|(_, data)| bytes.extend(*data));
        bytes
    }

    #[test]
    fn scripts_name_their_interpreter() {
        let script = |text: &str| match of(text.as_bytes()).unwrap() {
            FileKind::Script { interpreter, argument } => (interpreter, argument),
            other => panic!("{other:?}"),
        };
        assert_eq!(script("#!/bin/sh\nexit"), ("/bin/sh".to_owned(), None));
        assert_eq!(
            script("#! /usr/bin/env  python3 -u \n"),
            ("/usr/bin/env".into(), Some("python3 -u".into()))
        );
        assert_eq!(of(b"#!\n").unwrap(), FileKind::Other);
        assert_eq!(of(b"echo hello\n").unwrap(), FileKind::Other);
        assert_eq!(of(b"").unwrap(), FileKind::Other);
    }

    #[test]
    fn machine_code_names_its_loader_and_go() {
        let note = b"\x04\0\0\0\x02\0\0\0\x03\0\0\0GNU\0ab\0\0\x04\0\0\0\x01\0\0\0\x04\0\0\0Go\0\0x\0\0\0";
        let loader: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
        for wide in [false, true] {
            let bits = if wide { 64 } else { 32 };
            let elf = Elf { bits, machine: 62, ..Elf::default() };
            let named = Elf { build_id: Some("6162".to_owned()), ..elf.clone() };
            assert_eq!(of(&program(wide, &[])).unwrap(), FileKind::Elf(elf.clone()));
            let dynamic = Elf { interpreter: Some("/lib64/ld-linux-x86-64.so.2".into()), ..elf.clone() };
            assert_eq!(of(&program(wide, &[(1, b"x"), (3, loader)])).unwrap(), FileKind::Elf(dynamic));
            assert_eq!(
                of(&program(wide, &[(4, note)])).unwrap(),
                FileKind::Elf(Elf { go: true, ..named.clone() })
            );
            assert_eq!(of(&program(wide, &[(4, &note[..20])])).unwrap(), FileKind::Elf(named));
            assert_eq!(of(&program(wide, &[(4, &note[..17])])).unwrap(), FileKind::Elf(elf));
        }
    }

    #[test]
    fn machine_code_names_the_sanitizer_that_it_needs() {
        for wide in [false, true] {
            let width = if wide { 8 } else { 4 };
            let word = |number: u64| number.to_le_bytes()[..width].to_vec();
            let of_libraries = |names: &[u8], at: &[u64], strings: u64| {
                let mut dynamic: Vec<u8> = at.iter().flat_map(|at| [word(1), word(*at)].concat()).collect();
                dynamic.extend([word(5), word(strings), word(0), word(0)].concat());
                let mut bytes = program(wide, &[(2, &dynamic), (1, names)]);
                // The second segment is loaded at 0x1000.
                let (head, size, address) = if wide { (64, 56, 16) } else { (52, 32, 8) };
                bytes[head + size + address + 1] = 0x10;
                match of(&bytes).unwrap() {
                    FileKind::Elf(elf) => elf.sanitizer,
                    other => panic!("{other:?}"),
                }
            };
            let names =
                b"\0libc.so.6\0libasan.so.8\0libasan.so.4\0libclang_rt.asan-x86_64.so\0libtsan.so.2\0";
            assert_eq!(of_libraries(names, &[1], 0x1000), None);
            assert_eq!(of_libraries(names, &[1, 11], 0x1000), Some(Sanitizer::Lenient));
            assert_eq!(of_libraries(names, &[24], 0x1000), Some(Sanitizer::Strict));
            assert_eq!(of_libraries(names, &[37, 1], 0x1000), Some(Sanitizer::Lenient));
            assert_eq!(of_libraries(names, &[64], 0x1000), Some(Sanitizer::Other("ThreadSanitizer")));
            // Invalid offsets are ignored.
            assert_eq!(of_libraries(names, &[11], 0x9000), None);
            assert_eq!(of_libraries(names, &[u64::MAX, 5000], 0x1000), None);
        }
    }

    #[test]
    fn damage_is_reported() {
        let whole = program(true, &[(3, b"\0")]);
        assert_eq!(of(&whole).unwrap_err().to_string(), "its loader has no name");
        assert_eq!(of(&whole[..40]).unwrap_err().to_string(), "its header is truncated");
        let mut strange = whole.clone();
        strange[4] = 7;
        assert!(of(&strange).is_err());
    }

    #[test]
    fn this_program_is_for_this_machine() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let FileKind::Elf(elf) = of(&bytes).unwrap() else { panic!("not machine code") };
        assert_eq!((elf.machine, elf.bits, elf.go), (OWN_MACHINE, 64, false));
        assert!(elf.interpreter.is_some());
    }
}
