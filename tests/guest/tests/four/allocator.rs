//! What libnumalloc has on each node, as `numa alloc-stats` reads it.

use numakit_guest::{Failure, Guest, Part, Shape, programs};
use serde_json::Value;

const RUN: &str = "numa run --alloc numa -c 4 --busy off -- handed 'numa alloc-stats %d --json'";

pub fn guest() -> Result<Guest, Failure> {
    Ok(Guest::new(Shape::named("four")?)
        .program(&programs::numa()?)
        .program(&programs::compiled("handed")?.unwrap())
        .step("handed", &["sh", "-c", RUN]))
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
