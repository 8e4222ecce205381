//! How the original words what the counters of cards and of the kernel are: its headings are
//! sentences, not names.

use numakit_sensors::numaconnect2::table::{COUNTERS, Counter};
use std::sync::LazyLock;

/// Each counter of a card that both know, in the original's words.
static CARD: LazyLock<Vec<(String, &'static Counter)>> = LazyLock::new(|| {
    let of = |(theirs, ours): (String, String)| {
        let counter = COUNTERS.iter().find(|counter| counter.help.eq_ignore_ascii_case(&ours));
        counter.map(|counter| (theirs, counter))
    };
    engines().into_iter().chain(packets()).chain(caches()).chain(tags()).filter_map(of).collect()
});

/// Packets by what the original calls them and by what we do.
const PACKETS: [(&str, &str); 13] = [
    ("VicBlk and VicBlkClean commands", "Lines evicted from a cache (VicBlk, VicBlkClean)"),
    ("RdBlk and RdBlkS commands", "Requests to read a line (RdBlk, RdBlkS)"),
    ("RdBlkMod commands", "Requests to read a line in order to write it (RdBlkMod)"),
    ("ChangeToDirty commands", "Requests to write a line that the cache has already (ChangeToDirty)"),
    ("RdSized commands", "Reads of a given size (RdSized)"),
    ("WrSized commands", "Writes of a given size (WrSized)"),
    ("directed Probe commands", "Probes for one node"),
    ("broadcast Probe commands", "Probes for all nodes"),
    ("broadcast commands", "Other commands for all nodes"),
    ("RdResponse commands", "Responses to reads"),
    ("ProbeResponse commands", "Responses to probes"),
    ("data packets with full cachelines of data", "Whole lines of data, 64 bytes each"),
    ("data packets with less than a full cache line", "Packets with less than a line of data"),
];

/// Events of the card's cache, likewise.
const CACHE: [(&str, &str); 5] = [
    ("read hits", "Reads that hit in the card's cache."),
    ("store hits", "Stores that hit in the card's cache."),
    ("store misses", "Stores that missed in the card's cache."),
    ("roll outs", "Lines evicted from the card's cache."),
    ("invalidates", "Lines invalidated in the card's cache."),
];

/// Accesses to tags, likewise; behind the original's words stands which tags, behind ours too.
const ACCESSES: [(&str, &str, &str); 7] = [
    ("accesses", "Accesses to", ""),
    ("write hit accesses", "Writes that hit in", ""),
    ("read hit accesses", "Reads that hit in", ""),
    ("write accesses with writebacks", "Writes to", " that wrote a line back"),
    ("read accesses with writebacks", "Reads of", " that wrote a line back"),
    ("write miss accesses", "Writes that missed in", ""),
    ("read miss accesses", "Reads that missed in", ""),
];

/// Counters of the kernel by the original's words, those of its default selection and of NUMA.
const KERNEL: [(&str, &str); 18] = [
    ("pagefaults not causing IO", "pgfault"),
    ("pagefaults causing IO", "pgmajfault"),
    ("page allocations per zone, normal zone", "pgalloc_normal"),
    ("page allocations, DMA32 zone", "pgalloc_dma32"),
    ("page allocations per zone, movable zone", "pgalloc_movable"),
    ("pages freed", "pgfree"),
    ("unallocated pages", "nr_free_pages"),
    ("allocated in intended node", "numa_hit"),
    ("allocated in non-intended node", "numa_miss"),
    ("was intended here, hit elsewhere", "numa_foreign"),
    ("interleaver preferred this zone", "numa_interleave"),
    ("allocation from local node", "numa_local"),
    ("allocation from non-local node", "numa_other"),
    ("pages migrated", "pgmigrate_success"),
    ("pages failed migration", "pgmigrate_fail"),
    ("2MB or larger pages page-faulted", "thp_fault_alloc"),
    ("pages swapped in", "pswpin"),
    ("pages swapped out", "pswpout"),
];

fn engines() -> Vec<(String, String)> {
    let mut pairs = vec![(
        "cycles".to_owned(),
        "Cycles of the card's clock of 200 MHz: other cycles are shown as a share of these.".to_owned(),
    )];
    for engine in ["RMPE", "LMPE"] {
        pairs.push((
            format!("cycles at least half of the available {engine} contexts were in use"),
            format!("Cycles in which at least half of the contexts of the {engine} were in use."),
        ));
        for from in ["PIU", "SIU"] {
            pairs.push((
                format!("cycles the {engine} had free contexts for {from} accesses"),
                format!("Cycles in which the {engine} had free contexts for the {from}."),
            ));
            for what in ["requests", "responses"] {
                let (theirs, ours) = (
                    format!("{what} from {from} to {engine}"),
                    format!("{what} from the {from} to the {engine}"),
                );
                pairs.push((theirs.clone(), format!("{ours}.")));
                pairs.push((
                    format!("valid cycles acked for {theirs}"),
                    format!("Cycles in which {ours} were accepted."),
                ));
                pairs.push((format!("wait cycles for {theirs}"), format!("Cycles in which {ours} waited.")));
            }
        }
    }
    pairs
}

fn packets() -> impl Iterator<Item = (String, String)> {
    let both = |(theirs, ours): &(&str, &str)| {
        ["received", "sent"].map(|way| (format!("{theirs} {way}"), format!("{ours}, {way}.")))
    };
    PACKETS.iter().flat_map(both).collect::<Vec<_>>().into_iter()
}

fn caches() -> impl Iterator<Item = (String, String)> {
    let cache = CACHE.iter().map(|(theirs, ours)| (format!("nCache {theirs} on RMPE"), (*ours).to_owned()));
    cache.chain(["Hreq", "Pprb", "Hprb", "Preq"].into_iter().map(|kind| {
        (
            format!("cycles with at least one free {kind} context in PIU"),
            format!("Cycles in which the PIU had a free context of kind {kind}."),
        )
    }))
}

fn tags() -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for (their_tags, our_tags) in [("Ctag", "cache"), ("Mtag", "main")] {
        for bank in 0..4 {
            pairs.extend(ACCESSES.iter().map(|(theirs, ours, end)| {
                (
                    format!("{theirs} to {their_tags} cache {bank}"),
                    format!("{ours} bank {bank} of the {our_tags} tags{end}."),
                )
            }));
        }
    }
    pairs
}

/// The counter of a card that the original describes so.
pub fn counter_of(words: &str) -> Option<&'static Counter> {
    // Earlier versions had a few words more.
    let words = words.trim_end_matches(" on Hypertransport").replace("from from", "from");
    let words = words.replace(" did have free ", " had free ");
    CARD.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(&words)).map(|(_, counter)| *counter)
}

/// What the original calls a counter of a card.
pub fn words_for(counter: &Counter) -> Option<&'static str> {
    CARD.iter().find(|(_, ours)| ours.register == counter.register).map(|(theirs, _)| theirs.as_str())
}

/// The name in /proc/vmstat of what the original describes so.
pub fn kernel_name_of(words: &str) -> Option<&'static str> {
    KERNEL.iter().find(|(theirs, _)| *theirs == words).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sensors::known::VMSTAT;
    use std::collections::HashSet;

    #[test]
    fn every_counter_of_a_card_has_words_and_is_found_by_them() {
        let mut seen = HashSet::new();
        for counter in COUNTERS.iter() {
            let words = words_for(counter).unwrap_or_else(|| panic!("no words for {}", counter.name));
            assert_eq!(counter_of(words).map(|found| found.name), Some(counter.name), "{words}");
            assert!(seen.insert(words.to_ascii_lowercase()), "{words} stands for two counters");
        }
        assert_eq!(seen.len(), CARD.len());
        assert_eq!(counter_of("no such words").map(|counter| counter.name), None);
    }

    #[test]
    fn what_the_original_wrote_is_understood() {
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
        assert!(KERNEL.iter().all(|(_, name)| VMSTAT.get(name).is_some()));
    }
}
