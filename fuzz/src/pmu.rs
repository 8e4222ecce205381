//! Files of the kernel about its PMUs.

use numakit_sensors::pmu::{Formats, Terms};

/// Lines `FIELD FORMAT`, and after a line `>>` the terms of an event.
pub fn format_file(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let (files, terms) = text.split_once("\n>>\n").unwrap_or((&text, "event=1"));
    let Ok(formats) = Formats::parse(files.lines().filter_map(|line| line.split_once(' '))) else {
        return false;
    };
    let Ok(terms) = Terms::parse(terms.trim()) else { return false };
    let Ok(codes) = formats.encode(terms.at(1)) else { return false };
    // The fields of an event share no bits: the code is the union of the codes of single fields.
    let single = terms.at(1).filter_map(|term| formats.encode([term]).ok());
    let all = single.fold([0; 4], |all, one| std::array::from_fn(|word| all[word] | one[word]));
    assert_eq!(all, codes);
    true
}
