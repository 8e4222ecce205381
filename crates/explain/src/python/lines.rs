//! The line of an instruction, by the tables that CPython's compiler writes.

use super::layout::LineTable;

/// The line of the instruction at a byte of the code of a function that begins at line `first`; `None` where the compiler gave
/// it none or the table is not one.
pub fn line(kind: LineTable, table: &[u8], first: u32, byte: u64) -> Option<u32> {
    match kind {
        LineTable::Bytes => of_pairs(table, first, byte),
        LineTable::Instructions => of_ranges(table, first, byte),
        LineTable::Address(_) => of_entries(table, first, byte),
    }
}

/// Pairs: a number of bytes further, a number of lines further.
fn of_pairs(table: &[u8], first: u32, byte: u64) -> Option<u32> {
    let (mut at, mut line) = (0u64, i64::from(first));
    for pair in table.chunks_exact(2) {
        at += u64::from(pair[0]);
        if at > byte {
            break;
        }
        line += i64::from(pair[1].cast_signed());
    }
    u32::try_from(line).ok()
}

/// Ranges: a number of lines further, for a number of bytes. A distance of -128 says that there is no line.
fn of_ranges(table: &[u8], first: u32, byte: u64) -> Option<u32> {
    let (mut end, mut line) = (0u64, i64::from(first));
    for range in table.chunks_exact(2) {
        end += u64::from(range[0]);
        let distance = range[1].cast_signed();
        if distance != i8::MIN {
            line += i64::from(distance);
        }
        if byte < end {
            return (distance != i8::MIN).then(|| u32::try_from(line).ok()).flatten();
        }
    }
    None
}

/// Entries: a byte with a code and the number of instructions, then what the code says.
fn of_entries(table: &[u8], first: u32, byte: u64) -> Option<u32> {
    let mut bytes = table.iter().copied().peekable();
    let (mut end, mut line) = (0u64, i64::from(first));
    while let Some(head) = bytes.next() {
        end += 2 * (u64::from(head & 7) + 1);
        let code = head >> 3 & 15;
        line += match code {
            // With a distance; with columns too.
            13 | 14 => signed(&mut bytes)?,
            10..=12 => i64::from(code - 10),
            _ => 0,
        };
        if byte < end {
            return (code != 15).then(|| u32::try_from(line).ok()).flatten();
        }
        // What follows are columns; only the first byte of an entry has the highest bit.
        while bytes.peek().is_some_and(|next| next & 0x80 == 0) {
            bytes.next();
        }
    }
    None
}

/// A number with a sign: six bits a byte, the lowest first; the lowest of all is the sign.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let (mut value, mut shift) = (0i64, 0);
    loop {
        let byte = bytes.next()?;
        value |= i64::from(byte & 63).checked_shl(shift).filter(|_| shift < 32)?;
        if byte & 64 == 0 {
            return Some(if value & 1 == 1 { -(value >> 1) } else { value >> 1 });
        }
        shift += 6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(kind: LineTable, table: &[u8], first: u32, bytes: u64) -> Vec<Option<u32>> {
        (0..bytes).step_by(2).map(|byte| line(kind, table, first, byte)).collect()
    }

    #[test]
    fn each_version_writes_lines_in_its_way() {
        // `def f(n):` at line 4, with a loop in lines 5 to 7, as the compilers of 3.9, 3.10 and 3.11 write it.
        let old = lines(LineTable::Bytes, &[0, 1, 4, 1, 8, 0xff], 4, 14);
        let some = |lines: &[u32]| lines.iter().map(|line| Some(*line)).collect::<Vec<_>>();
        assert_eq!(old, some(&[5, 5, 6, 6, 6, 6, 5]));
        let ranges = lines(LineTable::Instructions, &[4, 1, 4, 1, 2, 0x80, 2, 0xff], 4, 14);
        assert_eq!(ranges, [Some(5), Some(5), Some(6), Some(6), None, Some(5), None]);
        // A long entry (+1), one of the next line with columns, one without a line, a distance of -2.
        let table = [0xf1, 2, 0, 0, 0, 0xd8, 8, 9, 0xf8, 0xe8, 5];
        let entries = lines(LineTable::Address(0), &table, 4, 12);
        assert_eq!(entries, [Some(5), Some(5), Some(6), None, Some(4), None]);
    }

    proptest! {
        #[test]
        fn any_table_has_an_answer(table in proptest::collection::vec(any::<u8>(), 0..60), first: u32, byte: u64) {
            for kind in [LineTable::Bytes, LineTable::Instructions, LineTable::Address(192)] {
                line(kind, &table, first, byte);
            }
        }
    }
}
