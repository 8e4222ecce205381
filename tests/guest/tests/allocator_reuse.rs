//! Memory that the allocator hands from a thread of one node to a thread of another has its own verdict, and who touched it
//! first is known by the faults of samples, on an emulated processor too.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use serde_json::Value;
use std::sync::LazyLock;
use std::time::Duration;

/// Without huge pages, of which neighbours share one, and without balancing, which would move the pages.
const MACHINE: &str = r#"
echo 0 > /proc/sys/kernel/numa_balancing
echo never > /sys/kernel/mm/transparent_hugepage/enabled
for caches in /sys/devices/system/cpu/cpu*/cache; do
    for size in 2:128K 3:512K; do
        echo ${size#*:} > /tmp/size${size%:*}
        mount --bind /tmp/size${size%:*} $caches/index${size%:*}/size
    done
done
"#;

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let guest = Guest::new(Shape::named("two")?)
        .program(&programs::numa()?)
        .program(&programs::compiled("reused")?.unwrap())
        .timeout(Duration::from_secs(600));
    let explained =
        |way: &str| format!("numa explain --road in-process --json /out/{way}.json -- reused {way} 0 12 2>&1");
    guest
        .step("machine", &["sh", "-c", MACHINE])
        .step("handed", &["sh", "-c", &explained("handed")])
        .step("fresh", &["sh", "-c", &explained("fresh")])
        .boot()
});

#[test]
fn memory_of_another_node_is_told_from_memory_that_nobody_had() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    boot["machine"].succeeded();
    for (way, verdict) in [("handed", Some("reused-across-nodes")), ("fresh", None)] {
        println!("{}", boot[way].succeeded());
        let text = std::fs::read_to_string(boot.out.join(format!("{way}.json"))).unwrap();
        let result: Value = serde_json::from_str(&text).unwrap();
        let objects = result["objects"].as_array().unwrap();
        let is_it = |object: &&Value| object["name"].as_str().unwrap().starts_with("malloc in of_second");
        let object = objects.iter().find(is_it).unwrap_or_else(|| panic!("{objects:#?}"));
        println!("{way}: {object:#}");
        assert!(object["time_share"].as_f64().unwrap() > 0.5, "{object}");
        assert_eq!(object["verdict"]["rule"].as_str(), verdict, "{object}");
        if verdict.is_none() {
            let touch = &object["first_touch"][0];
            let chain = touch["chain"].to_string();
            assert_eq!(
                (touch["known_by"].as_str(), touch["node"].as_u64()),
                (Some("sampled-faults"), Some(1))
            );
            assert!(chain.contains("write_all") || chain.contains("of_second"), "{touch}");
        }
    }
}
