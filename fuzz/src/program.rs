//! Program files.

use numakit_launch::file_kind::{FileKind, inspect};

/// The head of a program file: no input makes it read more than the limits.
pub fn head(input: &[u8]) -> bool {
    let mut bytes = 0;
    let found = inspect(&mut |offset, length| {
        bytes += length;
        let rest = usize::try_from(offset).ok().and_then(|at| input.get(at..)).unwrap_or_default();
        rest[..length.min(rest.len())].to_vec()
    });
    // A head, a table of segments, and at most a page of each segment.
    assert!(bytes <= 256 + 512 * (65_535 + 4096), "{bytes}");
    match found {
        Ok(FileKind::Script { interpreter, .. }) => assert!(!interpreter.is_empty()),
        Ok(FileKind::Elf(elf)) => assert!(elf.interpreter.is_none_or(|name| !name.is_empty())),
        Ok(FileKind::Other) | Err(_) => return false,
    }
    true
}
