//! NUMAscope's headings: descriptions of counters instead of names, in `data/numascope.txt`.

use numakit_sensors::numaconnect2::table::{Counter, counter};

const TEXT: &str = include_str!("../../data/numascope.txt");

/// Names of counters, each with NUMAscope's description.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).map(|(name, words)| (name, words.trim_start()))
}

/// The counter of a card with this description.
pub fn counter_of(words: &str) -> Option<&'static Counter> {
    // Descriptions of earlier versions differ.
    let words = words.trim_end_matches(" on Hypertransport").replace("from from", "from");
    let words = words.replace(" did have free ", " had free ");
    lines().filter(|(_, theirs)| theirs.eq_ignore_ascii_case(&words)).find_map(|(name, _)| counter(name))
}

/// NUMAscope's description of a counter of a card.
pub fn words_for(counter: &Counter) -> Option<&'static str> {
    lines().find(|(name, _)| *name == counter.name).map(|(_, theirs)| theirs)
}

/// The name in /proc/vmstat of the counter with this description.
pub fn kernel_name_of(words: &str) -> Option<&'static str> {
    lines().find(|(name, theirs)| *theirs == words && counter(name).is_none()).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sensors::known::VMSTAT;
    use numakit_sensors::numaconnect2::table::COUNTERS;
    use std::collections::HashSet;

    #[test]
    fn every_counter_of_a_card_is_found_by_its_description() {
        let mut seen = HashSet::new();
        for counter in COUNTERS.iter() {
            let words = words_for(counter).unwrap_or_else(|| panic!("no words for {}", counter.name));
            assert_eq!(counter_of(words).map(|found| found.name), Some(counter.name), "{words}");
            assert!(seen.insert(words.to_ascii_lowercase()), "{words} describes two counters");
        }
        assert_eq!(seen.len() + 18, lines().count());
        assert_eq!(counter_of("no such words").map(|counter| counter.name), None);
    }

    #[test]
    fn headings_of_earlier_versions_are_recognised() {
        for (words, name) in [
            ("wait cycles for requests from from SIU to RMPE", "n2WaitCycReqSiuRmpe"),
            ("wait cycles for requests from SIU to RMPE", "n2WaitCycReqSiuRmpe"),
            ("cycles the RMPE did have free contexts for SIU accesses", "n2CycRmpe0freeS"),
            ("cycles the LMPE had free contexts for SIU accesses", "n2CycLmpeFreeSiu"),
            ("Broadcast commands received", "n2BcastCmdRecv"),
            ("data packets with full cachelines of data sent on Hypertransport", "n2CachelinesSent"),
            ("read accesses with writebacks to Ctag cache 2", "n2CacheTag2ReadWriteback"),
            ("accesses to Mtag cache 3", "n2MainTag3Access"),
        ] {
            assert_eq!(counter_of(words).map(|counter| counter.name), Some(name), "{words}");
        }
        assert_eq!(kernel_name_of("pagefaults not causing IO"), Some("pgfault"));
        assert!(lines().all(|(name, _)| counter(name).is_some() || VMSTAT.get(name).is_some()));
    }
}
