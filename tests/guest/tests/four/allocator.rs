//! What libnumalloc has on each node, as `numa alloc --pid` reads it.

use numakit_guest::runtimes::allocators;
use numakit_guest::{Failure, Guest, Part, Shape, programs};
use serde_json::Value;

const RUN: &str = "numa run --alloc numa -c 4 --busy off -- handed 'numa alloc --pid %d --json'";

/// Threads on the first node and on the last one prefer the second. So prefers the main thread of each placed program the node of its
/// first core until it has one, wherever it runs meanwhile.
const PREFERRED: &str =
    "policies under prefer 2 env LD_PRELOAD=LIBRARY handed 'env -u LD_PRELOAD numa alloc --pid %d --json'";

pub fn guest() -> Result<Guest, Failure> {
    let all = allocators()?;
    let ours = &all[0];
    let guest = ours.files.put_into(Guest::new(Shape::named("four")?)).program(&programs::numa()?);
    let guest = guest.program(&programs::compiled("handed")?.unwrap());
    let guest = guest.program(&programs::compiled("policies")?.unwrap());
    Ok(guest
        .step("handed", &["sh", "-c", RUN])
        .step("preferred", &["sh", "-c", &PREFERRED.replace("LIBRARY", &ours.preload)]))
}

fn part() -> Option<Part> {
    super::PARTS.part("allocator")
}

#[test]
fn blocks_are_counted_on_their_node_and_by_who_frees_them() {
    let Some(boot) = part() else { return };
    let read: Value = serde_json::from_str(&boot["handed"].succeeded()).unwrap();
    let nodes = read["nodes"].as_array().unwrap();
    let of = |name: &str| nodes.iter().map(|node| node[name].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(of("node"), [0, 1, 2, 3]);
    assert_eq!(of("blocks_from_other_nodes"), [20_000, 0, 0, 0]);
    let mib = of("in_use").iter().map(|bytes| bytes >> 20).collect::<Vec<_>>();
    assert!((8..11).contains(&mib[0]) && mib[1..3] == [0, 0] && mib[3] == 4, "{read}");
    // The slabs of the small blocks are free again, except those with blocks in lists.
    assert!(of("cached")[0] >= 1 << 20, "{read}");
}

#[test]
fn blocks_of_a_preferred_node_are_counted_there() {
    let Some(boot) = part() else { return };
    let read: Value = serde_json::from_str(&boot["preferred"].succeeded()).unwrap();
    let of = |name: &str| {
        let nodes = read["nodes"].as_array().unwrap().iter();
        nodes.map(|node| (node["node"].as_u64(), node[name].as_u64().unwrap())).collect::<Vec<_>>()
    };
    let mib = of("in_use").iter().map(|(node, bytes)| (*node, bytes >> 20)).collect::<Vec<_>>();
    assert_eq!(mib[..1], [(Some(0), 0)], "{read}");
    assert_eq!(mib[2..], [(Some(2), 0), (Some(3), 0)], "{read}");
    assert!((12..15).contains(&mib[1].1), "{read}");
    assert!(of("blocks_from_other_nodes").iter().all(|(_, blocks)| *blocks == 0), "{read}");
}
