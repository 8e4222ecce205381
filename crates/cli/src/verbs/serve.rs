//! `numa serve`.

use crate::push_to::{PushToArgs, Pushing, ServePushArgs};
use crate::{Examples, GlobalArgs};
use crate::{jobs, observe};
use anyhow::Context;
use clap::Args;
use numakit_jobs::SamplesCost;
use numakit_model::{Fix, Unavailable};
use numakit_observation::setup::sampler_cpus;
use numakit_recording::{Priority, Settings};
use numakit_scrape::{ScrapeService, ScrapeSetup};
use numakit_sensors::{Scene, Selection};
use numakit_server::scraping::{ADDRESS, ScrapeAccess, ScrapeListener};
use numakit_server::tls::Tls;
use numakit_sys::signal::{self, Signals};
use numakit_sys::stdio::{note, print};
use numakit_sys::{memory, poll, sched};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Serve metrics of this machine to Prometheus
///
/// Samples memory, allocations and CPU time of each node until a signal arrives, and answers scrapes of /metrics with the newest
/// sample, as Prometheus text or OpenMetrics. A scrape never reads a sensor and never delays a sample.
/// /-/healthy and /-/ready answer probes.
///
/// A machine has at most 300 series: CPUs are summed by node, above 16 nodes by package or board. -e adds up to 10,000 more.
/// What cannot be measured here is a series numakit_absent with the reason, never 0.
///
/// Jobs are containers, pods, Slurm jobs, units of systemd, other control groups, or else users. Each has its CPU time, memory, waits
/// and findings; the ten largest have them by node. At most 50 jobs and 500 series; the rest is the job 'other'.
///
/// With --to, the same samples are also sent to an engine, those of jobs are not; what became of them is in metrics that begin with
/// numakit_push.
///
/// Only this machine is served unless --listen says otherwise, which needs a token, a password, TLS or --insecure.
#[derive(Debug, Args)]
pub struct ServeMetricsArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = ADDRESS)]
    listen: String,
    /// Sampling interval, from 100us to 1h, or a frequency such as 2Hz
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = observe::interval_of)]
    interval: Duration,
    /// Also serve these events: comma-separated names and patterns; 'numa list' lists them
    #[arg(short, long, value_name = "LIST")]
    events: Option<Selection>,
    /// Answer only clients that send the token in this file (Authorization: Bearer TOKEN)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Answer only clients that send the user and password in this file, one line USER:PASSWORD
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Use TLS with this certificate: a PEM file, with the intermediate certificates after it
    #[arg(long, value_name = "FILE", requires = "tls_key", alias = "cert")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate: a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert", alias = "key")]
    tls_key: Option<PathBuf>,
    /// Samples of instructions in a second of each busy CPU, which say what jobs wait for; 0: none
    #[arg(long, value_name = "HZ", default_value = "19", value_parser = clap::value_parser!(u32).range(..=199))]
    sample_rate: u32,
    /// Serve no metrics of jobs
    #[arg(long)]
    no_jobs: bool,
    #[command(flatten)]
    push: ServePushArgs,
    /// Let everybody who reaches the address read the metrics
    #[arg(long)]
    insecure: bool,
}

/// How often it is checked whether the sampler still runs.
const CHECK: Duration = Duration::from_secs(60);

impl ServeMetricsArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa serve", "answers scrapes at 127.0.0.1:9477/metrics"),
        ("numa serve --listen 0.0.0.0:9477 --token-file token", "serves other hosts that know the token"),
    ];

    /// Serves until a signal arrives.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        let files = self.tls_cert.as_ref().zip(self.tls_key.as_ref());
        let tls = files.map(|(cert, key)| Tls::read(cert, key)).transpose()?;
        let access = ScrapeAccess::read(self.token_file.as_deref(), self.password_file.as_deref())?;
        let listener = ScrapeListener::bind(&self.listen, tls, access, self.insecure)?;
        // Before any other thread exists.
        let signals = Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP])
            .context("cannot collect signals")?;
        signal::ignore_broken_pipe();
        let _ = sched::raise_open_files();
        let mut topology = numakit_topology::read(&root).context("cannot read the topology")?;
        numakit_topology::add_offline_cpus(&mut topology, &root);
        let scene = Scene::new(&root, &topology);
        let setup = ScrapeSetup::new(&scene, self.events.as_ref())?;
        if setup.left_out > 0 {
            note(format_args!("-e selects {} series more than can be served; select fewer", setup.left_out));
        }
        let cpus = sampler_cpus(&topology);
        let settings = Settings { interval: self.interval, cpus: cpus.clone(), priority: Priority::Normal };
        let jobs = match self.no_jobs {
            true => Err(not_asked()),
            false => jobs::watch(&root, &topology, self.sample_rate, SamplesCost::OF_MONTHS),
        };
        let push = PushToArgs::from(self.push).start(&setup.described(&scene, self.interval))?;
        let samples = push.as_ref().map(Pushing::samples);
        let version = env!("CARGO_PKG_VERSION");
        let service = Arc::new(ScrapeService::start(setup, settings, version, jobs, samples)?);
        let url = listener.url();
        let server = listener.start(Arc::clone(&service) as _, cpus)?;
        // It is not an error if the reader of a pipe has read this line and left.
        print(format_args!("{} series of this machine at {url}\n", service.series()))
            .or_else(|error| if error.is_closed_by_reader() { Ok(()) } else { Err(error) })?;
        memory::release_code_pages();
        while signals.next().is_none() && service.is_running() {
            poll::readable(&[signals.as_fd()], Some(CHECK)).context("cannot wait")?;
        }
        anyhow::ensure!(service.is_running(), "the sampler has ended; start numa serve again");
        drop(server);
        drop(service);
        Ok(ExitCode::from(u8::from(!push.is_none_or(Pushing::finish))))
    }
}

fn not_asked() -> Unavailable {
    Unavailable::new("jobs", "--no-jobs was given", Fix::CommandLine("omit --no-jobs".to_owned()))
}
