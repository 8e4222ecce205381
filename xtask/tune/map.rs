//! map N: puts N random keys into a hash map, then looks each up.

use std::collections::HashMap;

struct Random(u64);

impl Iterator for Random {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(self.0 >> 20)
    }
}

fn main() {
    let count = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1_000_000);
    let map: HashMap<u64, u64> = Random(1).take(count).zip(0..).collect();
    let found: u64 = Random(1).take(count).filter_map(|key| map.get(&key)).sum();
    println!("{} {found}", map.len());
}
