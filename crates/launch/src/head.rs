//! What the first bytes of a program's file say of it.

use std::fmt;

/// What a file is to the kernel that is asked to start it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// A program in machine code.
    Elf(Elf),
    /// Text that another program runs.
    Script {
        /// The program after `#!`.
        interpreter: String,
        /// What follows it in the line, as one word.
        argument: Option<String>,
    },
    /// Something else; shells take it for one of their scripts.
    Other,
}

/// A program in machine code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elf {
    /// 32 or 64.
    pub bits: u8,
    /// The processor that it is for, as ELF numbers them.
    pub machine: u16,
    /// What loads it and its libraries; none if it is statically linked.
    pub interpreter: Option<String>,
    /// It was built by Go, whose threads are not made through libraries.
    pub go: bool,
}

/// Machine code that breaks off or contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged(&'static str);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The processors of programs that run here, as ELF numbers them.
#[cfg(target_arch = "x86_64")]
pub const OWN_MACHINE: u16 = 62;
/// The processors of programs that run here, as ELF numbers them.
#[cfg(target_arch = "aarch64")]
pub const OWN_MACHINE: u16 = 183;
/// The processors of programs that run here, as ELF numbers them; unknown.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const OWN_MACHINE: u16 = 0;

/// The kernel looks at so much of the first line of a script.
const LINE: usize = 256;
/// No linker makes more of them.
const MOST_SEGMENTS: u64 = 512;
/// Longer names of loaders and longer notes are not looked at.
const MOST_BYTES: u64 = 4096;
const LOADER: u32 = 3;
const NOTE: u32 = 4;

/// Looks at a program. `read` gives up to so many bytes at an offset, fewer at the end.
pub fn inspect(read: &mut dyn FnMut(u64, usize) -> Vec<u8>) -> Result<Head, Damaged> {
    let front = read(0, LINE);
    if let Some(line) = front.strip_prefix(b"#!") {
        return Ok(script(line));
    }
    if !front.starts_with(b"\x7fELF") {
        return Ok(Head::Other);
    }
    elf(&front, read).map(Head::Elf)
}

fn script(rest: &[u8]) -> Head {
    let line = rest.split(|&b| b == b'\n' || b == 0).next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let line = line.trim_matches([' ', '\t']);
    let (interpreter, argument) = line.split_once([' ', '\t']).map_or((line, ""), |(i, a)| (i, a.trim()));
    if interpreter.is_empty() {
        return Head::Other;
    }
    let argument = Some(argument.to_owned()).filter(|argument| !argument.is_empty());
    Head::Script { interpreter: interpreter.to_owned(), argument }
}

/// Numbers in the order of bytes and of the width that the file's head tells.
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
    const SHORT: Damaged = Damaged("its head is cut off");
    let layout = match front.get(4..6).ok_or(SHORT)? {
        [width @ 1..=2, order @ 1..=2] => Layout { wide: *width == 2, little: *order == 1 },
        _ => return Err(Damaged("its width or its order of bytes is not known")),
    };
    let machine = layout.number(front, 18, 2).ok_or(SHORT)? as u16;
    let table = layout.word(front, [28, 32]).ok_or(SHORT)?;
    let at = if layout.wide { 54 } else { 42 };
    let size = layout.number(front, at, 2).ok_or(SHORT)?;
    let count = layout.number(front, at + 2, 2).ok_or(SHORT)?.min(MOST_SEGMENTS);
    if size < if layout.wide { 56 } else { 32 } {
        return Err(Damaged("its segments are too small"));
    }
    let segments = read(table, (size * count) as usize);
    let mut elf = Elf { bits: if layout.wide { 64 } else { 32 }, machine, ..Elf::default() };
    for segment in segments.chunks_exact(size as usize) {
        let kind = layout.number(segment, 0, 4).ok_or(SHORT)? as u32;
        let offset = layout.word(segment, [4, 8]).ok_or(SHORT)?;
        let length = layout.word(segment, [16, 32]).ok_or(SHORT)?.min(MOST_BYTES) as usize;
        match kind {
            LOADER => elf.interpreter = Some(loader(&read(offset, length))?),
            NOTE => elf.go |= is_of_go(&read(offset, length), layout),
            _ => {}
        }
    }
    Ok(elf)
}

fn loader(bytes: &[u8]) -> Result<String, Damaged> {
    let name = bytes.split(|&b| b == 0).next().unwrap_or_default();
    match std::str::from_utf8(name) {
        Ok(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(Damaged("its loader has no name")),
    }
}

/// Whether one of these notes is the build id of Go: owner `Go`, type 4.
fn is_of_go(notes: &[u8], layout: Layout) -> bool {
    let mut at = 0;
    loop {
        let field = |index: usize| layout.number(notes, at + index * 4, 4);
        let (Some(owner), Some(length), Some(kind)) = (field(0), field(1), field(2)) else { return false };
        let Some(name) = notes.get(at + 12..).and_then(|rest| rest.get(..owner as usize)) else {
            return false;
        };
        if kind == 4 && name == b"Go\0\0" {
            return true;
        }
        at += 12 + (owner as usize).next_multiple_of(4) + (length as usize).next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Result<Head, Damaged> {
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
    fn scripts_name_what_runs_them() {
        let script = |text: &str| match of(text.as_bytes()).unwrap() {
            Head::Script { interpreter, argument } => (interpreter, argument),
            other => panic!("{other:?}"),
        };
        assert_eq!(script("#!/bin/sh\nexit"), ("/bin/sh".to_owned(), None));
        assert_eq!(
            script("#! /usr/bin/env  python3 -u \n"),
            ("/usr/bin/env".into(), Some("python3 -u".into()))
        );
        assert_eq!(of(b"#!\n").unwrap(), Head::Other);
        assert_eq!(of(b"echo hello\n").unwrap(), Head::Other);
        assert_eq!(of(b"").unwrap(), Head::Other);
    }

    #[test]
    fn machine_code_says_who_loads_it_and_who_made_it() {
        let note = b"\x04\0\0\0\x02\0\0\0\x03\0\0\0GNU\0ab\0\0\x04\0\0\0\x01\0\0\0\x04\0\0\0Go\0\0x\0\0\0";
        let loader: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
        for wide in [false, true] {
            let bits = if wide { 64 } else { 32 };
            let elf = Elf { bits, machine: 62, ..Elf::default() };
            assert_eq!(of(&program(wide, &[])).unwrap(), Head::Elf(elf.clone()));
            let dynamic = Elf { interpreter: Some("/lib64/ld-linux-x86-64.so.2".into()), ..elf.clone() };
            assert_eq!(of(&program(wide, &[(1, b"x"), (3, loader)])).unwrap(), Head::Elf(dynamic));
            assert_eq!(of(&program(wide, &[(4, note)])).unwrap(), Head::Elf(Elf { go: true, ..elf.clone() }));
            assert_eq!(of(&program(wide, &[(4, &note[..20])])).unwrap(), Head::Elf(elf));
        }
    }

    #[test]
    fn damage_is_told() {
        let whole = program(true, &[(3, b"\0")]);
        assert_eq!(of(&whole).unwrap_err().to_string(), "its loader has no name");
        assert_eq!(of(&whole[..40]).unwrap_err().to_string(), "its head is cut off");
        let mut strange = whole.clone();
        strange[4] = 7;
        assert!(of(&strange).is_err());
    }

    #[test]
    fn this_program_is_one_for_this_machine() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let Head::Elf(elf) = of(&bytes).unwrap() else { panic!("not machine code") };
        assert_eq!((elf.machine, elf.bits, elf.go), (OWN_MACHINE, 64, false));
        assert!(elf.interpreter.is_some());
    }
}
