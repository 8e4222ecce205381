//! The output of `numactl --hardware`, byte for byte: scripts parse it.

use numakit_model::Topology;
use std::fmt::Write;

/// What `numactl --hardware` prints on this machine.
pub fn hardware(t: &Topology) -> String {
    let mut out = format!("available: {} nodes ({})\n", t.nodes.len(), t.node_ids());
    // Writing to a string cannot fail.
    for node in &t.nodes {
        let _ = write!(out, "node {} cpus:", node.os_index);
        for cpu in node.cpus.iter() {
            let _ = write!(out, " {cpu}");
        }
        let memory =
            |kb: Option<u64>| kb.map_or("<not available>".to_owned(), |kb| format!("{} MB", kb >> 10));
        let _ = writeln!(out, "\nnode {} size: {}", node.os_index, memory(node.memory_kb));
        let _ = writeln!(out, "node {} free: {}", node.os_index, memory(node.free_kb));
    }
    let Some(distances) = &t.distances else {
        return out + "No distance information available.\n";
    };
    out.push_str("node distances:\nnode ");
    distances.nodes.iter().for_each(|&node| out += &(cell(node) + " "));
    out.push('\n');
    for (&node, row) in distances.nodes.iter().zip(&distances.rows) {
        let _ = write!(out, "{}: ", cell(node));
        row.iter().for_each(|&distance| out += &(cell(distance) + " "));
        out.push('\n');
    }
    out
}

/// As C's `% 3d`: a blank for the sign, at least three characters.
fn cell(value: u32) -> String {
    format!("{:>3}", format!(" {value}"))
}
