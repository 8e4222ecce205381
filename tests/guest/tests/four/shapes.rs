//! Shape `four`, with more memory than it says.

use super::described;
use numakit_guest::{Failure, Guest};

/// For runtimes that other parts of the boot start.
pub const MEMORY_MIB: u64 = 1024;

pub fn guest() -> Result<Guest, Failure> {
    let topology = "cd /sys/devices/system/cpu; cat cpu*/topology/physical_package_id | tr '\\n' ' '; \
                    cat cpu7/cache/index3/shared_cpu_list";
    Ok(described::guest("four", &[("topology", topology)])?.memory_mib(MEMORY_MIB))
}

#[test]
fn four_has_two_boards_with_caches_of_their_own_for_each_node() {
    let Some(part) = super::PARTS.part("shapes") else { return };
    described::check("four", Some(MEMORY_MIB), &part, &part.out);
    assert_eq!(part["topology"].succeeded(), "0 0 0 0 1 1 1 1 6-7\n");
}
