//! Names of series, and of the PMUs of a machine.

use crate::events::{HW_CACHE, PlatformEvent};
use numakit_model::CpuSet;
use std::collections::BTreeMap;

/// The name of a PMU in series: its pattern without `uncore_` and numbers, so that it is the same on
/// every machine. Generic cache events have no PMU, and an empty name.
pub fn short(pattern: &str) -> String {
    if pattern == HW_CACHE {
        return String::new();
    }
    let plain = pattern.split('[').next().unwrap_or(pattern).replace(['*', '?'], "");
    plain.strip_prefix("uncore_").unwrap_or(&plain).trim_end_matches('_').to_owned()
}

/// The name of an event without its index, and without the number of its link or node: such events
/// are series of one metric.
pub fn of_event(event: &PlatformEvent) -> String {
    let indexed = event.name_at(0) != event.name;
    let name = match (event.name.split_once('['), event.at) {
        (Some((before, rest)), _) if indexed => {
            format!("{before}{}", rest.split_once(']').map_or("", |(_, after)| after))
        }
        (_, Some(at)) => event.name.strip_suffix(&at.to_string()).unwrap_or(&event.name).to_owned(),
        _ => event.name.clone(),
    };
    name.replace("__", "_").trim_end_matches('_').to_owned()
}

/// Patterns as users read them: `uncore_imc_*` for `uncore_imc_[0-9]*`.
pub fn several(patterns: &[String]) -> String {
    patterns.join(", ").replace("[0-9]*", "*")
}

/// Maximum number of words in a list of PMUs.
const MAX: usize = 12;

/// Names as ranges: `uncore_imc_0-7, uncore_upi_0-2`.
pub fn ranges(names: &[String]) -> String {
    let mut stems: BTreeMap<&str, CpuSet> = BTreeMap::new();
    for name in names {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        // Other digits belong to an address.
        match name[stem.len()..].parse::<u32>() {
            Ok(number) if format!("{stem}{number}") == *name && number < 1000 => {
                stems.entry(stem).or_default().insert(number);
            }
            _ => _ = stems.entry(name).or_default(),
        }
    }
    let more = stems.len().saturating_sub(MAX);
    let mut words: Vec<String> =
        stems.into_iter().take(MAX).map(|(stem, numbers)| format!("{stem}{numbers}")).collect();
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_many_pmus_are_few_words() {
        let all = |names: &[&str]| ranges(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(all(&["msr", "uncore_imc_0", "uncore_imc_1", "uncore_imc_3"]), "msr, uncore_imc_0-1,3");
        assert_eq!(all(&["arm_dmc620_10008c000", "hv_24x7"]), "arm_dmc620_10008c000, hv_24x7");
        let names: Vec<String> = (b'a'..=b'p').map(|c| char::from(c).to_string()).collect();
        assert!(ranges(&names).ends_with("l, and 4 more"));
    }

    #[test]
    fn names_for_series_are_the_same_on_every_machine() {
        for (pattern, name) in [
            ("uncore_imc_[0-9]*", "imc"),
            ("uncore_imc_free_running_*", "imc_free_running"),
            ("amd_df", "amd_df"),
            ("hisi_sccl*_hha*", "hisi_sccl_hha"),
            ("nest_mcs01_imc", "nest_mcs01_imc"),
            ("cpu", "cpu"),
            (HW_CACHE, ""),
        ] {
            assert_eq!(short(pattern), name);
        }
    }
}
