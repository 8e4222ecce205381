//! What the kernel says of its PMUs.

use numakit_sensors::pmu::{Formats, Terms};

/// Lines `FIELD FORMAT`, and after a line `>>` the terms of an event.
pub fn format_file(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (files, terms) = text.split_once("\n>>\n").unwrap_or((&text, "event=1"));
    let Ok(formats) = Formats::parse(files.lines().filter_map(|line| line.split_once(' '))) else { return };
    let Ok(terms) = Terms::parse(terms.trim()) else { return };
    let Ok(codes) = formats.encode(terms.at(1)) else { return };
    // Fields of one event share no bits, so that each alone gives its part of the whole.
    let alone = terms.at(1).filter_map(|term| formats.encode([term]).ok());
    let all = alone.fold([0; 4], |all, one| std::array::from_fn(|word| all[word] | one[word]));
    assert_eq!(all, codes);
}
