//! Where CPython keeps what a look needs, by version. The offsets are those of its headers (`offsetof`), the same on x86-64 and
//! AArch64 and in all releases of a version.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A version, such as 3.11.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PythonVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

/// Where the pointer to the innermost frame of a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramePlace {
    /// In the state of the thread.
    Thread(u64),
    /// In a structure that the state of the thread points to: the offset of that pointer, and the frame's in the structure.
    Behind(u64, u64),
}

/// Where the global interpreter lock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GilPlace {
    /// In the runtime.
    Runtime(u64),
    /// Where a pointer in the interpreter points to.
    Interpreter(u64),
}

/// How a frame says which instruction it is at, and how the table of lines is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineTable {
    /// The number of the byte; pairs of distances (`lnotab`).
    Bytes,
    /// The number of the instruction, each of two bytes; ranges (PEP 626).
    Instructions,
    /// The address of the instruction, behind the code object's header of this size; entries of varying length (PEP 657).
    Address(u64),
}

/// The offsets of one version, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct PythonLayout {
    /// The second number of the version.
    pub minor: u32,
    /// In the runtime: the first interpreter.
    pub interpreter: u64,
    /// In an interpreter: its first thread.
    pub threads: u64,
    /// The lock.
    pub gil: GilPlace,
    /// In a thread: the number that its C library gave it.
    pub thread_id: u64,
    /// In a thread: the number that the kernel gave it.
    pub native_id: Option<u64>,
    /// The innermost frame.
    pub frame: FramePlace,
    /// In a frame: the frame that called it, its code, its instruction, and who owns the frame.
    pub previous: u64,
    /// See `previous`.
    pub code: u64,
    /// See `previous`.
    pub instruction: u64,
    /// See `previous`. Frames of the interpreter itself have an owner of their own.
    pub owner: Option<u64>,
    /// In a code object: the line at which the function begins, and the objects of its file, name and table of lines.
    pub first_line: u64,
    /// See `first_line`.
    pub file: u64,
    /// See `first_line`; with the class where there is one from 3.11 on.
    pub name: u64,
    /// See `first_line`.
    pub lines: u64,
    /// How lines are found.
    pub table: LineTable,
    /// Bytes before the letters of a text of ASCII letters, and of others.
    pub text: [u64; 2],
}

/// In a thread: the next one, and its interpreter's, in all versions.
pub const NEXT_THREAD: u64 = 8;
/// In the lock: the thread that has it, or had it last; whether it is held; and the bytes of all of it.
pub const GIL_HOLDER: u64 = 8;
/// See [`GIL_HOLDER`].
pub const GIL_LOCKED: u64 = 16;
/// See [`GIL_HOLDER`].
pub const GIL_BYTES: u64 = 208;
/// In a text: the number of letters; and the bits that say how wide they are.
pub const TEXT_LENGTH: u64 = 16;
/// See [`TEXT_LENGTH`].
pub const TEXT_STATE: u64 = 32;
/// In bytes: their number, and the first one.
pub const BYTES_LENGTH: u64 = 16;
/// See [`BYTES_LENGTH`].
pub const BYTES_START: u64 = 32;
/// The owner of frames that are the interpreter's own.
pub const OWNED_BY_C: u8 = 3;
/// In the runtime from 3.13 on: whether this is a build without the lock, whose layout is another.
pub const FREE_THREADED: u64 = 16;

const LAYOUTS: [PythonLayout; 6] = [
    PythonLayout { minor: 8, gil: GilPlace::Runtime(1152), ..OLD },
    OLD,
    PythonLayout { minor: 10, instruction: 96, table: LineTable::Instructions, ..OLD },
    PythonLayout {
        minor: 11,
        interpreter: 40,
        threads: 16,
        gil: GilPlace::Runtime(360),
        thread_id: 152,
        native_id: Some(160),
        frame: FramePlace::Behind(56, 8),
        previous: 48,
        code: 32,
        instruction: 56,
        owner: None,
        first_line: 72,
        file: 112,
        name: 128,
        lines: 136,
        table: LineTable::Address(184),
        text: [48, 72],
    },
    PythonLayout { minor: 12, ..NEW },
    PythonLayout {
        minor: 13,
        interpreter: 632,
        threads: 7344,
        gil: GilPlace::Interpreter(16),
        thread_id: 152,
        native_id: Some(160),
        frame: FramePlace::Thread(72),
        table: LineTable::Address(200),
        ..NEW
    },
];

const OLD: PythonLayout = PythonLayout {
    minor: 9,
    interpreter: 32,
    threads: 8,
    gil: GilPlace::Runtime(352),
    thread_id: 176,
    native_id: None,
    frame: FramePlace::Thread(24),
    previous: 24,
    code: 32,
    instruction: 104,
    owner: None,
    first_line: 40,
    file: 104,
    name: 112,
    lines: 120,
    table: LineTable::Bytes,
    text: [48, 72],
};

const NEW: PythonLayout = PythonLayout {
    minor: 12,
    interpreter: 40,
    threads: 72,
    gil: GilPlace::Interpreter(384),
    thread_id: 136,
    native_id: Some(144),
    frame: FramePlace::Behind(56, 0),
    previous: 8,
    code: 0,
    instruction: 56,
    owner: Some(70),
    first_line: 68,
    file: 112,
    name: 128,
    lines: 136,
    table: LineTable::Address(192),
    text: [40, 56],
};

impl PythonLayout {
    /// The layout of a version; `None` if it is not known.
    pub fn of(version: PythonVersion) -> Option<&'static Self> {
        LAYOUTS.iter().find(|layout| version.major == 3 && layout.minor == version.minor)
    }
}

impl PythonVersion {
    /// By the number that `Py_Version` is (3.11 and later).
    pub fn of_number(number: u32) -> Self {
        Self { major: number >> 24, minor: number >> 16 & 0xff }
    }

    /// By the name of the program or library, such as `python3.9` or `libpython3.10.so.1.0`.
    pub fn of_file(name: &str) -> Option<Self> {
        let number = name.strip_prefix("lib").unwrap_or(name).strip_prefix("python")?;
        let (major, rest) = number.split_once('.')?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        Some(Self { major: major.parse().ok()?, minor: rest.get(..digits)?.parse().ok()? })
    }
}

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_in_the_name_of_the_file_or_in_a_number() {
        let version = |major, minor| Some(PythonVersion { major, minor });
        for (name, expected) in [
            ("python3.9", version(3, 9)),
            ("libpython3.10.so.1.0", version(3, 10)),
            ("libpython3.13t.so.1.0", version(3, 13)),
            ("python3", None),
            ("libpython3.so", None),
            ("uwsgi", None),
        ] {
            assert_eq!(PythonVersion::of_file(name), expected, "{name}");
        }
        assert_eq!(Some(PythonVersion::of_number(0x030b_02f0)), version(3, 11));
    }

    #[test]
    fn versions_from_3_8_on_have_a_layout() {
        let minor = |minor| PythonLayout::of(PythonVersion { major: 3, minor }).map(|layout| layout.minor);
        assert_eq!((8..14).map(minor).collect::<Vec<_>>(), (8..14).map(Some).collect::<Vec<_>>());
        assert_eq!((minor(7), minor(14)), (None, None));
        assert_eq!(PythonLayout::of(PythonVersion { major: 2, minor: 11 }), None);
    }
}
