//! The cure of a stranger, for a run here.

use numakit_cure::{FittedPolicy, RunThreads, parse};
use std::path::Path;

/// Reads it and fits it to several runs.
pub fn file(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let Ok(cure) = parse(Path::new("cure"), &text) else { return false };
    for count in [1u32, 3, 8, 300] {
        for told in [None, Some(0), Some(2), Some(u32::MAX)] {
            let nodes: Vec<u32> = (0..count).map(|thread| thread / 2).collect();
            let threads = RunThreads { nodes: nodes.clone(), told };
            if let Some(Ok(order)) = cure.order(&threads) {
                let mut cores = order.cores;
                cores.sort_unstable();
                assert!(cores.into_iter().eq(0..nodes.len()), "each core is there once");
            }
            let fitted = cure.fit(&threads);
            assert_eq!(fitted.objects.len() + fitted.refused.len(), cure.objects.len());
            for object in &fitted.objects {
                if let FittedPolicy::Parts { node, .. } = &object.policy {
                    assert!(node.iter().flatten().all(|node| nodes.contains(node)));
                }
            }
        }
    }
    let written = serde_json::to_string(&cure).unwrap_or_default();
    assert_eq!(parse(Path::new("cure"), &written).ok().as_ref(), Some(&cure));
    true
}
