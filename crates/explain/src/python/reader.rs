//! The frames of Python's threads, read from the memory of a process that goes on running: what changes meanwhile is noticed
//! where that can be, and the look is given up.

use super::find::FoundInterpreter;
use super::layout::{
    BYTES_LENGTH, BYTES_START, FramePlace, GIL_BYTES, GIL_HOLDER, GIL_LOCKED, GilPlace, LineTable,
    NEXT_THREAD, OWNED_BY_C, PythonLayout, TEXT_LENGTH, TEXT_STATE,
};
use super::lines;
use crate::code::CodeName;
use numakit_sys::proc::printable;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Threads and frames that are read; what is further out is left out.
const MAX_THREADS: usize = 1024;
const MAX_FRAMES: usize = 250;
/// Bytes of names and of tables of lines that are read.
const MAX_TEXT: u64 = 1000;
const MAX_TABLE: u64 = 1 << 20;
/// Code objects that are kept.
const MAX_CODES: usize = 1 << 16;
/// Bytes of a frame and of the header of a code object that have all offsets; from 3.11 on, frames are shorter.
const FRAME: usize = 112;
const SHORT_FRAME: usize = 72;
const CODE: usize = 144;
/// Where the C library keeps the kernel's number of a thread, from the address by which it knows the thread.
#[cfg(target_arch = "x86_64")]
const TIDS: [u64; 2] = [720, 48];
#[cfg(not(target_arch = "x86_64"))]
const TIDS: [u64; 2] = [208, 48];

/// The memory of a process: copies bytes, and says whether all were there.
pub type ProcessMemory<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// A thread that runs Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PythonThread {
    /// The address of its state.
    pub state: u64,
    /// The numbers that the kernel may have given it, as its process knows them.
    pub numbers: [Option<u32>; 2],
}

/// The global interpreter lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gil {
    /// The addresses at which threads wait for it.
    pub addresses: Range<u64>,
    /// The state of the thread that holds it; `None` if nobody does.
    pub holder: Option<u64>,
}

/// A frame as it is in memory.
#[derive(Debug, Clone, Copy)]
struct RawFrame {
    address: u64,
    code: u64,
    instruction: u64,
}

impl RawFrame {
    /// Whether it is the same call, at whichever instruction.
    fn is_same(&self, other: &Self) -> bool {
        (self.address, self.code) == (other.address, other.code)
    }
}

/// A code object that was read.
#[derive(Debug, Clone)]
struct KnownCode {
    /// What must be there still: another object may have its address later.
    header: [u64; 4],
    name: CodeName,
    table: Arc<[u8]>,
}

/// Reads one process.
#[derive(Debug)]
pub struct PythonReader {
    found: FoundInterpreter,
    codes: HashMap<u64, KnownCode>,
}

fn word(memory: ProcessMemory<'_>, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory(address, &mut bytes).then(|| u64::from_ne_bytes(bytes))
}

fn at(bytes: &[u8], offset: u64) -> Option<u64> {
    let from = usize::try_from(offset).ok()?;
    Some(u64::from_ne_bytes(bytes.get(from..from.checked_add(8)?)?.try_into().ok()?))
}

impl PythonReader {
    /// Reads the process in which this interpreter was found.
    pub fn new(found: FoundInterpreter) -> Self {
        Self { found, codes: HashMap::new() }
    }

    /// The path of the interpreter's program or library.
    pub fn path(&self) -> &str {
        &self.found.path
    }

    fn layout(&self) -> &'static PythonLayout {
        self.found.layout
    }

    /// The first interpreter; `None` before it has begun. Others of the process are not looked at.
    fn interpreter(&self, memory: ProcessMemory<'_>) -> Option<u64> {
        word(memory, self.found.runtime + self.layout().interpreter).filter(|interpreter| *interpreter != 0)
    }

    /// The threads.
    pub fn threads(&self, memory: ProcessMemory<'_>) -> Vec<PythonThread> {
        let mut threads = Vec::new();
        let first = self.interpreter(memory).and_then(|at| word(memory, at + self.layout().threads));
        let mut next = first.filter(|state| *state != 0);
        while let Some(state) = next.filter(|_| threads.len() < MAX_THREADS) {
            threads.push(PythonThread { state, numbers: self.numbers(state, memory) });
            next = word(memory, state.wrapping_add(NEXT_THREAD)).filter(|state| *state != 0);
        }
        threads
    }

    /// The numbers that the kernel may have given the thread with this state.
    pub fn numbers(&self, state: u64, memory: ProcessMemory<'_>) -> [Option<u32>; 2] {
        let number = |address| word(memory, address).and_then(|number| u32::try_from(number).ok());
        match self.layout().native_id {
            Some(offset) => [number(state.wrapping_add(offset)), None],
            None => {
                let thread = word(memory, state.wrapping_add(self.layout().thread_id)).filter(|id| *id != 0);
                let number = |offset| {
                    let mut bytes = [0; 4];
                    let is_read = memory(thread?.wrapping_add(offset), &mut bytes);
                    is_read.then(|| u32::from_ne_bytes(bytes)).filter(|number| *number != 0)
                };
                TIDS.map(number)
            }
        }
    }

    /// The lock.
    pub fn gil(&self, memory: ProcessMemory<'_>) -> Option<Gil> {
        let start = match self.layout().gil {
            GilPlace::Runtime(offset) => self.found.runtime + offset,
            GilPlace::Interpreter(offset) => word(memory, self.interpreter(memory)?.wrapping_add(offset))?,
        };
        let mut locked = [0; 4];
        let is_held = memory(start.wrapping_add(GIL_LOCKED), &mut locked) && i32::from_ne_bytes(locked) > 0;
        let holder = word(memory, start.wrapping_add(GIL_HOLDER)).filter(|state| is_held && *state != 0);
        Some(Gil { addresses: start..start.checked_add(GIL_BYTES)?, holder })
    }

    /// The functions in which a thread with this state is, innermost first, with the lines that they are at; empty if it runs no
    /// Python now, and `None` if the innermost one changed too fast. Functions further out are those that were on the stack
    /// before and after the look: what came or went meanwhile is left out.
    pub fn frames(&mut self, state: u64, memory: ProcessMemory<'_>) -> Option<Vec<CodeName>> {
        let (frames, is_whole) = self.walk(state, memory)?;
        let Some(innermost) = frames.first() else { return is_whole.then(Vec::new) };
        let (again, is_whole_again) = self.walk(state, memory).unwrap_or_default();
        let mut names = vec![self.function(innermost.code, innermost.instruction, memory)?];
        let same =
            frames.iter().rev().zip(again.iter().rev()).take_while(|(one, other)| one.is_same(other)).count();
        let is_all = same == frames.len() && same == again.len();
        let outside = if is_all || (is_whole && is_whole_again) { same.min(frames.len() - 1) } else { 0 };
        for frame in &frames[frames.len() - outside..] {
            names.extend(self.function(frame.code, frame.instruction, memory));
        }
        Some(names)
    }

    /// A number that is another one when a thread is elsewhere in its functions.
    pub fn stamp(&self, state: u64, memory: ProcessMemory<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        for RawFrame { address, code, instruction } in self.walk(state, memory).unwrap_or_default().0 {
            (address, code, instruction).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The frames of a thread, innermost first, and whether they are all.
    fn walk(&self, state: u64, memory: ProcessMemory<'_>) -> Option<(Vec<RawFrame>, bool)> {
        let layout = self.layout();
        let mut next = match layout.frame {
            FramePlace::Thread(offset) => word(memory, state.wrapping_add(offset))?,
            FramePlace::Behind(offset, inner) => match word(memory, state.wrapping_add(offset))? {
                0 => 0,
                behind => word(memory, behind.wrapping_add(inner))?,
            },
        };
        let mut frames = Vec::new();
        for _ in 0..MAX_FRAMES {
            let mut bytes = [0; FRAME];
            // The end of a frame may be the end of a mapping.
            let is_read = next != 0 && (memory(next, &mut bytes) || memory(next, &mut bytes[..SHORT_FRAME]));
            if !is_read {
                break;
            }
            let owner = layout.owner.and_then(|offset| bytes.get(offset as usize)).copied();
            if owner != Some(OWNED_BY_C) {
                let (code, instruction) = (at(&bytes, layout.code)?, at(&bytes, layout.instruction)?);
                frames.push(RawFrame { address: next, code, instruction });
            }
            next = at(&bytes, layout.previous)?;
        }
        Some((frames, next == 0))
    }

    /// The function with this code object, at this instruction.
    fn function(&mut self, code: u64, instruction: u64, memory: ProcessMemory<'_>) -> Option<CodeName> {
        let layout = self.layout();
        let mut bytes = [0; CODE];
        if !memory(code, &mut bytes) {
            return None;
        }
        let first = at(&bytes, layout.first_line)? & 0xffff_ffff;
        let header = [at(&bytes, layout.file)?, at(&bytes, layout.name)?, at(&bytes, layout.lines)?, first];
        if self.codes.get(&code).is_none_or(|known| known.header != header) {
            let known = self.read(header, memory)?;
            if self.codes.len() >= MAX_CODES {
                self.codes.clear();
            }
            self.codes.insert(code, known);
        }
        let KnownCode { name, table, .. } = self.codes.get(&code)?;
        let byte = match layout.table {
            LineTable::Bytes => instruction & 0xffff_ffff,
            LineTable::Instructions => 2 * (instruction & 0xffff_ffff),
            LineTable::Address(start) => instruction.wrapping_sub(code).wrapping_sub(start),
        };
        let line = lines::line(layout.table, table, first as u32, byte).filter(|line| *line > 0);
        Some(CodeName { line, ..name.clone() })
    }

    fn read(&self, header: [u64; 4], memory: ProcessMemory<'_>) -> Option<KnownCode> {
        let [file, name, lines, _] = header;
        let file = self.text(file, memory)?;
        let length = word(memory, lines.wrapping_add(BYTES_LENGTH)).filter(|length| *length <= MAX_TABLE)?;
        let mut table = vec![0; usize::try_from(length).ok()?];
        if !memory(lines.wrapping_add(BYTES_START), &mut table) {
            return None;
        }
        let name = CodeName {
            function: Some(self.text(name, memory)?),
            module: file.rsplit('/').next().unwrap_or_default().to_owned(),
            file: Some(file),
            line: None,
        };
        Some(KnownCode { header, name, table: table.into() })
    }

    /// A text, made printable.
    fn text(&self, address: u64, memory: ProcessMemory<'_>) -> Option<String> {
        let length =
            word(memory, address.wrapping_add(TEXT_LENGTH)).filter(|l| (1..=MAX_TEXT).contains(l))?;
        let state = word(memory, address.wrapping_add(TEXT_STATE))?;
        // The bits: interned (2, in later versions more), then the width, then whether it is compact and whether it is ASCII.
        let (kind, compact, ascii) = (state >> 2 & 7, state >> 5 & 1, state >> 6 & 1);
        if compact != 1 || !matches!(kind, 1 | 2 | 4) {
            return None;
        }
        let start = self.layout().text[usize::from(ascii == 0)];
        let mut bytes = vec![0; usize::try_from(length * kind).ok()?];
        if !memory(address.wrapping_add(start), &mut bytes) {
            return None;
        }
        let letters: String = match kind {
            1 => bytes.iter().map(|byte| char::from(*byte)).collect(),
            2 => wide::<2>(&bytes, |pair| u16::from_ne_bytes(pair).into()),
            _ => wide::<4>(&bytes, u32::from_ne_bytes),
        };
        Some(printable(letters.as_bytes()))
    }
}

fn wide<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> u32) -> String {
    let letter = |letter: &[u8]| char::from_u32(number(letter.try_into().unwrap_or([0; N])));
    bytes.chunks_exact(N).map(|bytes| letter(bytes).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests;
