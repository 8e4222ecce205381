//! What caches hold, and what loads from them take: sizes, ways, offsets that collide, and the cache of addresses.

pub(crate) mod alias;
pub(crate) mod assoc;
pub(crate) mod coloring;
pub(crate) mod reach;
pub(crate) mod tlb;
mod tlb_levels;
