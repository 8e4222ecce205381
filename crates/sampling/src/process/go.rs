//! Programs of Go: their stacks and thread-local storage are blocks of their heap.

use super::ProcessMapping;

/// The linker puts its note into the page of the file's header.
const PAGE: usize = 4096;
/// The name of the note, behind its type.
const NOTE: [u8; 8] = *b"\x04\0\0\0Go\0\0";
/// The length of that name, before the note's length and type.
const NAME_LENGTH: [u8; 4] = 4_u32.to_le_bytes();

/// Whether a program was linked by Go. `read` copies memory of the process, all of it or nothing.
pub fn is_go(mappings: &[ProcessMapping], read: impl Fn(u64, &mut [u8]) -> bool) -> bool {
    // Programs lie below their libraries.
    let Some(program) = mappings.iter().find(|mapping| mapping.file.1 != 0) else { return false };
    let mut page = [0; PAGE];
    if program.offset != 0 || !read(program.range.start, &mut page) {
        return false;
    }
    let words: Vec<&[u8]> = page.chunks_exact(4).collect();
    words.windows(4).any(|at| at[0] == NAME_LENGTH && at[2] == &NOTE[..4] && at[3] == &NOTE[4..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::parse_mappings;

    #[test]
    fn the_note_of_the_linker_tells() {
        let maps = "00400000-00489000 r-xp 00000000 fe:00 7 /bin/app\n7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n";
        let mappings = parse_mappings(maps);
        let found = |note: &[u8]| {
            is_go(&mappings, |address, into| {
                into[0xf9c..0xf9c + note.len()].copy_from_slice(note);
                address == 0x40_0000
            })
        };
        let note = |name: &[u8]| [&[4, 0, 0, 0, 83, 0, 0, 0, 4, 0, 0, 0], name].concat();
        assert!(found(&note(b"Go\0\0")));
        assert!(!found(&note(b"GNU\0")) && !found(b""));
        assert!(!is_go(&mappings, |_, _| false) && !is_go(&[], |_, _| true));
    }
}
