//! The running exporter: the sampler, and the answers to scrapes.

use crate::jobs;
use crate::page::{self, PushNumbers, SamplerNumbers, ScrapePage};
use crate::sampled::RowSum;
use crate::setup::ScrapeSetup;
use numakit_export::openmetrics::Dialect;
use numakit_jobs::{JobBoard, JobWatch};
use numakit_model::Unavailable;
use numakit_recording::{Ring, Sampler, Settings};
use numakit_server::scraping::Scraped;
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, clock};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows for which the ring has room.
const ROWS: usize = 4;
/// A text is sent again to all who ask within this time, in ns: a storm of scrapes costs ten texts a second.
const FRESH: u64 = 100_000_000;

/// Where samples go besides, and what became of them.
pub struct PushedSamples {
    /// Gets all rows.
    pub ring: Arc<Ring>,
    /// What happened so far.
    pub numbers: Box<dyn Fn() -> PushNumbers + Send + Sync>,
}

impl std::fmt::Debug for PushedSamples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushedSamples").finish_non_exhaustive()
    }
}

/// Samples this machine, and answers scrapes.
#[derive(Debug)]
pub struct ScrapeService {
    page: ScrapePage,
    sampler: Sampler,
    jobs: Option<JobBoard>,
    pushed: Option<PushedSamples>,
    /// The last text of each format, and when it was written.
    written: Mutex<[Option<WrittenText>; 2]>,
}

/// When a text was written, and the text.
type WrittenText = (u64, Arc<[u8]>);

impl ScrapeService {
    /// Starts the sampler, and watches jobs unless there is a reason not to. `pushed` gets the samples too.
    pub fn start(
        mut setup: ScrapeSetup,
        settings: Settings,
        version: &'static str,
        jobs: Result<JobWatch, Unavailable>,
        pushed: Option<PushedSamples>,
    ) -> io::Result<Self> {
        let jobs = match jobs {
            Ok(mut watch) => {
                watch.show(jobs::fitting(&setup.places, watch.has_samples()));
                Some(JobBoard::start(watch)?)
            }
            Err(why) => {
                setup.absent.push(("jobs".to_owned(), why));
                None
            }
        };
        let columns = setup.header.series.len();
        let ring = Arc::new(Ring::in_memory(columns, ROWS)?);
        let page = ScrapePage::new(&mut setup, version);
        page.sampled.follow(Arc::clone(&ring), RowSum::new(setup.lines, setup.added_columns, columns))?;
        let rings = pushed.iter().map(|pushed| Arc::clone(&pushed.ring)).chain([ring]).collect();
        let sampler = Sampler::start(setup.sensors, settings, rings)?;
        Ok(Self { page, sampler, jobs, pushed, written: Mutex::default() })
    }

    /// Whether the sampler still runs.
    pub fn is_running(&self) -> bool {
        self.sampler.running()
    }

    /// The number of series of the machine.
    pub fn series(&self) -> usize {
        self.page.series()
    }

    fn numbers(&self) -> SamplerNumbers {
        let state = self.sampler.state();
        SamplerNumbers {
            samples: state.samples(),
            lost: state.lost(),
            interval: u64::try_from(state.interval().as_nanos()).unwrap_or(u64::MAX),
            cpu: clock::process_cpu(),
            pushed: self.pushed.as_ref().map(|pushed| (pushed.numbers)()),
            memory: TaskDir::own(&SysRoot::host()).status().ok().and_then(|status| status.bytes("VmRSS")),
        }
    }
}

impl Scraped for ScrapeService {
    fn is_ready(&self) -> bool {
        self.page.sampled.newest().is_some()
    }

    fn text(&self, accept: Option<&str>) -> Option<(&'static str, Arc<[u8]>)> {
        let dialect = page::dialect_of(accept);
        let place = usize::from(dialect == Dialect::OpenMetrics);
        // Nothing in it is left half done by a panic.
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::monotonic();
        let known = written[place].as_ref().filter(|(time, _)| now.saturating_sub(*time) < FRESH);
        let text = match known {
            Some((_, text)) => Arc::clone(text),
            None => {
                let jobs = self.jobs.as_ref().map(JobBoard::now);
                self.page.text(dialect, &self.numbers(), jobs.as_deref())?.into()
            }
        };
        if known.is_none() {
            written[place] = Some((now, Arc::clone(&text)));
        }
        Some((page::content_type(dialect), text))
    }
}
