//! The kept results of `numa bench all` as properties of the machine.

use numakit_bench::kept;
use numakit_model::Topology;
use numakit_recording::Header;
use numakit_sys::SysRoot;
use numakit_sys::proc::machine::host_name;

/// Adds what the memory of this machine was measured to do; returns why nothing is known. Those of other machines are not
/// measured.
pub fn add(root: &SysRoot, topology: &mut Topology) -> Option<String> {
    if !root.is_host() {
        return Some("it is not this machine".to_owned());
    }
    match kept::find(topology) {
        Ok(results) => {
            topology.measured = Some(results.memory()).filter(|memory| !memory.is_empty());
            None
        }
        Err(why) => Some(why.to_string()),
    }
}

/// Adds it to a recording without, if this machine has made it.
pub fn add_to_recording(header: &mut Header) {
    let host = SysRoot::host();
    let is_own = !header.host.is_empty() && host_name(&host).is_ok_and(|name| name == header.host);
    if let Some(topology) = header.topology.as_mut().filter(|found| is_own && found.measured.is_none()) {
        let _ = add(&host, topology);
    }
}
