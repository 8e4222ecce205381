//! Who asked a function for large blocks: a function that makes tables for several callers makes several objects.

use std::collections::HashMap;
use std::sync::Arc;

/// Call chains of one site that are objects of their own. Blocks of further chains are one object. Interpreters allocate for all of
/// their programs' functions at one site.
const MAX_CHAINS: usize = 32;

/// The call chains on which each site was reached, innermost first, without the site itself.
#[derive(Debug, Clone, Default)]
pub struct SiteCallers(HashMap<u64, Vec<Arc<[u64]>>>);

/// The calls by which the chains of a site differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DifferingCalls {
    /// The address behind the call of one chain.
    pub own: u64,
    /// The same of all chains, in order and each once.
    pub all: Vec<u64>,
}

impl SiteCallers {
    /// The place of a chain among those of its site; `None` if there are too many of them.
    pub fn place(&mut self, site: u64, chain: &[u64]) -> Option<u8> {
        let chains = self.0.entry(site).or_default();
        let known = chains.iter().position(|known| **known == *chain);
        let place = known.or_else(|| {
            (chains.len() < MAX_CHAINS).then(|| {
                chains.push(chain.into());
                chains.len() - 1
            })
        });
        place.and_then(|place| u8::try_from(place).ok())
    }

    /// A chain of a site by its place.
    pub fn chain(&self, site: u64, place: u8) -> Option<&[u64]> {
        Some(self.0.get(&site)?.get(usize::from(place))?)
    }

    /// The first call that the chains of a site do not share, of those with the same innermost `shared` calls; `None` if there is
    /// only one chain.
    pub fn differing(&self, site: u64, place: u8, shared: usize) -> Option<DifferingCalls> {
        let all = self.0.get(&site)?;
        let own = all.get(usize::from(place))?;
        let chains: Vec<&Arc<[u64]>> =
            all.iter().filter(|chain| chain.get(..shared) == own.get(..shared)).collect();
        let depth = (shared..own.len()).find(|depth| {
            let call = own.get(*depth);
            chains.iter().any(|chain| chain.get(*depth) != call)
        })?;
        let mut all: Vec<u64> = chains.iter().filter_map(|chain| chain.get(depth).copied()).collect();
        all.sort_unstable();
        all.dedup();
        Some(DifferingCalls { own: *own.get(depth)?, all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_told_by_the_first_call_that_differs() {
        let mut callers = SiteCallers::default();
        assert_eq!(callers.place(7, &[10, 30, 50]), Some(0));
        assert_eq!(callers.differing(7, 0, 0), None, "there is only one");
        assert_eq!((callers.place(7, &[10, 40, 50]), callers.place(7, &[10, 30, 50])), (Some(1), Some(0)));
        let of = |place| callers.differing(7, place, 0).map(|calls| (calls.own, calls.all));
        assert_eq!((of(0), of(1), of(2)), (Some((30, vec![30, 40])), Some((40, vec![30, 40])), None));
        // A chain that ends where the other one goes on differs behind its end.
        assert_eq!(callers.place(8, &[10]), Some(0));
        assert_eq!(callers.place(8, &[10, 20]), Some(1));
        assert_eq!(
            (callers.differing(8, 0, 0), callers.differing(8, 1, 0).map(|calls| calls.own)),
            (None, Some(20))
        );
        // Those that begin with another call do not matter.
        [[1, 5], [1, 6], [2, 7]].iter().for_each(|chain| _ = callers.place(9, chain));
        let calls = DifferingCalls { own: 5, all: vec![5, 6] };
        assert_eq!((callers.differing(9, 0, 1), callers.differing(9, 2, 1)), (Some(calls), None));
    }

    #[test]
    fn beyond_the_limit_chains_are_one() {
        let mut callers = SiteCallers::default();
        let places: Vec<_> = (0..36).map(|call| callers.place(7, &[call])).collect();
        assert_eq!(places[..32], (0..32).map(Some).collect::<Vec<_>>());
        assert_eq!(places[32..], [None; 4]);
    }
}
