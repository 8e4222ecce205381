use super::super::layout::PythonVersion;
use super::*;

const BASE: u64 = 0x1_0000;
const RUNTIME: u64 = BASE + 0x100;
const INTERPRETER: u64 = BASE + 0x1000;
const STATE: u64 = BASE + 0x4000;
const GIL: u64 = BASE + 0x5000;
const C_FRAME: u64 = BASE + 0x5800;

/// The memory of a process.
struct Space(Vec<u8>);

impl Space {
    fn new() -> Self {
        Self(vec![0; 0x2_0000])
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - BASE) as usize;
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn word(&mut self, address: u64, value: u64) {
        self.put(address, &value.to_ne_bytes());
    }

    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let at = address.checked_sub(BASE).and_then(|at| usize::try_from(at).ok());
        let piece = at.and_then(|at| self.0.get(at..at.checked_add(into.len())?));
        piece.is_some_and(|piece| {
            into.copy_from_slice(piece);
            true
        })
    }

    /// A text of letters of this many bytes each.
    fn text(&mut self, address: u64, layout: &PythonLayout, text: &str, kind: u64) {
        let is_ascii = u64::from(text.is_ascii());
        self.word(address + TEXT_LENGTH, text.chars().count() as u64);
        self.word(address + TEXT_STATE, kind << 2 | 1 << 5 | is_ascii << 6);
        let start = address + layout.text[usize::from(is_ascii == 0)];
        for (nth, letter) in text.chars().enumerate() {
            let bytes = u32::from(letter).to_le_bytes();
            self.put(start + nth as u64 * kind, &bytes[..kind as usize]);
        }
    }

    /// A code object with a name and a file at 0x200 and 0x400 behind it, whose table of lines at 0x800 is `table`.
    fn code(&mut self, address: u64, layout: &PythonLayout, name: &str, table: &[u8]) {
        self.text(address + 0x200, layout, name, if name.is_ascii() { 1 } else { 2 });
        self.text(address + 0x400, layout, "/srv/app.py", 1);
        self.word(address + layout.name, address + 0x200);
        self.word(address + layout.file, address + 0x400);
        self.word(address + layout.lines, address + 0x800);
        self.word(address + layout.first_line, 10);
        self.word(address + 0x800 + BYTES_LENGTH, table.len() as u64);
        self.put(address + 0x800 + BYTES_START, table);
    }

    fn frame(&mut self, address: u64, layout: &PythonLayout, code: u64, instruction: u64, previous: u64) {
        self.word(address + layout.code, code);
        self.word(address + layout.instruction, instruction);
        self.word(address + layout.previous, previous);
    }
}

fn layout(minor: u32) -> &'static PythonLayout {
    PythonLayout::of(PythonVersion { major: 3, minor }).unwrap()
}

fn reader(minor: u32) -> PythonReader {
    let path = "/usr/bin/python3".to_owned();
    PythonReader::new(FoundInterpreter { runtime: RUNTIME, layout: layout(minor), path })
}

/// A process with a thread that is in `inner`, which `größe` called.
fn process(minor: u32) -> Space {
    let layout = layout(minor);
    let mut space = Space::new();
    space.word(RUNTIME + layout.interpreter, INTERPRETER);
    space.word(INTERPRETER + layout.threads, STATE);
    match layout.gil {
        GilPlace::Runtime(offset) => assert!(RUNTIME + offset < INTERPRETER),
        GilPlace::Interpreter(offset) => space.word(INTERPRETER + offset, GIL),
    }
    let frames = [BASE + 0x6000, BASE + 0x6100, BASE + 0x6200];
    match layout.frame {
        FramePlace::Thread(offset) => space.word(STATE + offset, frames[0]),
        FramePlace::Behind(offset, inner) => {
            space.word(STATE + offset, C_FRAME);
            space.word(C_FRAME + inner, frames[0]);
        }
    }
    let codes = [BASE + 0x8000, BASE + 0xa000];
    let table: &[u8] = match layout.table {
        LineTable::Bytes => &[4, 1, 4, 1],
        LineTable::Instructions => &[4, 0, 4, 1, 4, 1],
        LineTable::Address(_) => &[0xd1, 0, 0, 0xd9, 0, 0, 0xd9, 0, 0],
    };
    space.code(codes[0], layout, "inner", table);
    space.code(codes[1], layout, "größe", table);
    let instruction = |code: u64, byte: u64| match layout.table {
        LineTable::Bytes => byte,
        LineTable::Instructions => byte / 2,
        LineTable::Address(start) => code + start + byte,
    };
    space.frame(frames[0], layout, codes[0], instruction(codes[0], 6), frames[1]);
    space.frame(frames[1], layout, codes[1], instruction(codes[1], 8), frames[2]);
    // The interpreter's own frame, where versions have one.
    let outermost = if layout.owner.is_some() { frames[2] } else { 0 };
    space.word(frames[1] + layout.previous, outermost);
    layout.owner.into_iter().for_each(|owner| space.put(frames[2] + owner, &[OWNED_BY_C]));
    space
}

#[test]
fn frames_are_functions_with_lines_in_all_versions() {
    for minor in 8..14 {
        let space = process(minor);
        let mut reader = reader(minor);
        let memory = |address: u64, into: &mut [u8]| space.read(address, into);
        let threads = reader.threads(&memory);
        assert_eq!(threads.iter().map(|thread| thread.state).collect::<Vec<_>>(), [STATE], "3.{minor}");
        let found = reader.frames(STATE, &memory).unwrap();
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["inner (/srv/app.py:11)", "größe (/srv/app.py:12)"], "3.{minor}");
        assert!(found.iter().all(CodeName::is_script));
    }
}

#[test]
fn a_thread_that_is_elsewhere_has_another_stamp() {
    let mut space = process(11);
    let stamp = |space: &Space| reader(11).stamp(STATE, &|address, into| space.read(address, into));
    let before = stamp(&space);
    assert_eq!(stamp(&space), before);
    space.word(BASE + 0x6100 + layout(11).instruction, 7);
    assert_ne!(stamp(&space), before, "the caller is at another line");
}

#[test]
fn another_function_at_the_same_address_has_its_own_name() {
    let mut space = process(11);
    let mut reader = reader(11);
    let names = |reader: &mut PythonReader, space: &Space| {
        let frames = reader.frames(STATE, &|address, into| space.read(address, into));
        frames.map(|frames| frames.into_iter().filter_map(|frame| frame.function).collect::<Vec<_>>())
    };
    assert_eq!(names(&mut reader, &space), Some(vec!["inner".to_owned(), "größe".to_owned()]));
    space.text(BASE + 0xc000, layout(11), "later\u{1b}[2J", 4);
    space.word(BASE + 0x8000 + layout(11).name, BASE + 0xc000);
    assert_eq!(
        names(&mut reader, &space),
        Some(vec!["later?[2J".to_owned(), "größe".to_owned()]),
        "printable"
    );
    // What is torn: a pointer to nothing, a text of an impossible length.
    space.word(BASE + 0x8000 + layout(11).name, 7);
    assert_eq!(names(&mut reader, &space), None);
    space.word(BASE + 0x8000 + layout(11).name, BASE + 0xc000);
    space.word(BASE + 0xc000 + TEXT_LENGTH, u64::MAX);
    space.word(BASE + 0x8000 + layout(11).first_line, 99);
    assert_eq!(names(&mut reader, &space), None);
}

#[test]
fn frames_that_come_and_go_during_a_look_are_left_out() {
    let space = process(11);
    let mut reader = reader(11);
    let innermost = std::cell::Cell::new(0);
    // The second time that the innermost frame is asked for, its caller has another code: it was not there before.
    let memory = |address: u64, into: &mut [u8]| {
        let is_read = space.read(address, into);
        if address == C_FRAME + 8 {
            innermost.set(innermost.get() + 1);
        }
        if address == BASE + 0x6100 && innermost.get() == 2 {
            into[32..40].copy_from_slice(&(BASE + 0x8000).to_ne_bytes());
        }
        is_read
    };
    let found = reader.frames(STATE, &memory).unwrap();
    let functions: Vec<String> = found.into_iter().filter_map(|frame| frame.function).collect();
    assert_eq!(functions, ["inner"]);
}

#[test]
fn frames_in_a_circle_have_an_end() {
    let mut space = process(12);
    space.word(BASE + 0x6100 + layout(12).previous, BASE + 0x6000);
    let found = reader(12).frames(STATE, &|address, into| space.read(address, into)).unwrap();
    assert_eq!(found.len(), MAX_FRAMES);
    // So do threads.
    space.word(STATE + NEXT_THREAD, STATE);
    assert_eq!(reader(12).threads(&|address, into| space.read(address, into)).len(), MAX_THREADS);
}

#[test]
fn the_lock_has_its_holder_while_it_is_held() {
    for (minor, start) in [(9, RUNTIME + 352), (11, RUNTIME + 360), (13, GIL)] {
        let mut space = process(minor);
        space.word(start + GIL_HOLDER, STATE);
        let gil = |space: &Space| reader(minor).gil(&|address, into| space.read(address, into)).unwrap();
        assert_eq!(gil(&space), Gil { addresses: start..start + GIL_BYTES, holder: None }, "3.{minor}");
        space.put(start + GIL_LOCKED, &1i32.to_ne_bytes());
        assert_eq!(gil(&space).holder, Some(STATE), "3.{minor}");
    }
}

#[test]
fn a_thread_has_the_number_that_the_kernel_gave_it() {
    let mut space = process(13);
    space.word(STATE + 160, 77);
    let numbers =
        |minor, space: &Space| reader(minor).numbers(STATE, &|address, into| space.read(address, into));
    assert_eq!(numbers(13, &space), [Some(77), None]);
    let mut space = process(8);
    space.word(STATE + 176, BASE + 0xd000);
    space.put(BASE + 0xd000 + TIDS[0], &78u32.to_ne_bytes());
    space.put(BASE + 0xd000 + TIDS[1], &5u32.to_ne_bytes());
    assert_eq!(numbers(8, &space), [Some(78), Some(5)]);
}
