//! Names for the code that allocates. Chains whose names are the same are merged, whichever processes had them.

use crate::allocations::report::CountedChain;
use numakit_explain::code::CodeName;
use numakit_explain::symbols::Symbols;
use numakit_sys::allocation_counts::{AllocationCounts, CountedModule, CountedSite};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Functions of allocators and languages that only pass a request on: the code that asks is behind them.
const PASSING: [&str; 6] = ["operator new", "__rust_alloc", "__rdl_alloc", "__libc_", "_Znw", "_Zna"];
/// Maximum number of chains in a report. The smaller ones are left out.
const MAX_CHAINS: usize = 200;

/// Finds names.
#[derive(Debug, Default)]
pub struct SiteNames {
    symbols: Symbols,
}

impl SiteNames {
    /// The chains of a program. Those with most bytes come first.
    pub fn chains(&mut self, counts: &AllocationCounts) -> Vec<CountedChain> {
        let mut modules: BTreeMap<usize, Vec<&CountedModule>> = BTreeMap::new();
        counts.modules.iter().for_each(|module| modules.entry(module.image).or_default().push(module));
        let mut known = HashMap::new();
        let mut chains: HashMap<Vec<CodeName>, CountedChain> = HashMap::new();
        for site in &counts.sites {
            let of_image = modules.get(&site.image).map_or(&[][..], Vec::as_slice);
            let mut name = |at: &u64| {
                let name = || self.name(of_image, *at);
                known.entry((site.image, *at)).or_insert_with(name).clone()
            };
            let frames: Vec<CodeName> = site.frames.iter().map(&mut name).collect();
            let chain = without_passing(frames);
            chains.entry(chain.clone()).or_insert_with(|| CountedChain::of(chain)).add(site);
        }
        let mut chains: Vec<CountedChain> = chains.into_values().collect();
        chains.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.chain.cmp(&b.chain)));
        chains.truncate(MAX_CHAINS);
        chains
    }

    fn name(&mut self, modules: &[&CountedModule], address: u64) -> CodeName {
        // The address is a return address, right behind the call.
        let address = address.saturating_sub(1);
        let Some(module) = modules.iter().find(|module| (module.from..module.to).contains(&address)) else {
            return CodeName { module: "compiled while running".to_owned(), ..CodeName::default() };
        };
        let path = Path::new(&module.path);
        let name = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        self.symbols.name(path, &name, address - module.from + module.offset)
    }
}

impl CountedChain {
    fn of(chain: Vec<CodeName>) -> Self {
        Self { chain, ..Self::default() }
    }

    fn add(&mut self, site: &CountedSite) {
        self.samples += site.samples;
        self.blocks += site.blocks;
        self.bytes += site.bytes;
        self.freed_blocks += site.freed_blocks;
        self.freed_bytes += site.freed_bytes;
        self.life_seconds += site.life;
    }
}

/// The chain without the functions that only pass an allocation on; all of it if there are no others.
fn without_passing(chain: Vec<CodeName>) -> Vec<CodeName> {
    let passes = |name: &CodeName| {
        let function = name.function.as_deref().unwrap_or_default();
        PASSING.iter().any(|start| function.starts_with(start))
    };
    match chain.iter().position(|name| !passes(name)) {
        Some(first) => chain[first..].to_vec(),
        None => chain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(function: &str) -> CodeName {
        CodeName { function: Some(function.to_owned()), ..CodeName::default() }
    }

    #[test]
    fn a_chain_begins_with_the_code_that_asks() {
        let chain = vec![named("operator new(unsigned long)"), named("read"), named("main")];
        assert_eq!(without_passing(chain), vec![named("read"), named("main")]);
        assert_eq!(without_passing(vec![named("operator new(int)")]).len(), 1);
    }

    #[test]
    fn code_without_a_file_has_no_name() {
        let counts = AllocationCounts {
            sites: vec![CountedSite {
                image: 0,
                frames: vec![0x1000],
                samples: 2,
                blocks: 2.0,
                bytes: 64,
                freed_blocks: 1.0,
                freed_bytes: 32,
                life: 0.5,
            }],
            ..AllocationCounts::default()
        };
        let chains = SiteNames::default().chains(&counts);
        assert_eq!((chains.len(), chains[0].bytes, chains[0].samples), (1, 64, 2));
        assert_eq!(chains[0].chain[0].function, None);
    }
}
