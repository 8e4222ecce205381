//! Weights for weighted interleaving beside those of the kernel.

use super::{lines, number};
use crate::table::page_table;
use numakit_bench::{InterleaveWeights, NodeWeight};
use numakit_model::numbers::ABSENT;

/// The weights as a table, whether the kernel has the same, and how to set them.
pub fn weights_page(weights: &InterleaveWeights, width: usize) -> String {
    let row = |node: &NodeWeight| {
        let kernel = node.kernel.map_or_else(|| ABSENT.to_owned(), |weight| weight.to_string());
        vec![node.node.to_string(), number(node.bandwidth), node.measured.to_string(), kernel]
    };
    let rows: Vec<Vec<String>> = weights.nodes.iter().map(row).collect();
    let mut text = lines(&weights.machine, "", width);
    text += &page_table(&["node", "read GB/s", "weight", "kernel's"], &rows, "  ");
    text += &lines(&verdict(weights), "", width);
    if !weights.set.is_empty() {
        text += "Set the weights, as root:\n";
        weights.set.iter().for_each(|command| text += &format!("  {command}\n"));
    }
    if let Some(undo) = &weights.undo {
        text += &format!("Let the kernel set them again:\n  {undo}\n");
    }
    for doubt in &weights.doubts {
        text += &lines(&format!("warning: {doubt}"), "", width);
    }
    text
}

fn verdict(weights: &InterleaveWeights) -> String {
    let who = match weights.automatic {
        Some(true) => ", which it sets automatically",
        Some(false) => ", which were set manually",
        None => "",
    };
    match (&weights.not_compared, weights.same) {
        (Some(why), _) => format!("Not compared with the kernel's weights: {why}"),
        (None, Some(true)) => format!("The kernel has the same weights{who}"),
        (None, _) => format!("The kernel has other weights{who}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights() -> InterleaveWeights {
        let node = |(node, bandwidth, measured)| NodeWeight { node, bandwidth, measured, kernel: Some(1) };
        InterleaveWeights {
            machine: "Some CPU; 2 nodes".into(),
            nodes: [(0, 60.0, 3), (1, 20.5, 1)].map(node).to_vec(),
            automatic: Some(true),
            same: Some(false),
            not_compared: None,
            set: vec!["echo 3 > node0".into(), "echo 1 > node1".into()],
            undo: Some("echo true > auto".into()),
            doubts: vec!["bandwidth: busy".into()],
        }
    }

    #[test]
    fn other_weights_are_shown_with_their_commands() {
        let text = weights_page(&weights(), 80);
        assert_eq!(
            text,
            "Some CPU; 2 nodes\n  node  read GB/s  weight  kernel's\n  0          60.0       3         1\n  \
             1          20.5       1         1\nThe kernel has other weights, which it sets automatically\n\
             Set the weights, as root:\n  echo 3 > node0\n  echo 1 > node1\n\
             Let the kernel set them again:\n  echo true > auto\nwarning: bandwidth: busy\n"
        );
    }

    #[test]
    fn equal_weights_and_unknown_ones_are_said() {
        let same = InterleaveWeights { same: Some(true), set: vec![], undo: None, ..weights() };
        assert!(weights_page(&same, 80).contains("The kernel has the same weights, which it sets"));
        let why = Some("it is of another machine".to_owned());
        let other = InterleaveWeights { same: None, not_compared: why, ..same };
        assert!(
            weights_page(&other, 80).contains("Not compared with the kernel's weights: it is of another")
        );
    }
}
