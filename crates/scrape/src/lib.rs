//! What a Prometheus scrapes of this machine.
//!
//! [`table::EXPOSED`] declares every metric. [`setup::ScrapeSetup`] finds the sensors that have its values; the sampler reads
//! them, a thread sums its rows ([`sampled::Sampled`]), and [`page::ScrapePage`] writes the newest sums as text. A scrape never
//! reads a sensor.

mod changed;
pub mod guide;
mod jobs;
pub mod page;
pub mod places;
pub mod sampled;
pub mod service;
pub mod setup;
pub mod table;

pub use page::{PushNumbers, SamplerNumbers, ScrapePage};
pub use sampled::{RowSum, Sampled};
pub use service::{PushedSamples, ScrapeService};
pub use setup::ScrapeSetup;
