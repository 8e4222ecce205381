//! Every shape but `four` boots, its kernel sees the machine that the shape describes, and so does numa.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod described;

use numakit_guest::{Boot, Guest, or_skipped};

/// Boots a shape, compares it, and looks at what its steps gave.
fn check(name: &str, steps: &[(&str, &str)], look: impl Fn(&Boot)) {
    let result = described::guest(name, steps).and_then(Guest::boot);
    if let Some(boot) = or_skipped(&result) {
        println!("{name}: started in {:.1?}, {:.1?} in all", boot.boot_time, boot.total_time);
        described::check(name, None, boot, &boot.out);
        look(boot);
    }
}

#[test]
fn two() {
    check("two", &[], |_| {});
}

#[test]
fn watched() {
    check("watched", &[], |_| {});
}

#[test]
fn eight() {
    check("eight", &[], |_| {});
}

#[test]
fn memoryless_has_a_node_with_cpus_only() {
    let states = "cd /sys/devices/system/node; cat has_cpu has_memory";
    check("memoryless", &[("states", states)], |boot| {
        assert_eq!(boot["states"].succeeded(), "0-2\n0,2\n");
    });
}

#[test]
fn cpuless_tells_latency_and_bandwidth_of_far_memory() {
    let states = "cd /sys/devices/system/node; cat has_cpu has_memory; cd node3/access0/initiators; \
                  cat read_latency write_latency read_bandwidth; ls -d node*";
    check("cpuless", &[("states", states)], |boot| {
        assert_eq!(boot["states"].succeeded(), "0-1\n0-3\n250\n250\n20480\nnode1\n");
    });
}

#[test]
fn asymmetric() {
    check("asymmetric", &[], |_| {});
}

#[test]
fn restricted_starts_commands_in_a_cpuset() {
    let status = "grep -h _allowed_list /proc/self/status; cat /proc/self/cgroup";
    check("restricted", &[("status", status)], |boot| {
        let expected = "Cpus_allowed_list:\t2-5\nMems_allowed_list:\t1-2\n0::/restricted\n";
        assert_eq!(boot["status"].succeeded(), expected);
    });
}

#[test]
fn numbering_goes_to_and_fro_between_the_nodes_of_a_package() {
    let script =
        "cd /sys/devices/system; cat node/node*/cpulist cpu/cpu*/topology/physical_package_id | tr '\\n' ' '";
    check("numbering", &[("numbers", script)], |boot| {
        assert_eq!(boot["numbers"].succeeded(), "0,2 1,3 4,6 5,7 0 0 0 0 1 1 1 1 ");
    });
}

#[test]
fn smt_has_two_threads_on_each_core() {
    let script = "cd /sys/devices/system; \
                  cat cpu/cpu5/topology/thread_siblings_list cpu/cpu5/cache/index3/shared_cpu_list node/node1/cpulist";
    check("smt", &[("siblings", script)], |boot| {
        assert_eq!(boot["siblings"].succeeded(), "4-5\n4-7\n4-7\n");
    });
}
