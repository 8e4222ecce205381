//! What libnumalloc has on each node, as `numa alloc-stats` reads it.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use serde_json::Value;
use std::sync::LazyLock;

const RUN: &str = "numa run --alloc numa -c 4 --busy off -- handed 'numa alloc-stats %d --json'";

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    Guest::new(Shape::named("four")?)
        .program(&programs::numa()?)
        .program(&programs::compiled("handed")?.unwrap())
        .step("handed", &["sh", "-c", RUN])
        .boot()
});

#[test]
fn blocks_are_counted_on_their_node_and_by_who_frees_them() {
    let Some(boot) = or_skipped(&BOOT) else { return };
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
