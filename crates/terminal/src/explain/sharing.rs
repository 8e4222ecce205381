//! Threads that use the same data.

use numakit_findings::explained::SeparatedThreads;
use std::fmt::Write;

/// Groups of threads that are named, and threads of a group.
const MAX_GROUPS: usize = 4;
const MAX_THREADS: usize = 8;

/// Which threads use the same data on different nodes.
pub(super) fn line(SeparatedThreads { groups, part }: &SeparatedThreads) -> String {
    let mut text = "Threads ".to_owned();
    for (at, group) in groups.iter().take(MAX_GROUPS).enumerate() {
        let names: Vec<String> = group.iter().take(MAX_THREADS).map(u32::to_string).collect();
        let more = if group.len() > MAX_THREADS { " and others" } else { "" };
        let names = match names.as_slice() {
            [one, other] => format!("{one} and {other}"),
            all => all.join(" "),
        };
        // Writing to a string cannot fail.
        _ = write!(text, "{}{names}{more}", if at == 0 { "" } else { ", " });
    }
    if groups.len() > MAX_GROUPS {
        text.push_str(", ...");
    }
    _ = writeln!(
        text,
        " use the same data, {:.0} % of what threads share; 'numa run --apply' gives them cores of one node.",
        100.0 * part
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_threads_are_named() {
        let words = |groups: &[&[u32]]| {
            line(&SeparatedThreads {
                groups: groups.iter().map(|group| group.to_vec()).collect(),
                part: 0.83,
            })
        };
        assert_eq!(
            words(&[&[0, 4], &[1, 5]]),
            "Threads 0 and 4, 1 and 5 use the same data, 83 % of what threads share; 'numa run --apply' gives them cores of one node.\n"
        );
        let many = words(&[&[0, 2, 4], &[1, 3], &[5, 6], &[7, 8], &[9, 10]]);
        assert!(many.starts_with("Threads 0 2 4, 1 and 3, 5 and 6, 7 and 8, ... use"), "{many}");
        assert!(words(&[&[0, 1, 2, 3, 4, 5, 6, 7, 8]]).contains("6 7 and others use"));
    }
}
