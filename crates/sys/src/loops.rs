//! What benchmarks do to memory: a mapping with chosen pages on a chosen node, dependent loads, passes that read,
//! write or copy with the widest vectors of the CPU, and traffic at a chosen rate. Safe functions on memory that their caller owns.

mod alias;
mod barrier;
mod chain;
mod heap;
mod one_by_one;
mod passes;
mod processes;
mod region;
mod stream;
mod together;
mod traffic;

pub use alias::StoresAndLoads;
pub use barrier::{OpenMp, PthreadBarrier};
pub use chain::{Chain, ChainPosition};
pub use heap::{HeapBlock, nodes_of_blocks};
pub use one_by_one::{WRITES_ONE_BY_ONE, write_one_by_one};
pub use passes::{BLOCK, Vectors, copy, copy_past_caches, read, write, write_past_caches};
pub use processes::touch_in_processes;
pub use region::{Advice, HUGE_PAGE, MEDIUM_PAGE, Region};
pub use stream::{stream_add, stream_copy, stream_scale, stream_triad, stream_versions};
pub use together::Together;
pub use traffic::{Mix, TrafficGauge, traffic};
