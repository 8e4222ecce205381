//! `numa alloc --pid`: what the allocator of a program keeps on each node.

use crate::table::page_table;
use numakit_model::numbers::grouped;
use numakit_processes::{AllocatorCounts, RegionCounts, RegionPages};
use serde_json::{Value, json};

const HEADINGS: [&str; 10] = [
    "NODE",
    "MAPPED",
    "IN-USE",
    "CACHED",
    "RECLAIMABLE",
    "LOCAL",
    "SPILLED",
    "RECYCLED",
    "FAULTS-AVOIDED",
    "OTHER-NODES",
];

const NOTE: &str = "Memory in MiB; FAULTS-AVOIDED in page faults, OTHER-NODES in blocks. These two and RECYCLED\n\
                    grow from the start of the program.\n";

const MIB: f64 = 1048576.0;

/// A line for each node, and one for all if there are several.
pub fn table(counts: &AllocatorCounts) -> String {
    let mut rows: Vec<Vec<String>> =
        counts.regions.iter().map(|region| row(region, pages_of(counts, region))).collect();
    if rows.len() > 1 {
        let pages = counts.pages.as_ref().ok().map(|pages| sum_of_pages(pages));
        rows.push(row(&sum(&counts.regions), pages));
    }
    let missing = counts.pages.as_ref().err().map(|why| format!("LOCAL and SPILLED are unknown: {why}.\n"));
    page_table(&HEADINGS, &rows, "") + NOTE + &missing.unwrap_or_default()
}

/// The same as JSON, as `numa alloc --help` describes.
pub fn json(pid: u32, time: u64, counts: &AllocatorCounts) -> Value {
    let nodes = counts.regions.iter().map(|region| {
        json!({
            "node": region.node,
            "of_policies": region.of_policies,
            "mapped": region.mapped,
            "in_use": region.in_use,
            "cached": region.cached,
            "reclaimable": region.reclaimable,
            "local": pages_of(counts, region).map(|pages| pages.local),
            "spilled": pages_of(counts, region).map(|pages| pages.spilled),
            "recycled": region.recycled,
            "page_faults_avoided": region.faults_avoided,
            "blocks_from_other_nodes": region.from_other_nodes,
        })
    });
    let mut reading = json!({ "pid": pid, "time": time as f64 / 1e9, "nodes": nodes.collect::<Vec<_>>() });
    if let Err(why) = &counts.pages {
        reading["spilled_unknown"] = why.to_string().into();
    }
    reading
}

fn pages_of(counts: &AllocatorCounts, region: &RegionCounts) -> Option<RegionPages> {
    counts.pages.as_ref().ok()?.get(region.node? as usize).copied()
}

fn row(region: &RegionCounts, pages: Option<RegionPages>) -> Vec<String> {
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / MIB);
    let rest = if region.of_policies { "policy" } else { "all" };
    let mut cells = vec![region.node.map_or(rest.to_owned(), |node| node.to_string())];
    cells.extend([region.mapped, region.in_use, region.cached, region.reclaimable].map(mib));
    cells.extend(match pages {
        Some(pages) => [pages.local, pages.spilled].map(mib),
        None => ["-", "-"].map(str::to_owned),
    });
    cells.push(mib(region.recycled));
    cells.extend([region.faults_avoided, region.from_other_nodes].map(|number| grouped(number as f64)));
    cells
}

fn sum_of_pages(pages: &[RegionPages]) -> RegionPages {
    let of = |bytes: fn(&RegionPages) -> u64| pages.iter().map(bytes).fold(0, u64::saturating_add);
    RegionPages { local: of(|pages| pages.local), spilled: of(|pages| pages.spilled) }
}

fn sum(regions: &[RegionCounts]) -> RegionCounts {
    let of = |count: fn(&RegionCounts) -> u64| regions.iter().map(count).fold(0, u64::saturating_add);
    RegionCounts {
        node: None,
        of_policies: false,
        mapped: of(|r| r.mapped),
        in_use: of(|r| r.in_use),
        cached: of(|r| r.cached),
        reclaimable: of(|r| r.reclaimable),
        recycled: of(|r| r.recycled),
        faults_avoided: of(|r| r.faults_avoided),
        from_other_nodes: of(|r| r.from_other_nodes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_processes::{AllocatorSpace, PagesUnknown};

    fn counts(regions: Vec<RegionCounts>, pages: Result<Vec<RegionPages>, PagesUnknown>) -> AllocatorCounts {
        let space = AllocatorSpace { address: 1 << 40, region_bytes: 1 << 30, regions: regions.len() as u32 };
        AllocatorCounts { space, pages, regions }
    }

    fn region(node: Option<u32>, mib: u64) -> RegionCounts {
        RegionCounts {
            node,
            of_policies: false,
            mapped: mib << 20,
            in_use: 3 << 19,
            cached: 0,
            reclaimable: 0,
            recycled: 4 << 20,
            faults_avoided: 1024,
            from_other_nodes: 7,
        }
    }

    #[test]
    fn several_nodes_have_a_sum() {
        let pages = [(7, 0), (0, 0), (1, 3)]
            .map(|(local, spilled)| RegionPages { local: local << 20, spilled: spilled << 20 });
        let counts = counts(vec![region(Some(0), 10), region(Some(2), 5)], Ok(pages.to_vec()));
        let text = table(&counts);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], HEADINGS);
        assert_eq!(lines[1], ["0", "10.0", "1.5", "0.0", "0.0", "7.0", "0.0", "4.0", "1,024", "7"]);
        assert_eq!(
            (lines[2][0], lines[2][6], lines[3].as_slice()),
            ("2", "3.0", &["all", "15.0", "3.0", "0.0", "0.0", "8.0", "3.0", "8.0", "2,048", "14"][..])
        );
        assert!(text.ends_with(NOTE) && lines.len() > 4);
        let node = &json(7, 0, &counts)["nodes"][1];
        assert_eq!((&node["local"], &node["spilled"]), (&(1 << 20).into(), &(3 << 20).into()));
    }

    #[test]
    fn a_region_without_a_node_is_the_whole_machine() {
        let counts = counts(vec![region(None, 1)], Err(PagesUnknown::NoNodes));
        let text = table(&counts);
        assert!(
            text.lines().nth(1).unwrap().starts_with("all ")
                && !text.lines().nth(2).unwrap().starts_with("all")
        );
        let json = json(7, 1_500_000_000, &counts);
        assert_eq!((&json["pid"], &json["time"]), (&7.into(), &1.5.into()));
        let node = &json["nodes"][0];
        assert!(node["node"].is_null() && node["spilled"].is_null());
        assert_eq!(json["spilled_unknown"], "with the profiles uma and lowmem memory has no node");
        assert!(
            text.ends_with(
                "LOCAL and SPILLED are unknown: with the profiles uma and lowmem memory has no node.\n"
            ),
            "{text}"
        );
        assert_eq!((&node["mapped"], &node["page_faults_avoided"]), (&(1 << 20).into(), &1024.into()));
    }
}
