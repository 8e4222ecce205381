//! Ranges of time brought back from engines as recordings.

mod folder;
mod influx;
mod prometheus;

use crate::driver::{DriverError, DriverSource};
use crate::emitters;
use crate::http::{EngineClient, EngineClientError, EngineRequestError};
use crate::sender::clean;
use crate::target::{Place, PushTarget};
use bytes::Bytes;
use hyper::Method;
use numakit_model::{Metric, time};
use numakit_recording::{Batch, Header, Recorder, WriteError};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Maximum length of an answer.
const MAX_ANSWER: usize = 64 << 20;
/// The first range of time that is asked for, and the limits of others.
const WINDOW: (u64, u64, u64) = (60_000_000_000, 1_000_000_000, 86_400_000_000_000);
/// If an answer has fewer rows, the next range is longer.
const FEW_ROWS: usize = 2000;

/// Hosts that a sentence names.
const SHOWN_HOSTS: usize = 20;

/// What to fetch.
#[derive(Debug, Clone)]
pub struct FetchRequest<'a> {
    /// From where.
    pub target: &'a PushTarget,
    /// The host, as it was pushed.
    pub host: &'a str,
    /// The range, ns since 1970 UTC; its end is not in it.
    pub range: (u64, u64),
    /// Metrics that names in the engine may be of.
    pub known: Vec<Metric>,
}

/// Why nothing was fetched.
#[derive(Debug, Error)]
pub enum FetchError {
    /// The engine can only be written to.
    #[error("numa cannot read {0}; it reads {known}", known = emitters::readable())]
    WriteOnly(&'static str),
    /// There is no client.
    #[error(transparent)]
    EngineClient(#[from] EngineClientError),
    /// The engine did not answer.
    #[error(transparent)]
    Request(#[from] EngineRequestError),
    /// There is no answer of the driver of a database.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A database gives nothing.
    #[error("the database gives nothing: {0}")]
    Database(String),
    /// It answered too much.
    #[error("the engine answers with more than {} MiB; fetch a shorter range, or with fewer series", MAX_ANSWER >> 20)]
    Long,
    /// It answered something else.
    #[error(
        "the engine refuses the query: status {status}: {text}; check the address, --password-file and --token-file"
    )]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// Its text.
        text: String,
    },
    /// Its answer is not as it should be.
    #[error("the answer of the engine is not understood: {0}")]
    Answer(&'static str),
    /// Nothing is there.
    #[error("there is nothing of host '{host}' from {} to {}; {hosts}", time::utc(*from), time::utc(*to))]
    Nothing {
        /// The host.
        host: String,
        /// The start of the range.
        from: u64,
        /// Its end.
        to: u64,
        /// Which hosts there are, or what to do.
        hosts: String,
    },
    /// No recording was pushed there.
    #[error("{0} has no rows of numa; send some with 'numa push' or 'numa record --to', or give another URL")]
    NoHosts(String),
    /// The description of the rows cannot be read.
    #[error("the description of the rows cannot be read: {0}; push the recording again")]
    Description(io::Error),
    /// A file of a folder cannot be read.
    #[error("cannot read {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// The recording cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// What was fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Samples.
    pub samples: u64,
    /// Labels.
    pub labels: u64,
    /// Series.
    pub series: usize,
    /// What the engine did not keep, or this program does not know: a judge of the rows may come to another verdict.
    pub missing: Vec<String>,
}

/// Where rows come from.
pub(crate) trait Source {
    /// The hosts that have rows, in no order.
    fn hosts(&mut self) -> Result<Vec<String>, FetchError>;
    /// The description of the rows.
    fn header(&mut self) -> Result<Header, FetchError>;
    /// The rows of a range, in order.
    fn rows(&mut self, header: &Header, range: (u64, u64)) -> Result<Batch, FetchError>;
    /// What of the recording is missing in the description and the rows.
    fn missing(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The hosts that an engine has rows of, in order.
pub fn hosts(target: &PushTarget) -> Result<Vec<String>, FetchError> {
    let request = FetchRequest { target, host: "", range: (0, 0), known: Vec::new() };
    in_order(target, source(&request)?.hosts()?)
}

/// Fetches a range of time into a new recording.
pub fn fetch(request: &FetchRequest<'_>, output: &Path, force: bool) -> Result<Fetched, FetchError> {
    let mut source = source(request)?;
    let header = source.header()?;
    let mut answers =
        Answers { source: source.as_mut(), header: &header, range: request.range, length: WINDOW.0 };
    let first = answers.find(|batch| !matches!(batch, Ok(batch) if batch.is_empty()));
    let first = first.ok_or_else(|| nothing(request, "give another range".to_owned()))??;
    let described = begun(&header, request.range.0, first.time.first().copied().unwrap_or_default());
    let recorder = Recorder::create(output, &described, force)?;
    let copied = copy(std::iter::once(Ok(first)).chain(answers), &recorder);
    let path = recorder.path().to_owned();
    recorder.finish()?;
    let missing = source.missing();
    let fetched = copied.map(|fetched| Fetched { series: header.series.len(), missing, ..fetched });
    fetched.inspect_err(|_| drop(std::fs::remove_file(path)))
}

/// The description of rows of a range, of which the first has this time. One that began before the range, or of which that is
/// not known, begins with the rows here. One that began after them is of the newest of several recordings, and so is its command.
fn begun(header: &Header, from: u64, first: u64) -> Header {
    let is_of_all = header.started <= first;
    let started = if is_of_all && header.started >= from { header.started } else { first };
    Header { started, command: header.command.clone().filter(|_| is_of_all), ..header.clone() }
}

fn nothing(request: &FetchRequest<'_>, hosts: String) -> FetchError {
    let (from, to) = request.range;
    FetchError::Nothing { host: request.host.to_owned(), from, to, hosts }
}

/// That there is nothing of a host, with the hosts that there are.
pub(crate) fn no_such_host(request: &FetchRequest<'_>, hosts: Result<Vec<String>, FetchError>) -> FetchError {
    let hosts = hosts.and_then(|hosts| in_order(request.target, hosts));
    match hosts {
        Err(error) => error,
        Ok(hosts) if hosts.iter().any(|host| host == request.host) => {
            nothing(request, "give another range".to_owned())
        }
        Ok(hosts) => nothing(request, format!("there are {}", listed(&hosts))),
    }
}

fn in_order(target: &PushTarget, mut hosts: Vec<String>) -> Result<Vec<String>, FetchError> {
    hosts.sort();
    hosts.dedup();
    match hosts.is_empty() {
        true => Err(FetchError::NoHosts(target.text.clone())),
        false => Ok(hosts),
    }
}

/// The first names of a list, for a sentence.
pub fn listed(hosts: &[String]) -> String {
    let shown = hosts.iter().take(SHOWN_HOSTS).map(String::as_str).collect::<Vec<_>>().join(", ");
    match hosts.len().saturating_sub(SHOWN_HOSTS) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn source<'a>(request: &'a FetchRequest<'a>) -> Result<Box<dyn Source + 'a>, FetchError> {
    let target = request.target;
    Ok(match (&target.place, target.emitter.scheme) {
        (Place::Folder(folder), _) => Box::new(folder::Files::new(folder, request)),
        (Place::Http(_), "influxdb1") => Box::new(influx::Influx::new(request, Asker::new(target)?)),
        (Place::Http(_), "prometheus") => Box::new(prometheus::Prometheus::new(request, Asker::new(target)?)),
        (Place::Driver(address), _) => Box::new(DriverSource::new(request, address)?),
        (Place::Http(_), other) => return Err(FetchError::WriteOnly(other)),
    })
}

/// The rows of a range, in parts that are as long as answers are short enough.
struct Answers<'a> {
    source: &'a mut dyn Source,
    header: &'a Header,
    /// What was not asked for yet.
    range: (u64, u64),
    length: u64,
}

impl Iterator for Answers<'_> {
    type Item = Result<Batch, FetchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (_, shortest, longest) = WINDOW;
        while self.range.0 < self.range.1 {
            let end = self.range.0.saturating_add(self.length).min(self.range.1);
            match self.source.rows(self.header, (self.range.0, end)) {
                // The answer was too long.
                Err(FetchError::Request(EngineRequestError::Broken { .. }) | FetchError::Long)
                    if self.length > shortest =>
                {
                    self.length = (self.length / 4).max(shortest);
                }
                Err(error) => {
                    self.range.0 = self.range.1;
                    return Some(Err(error));
                }
                Ok(batch) => {
                    self.range.0 = end;
                    if batch.len() < FEW_ROWS {
                        self.length = (self.length * 2).min(longest);
                    }
                    return Some(Ok(batch));
                }
            }
        }
        None
    }
}

/// Records rows, and counts them.
fn copy(
    batches: impl Iterator<Item = Result<Batch, FetchError>>,
    to: &Recorder,
) -> Result<Fetched, FetchError> {
    let mut fetched = Fetched::default();
    for batch in batches {
        let batch = batch?;
        record(&batch, to);
        fetched.labels += batch.labels() as u64;
        fetched.samples += (batch.len() - batch.labels()) as u64;
    }
    Ok(fetched)
}

/// Hands rows to the recorder as fast as it writes.
fn record(batch: &Batch, to: &Recorder) {
    let mut values = vec![None; batch.columns.len()];
    let ring = to.ring();
    for row in 0..batch.len() {
        while (ring.is_full() || ring.labels_half_full()) && !to.failed() {
            std::thread::sleep(Duration::from_micros(200));
        }
        match &batch.label[row] {
            Some(text) => drop(ring.push_label(batch.time[row], text)),
            None => {
                batch.row(row, &mut values);
                ring.push(batch.time[row], batch.took[row], &values);
            }
        }
    }
}

/// Rows that are filled value by value.
#[derive(Debug, Default)]
pub struct FetchGrid {
    columns: usize,
    rows: BTreeMap<u64, (u64, Vec<Option<u64>>)>,
    labels: BTreeMap<u64, Vec<String>>,
}

impl FetchGrid {
    /// No rows, with this number of columns.
    pub fn new(columns: usize) -> Self {
        Self { columns, ..Self::default() }
    }

    fn row(&mut self, time: u64) -> &mut (u64, Vec<Option<u64>>) {
        self.rows.entry(time).or_insert_with(|| (0, vec![None; self.columns]))
    }

    /// A value of a sample.
    pub fn put(&mut self, time: u64, column: usize, value: u64) {
        if let Some(cell) = self.row(time).1.get_mut(column) {
            *cell = Some(value);
        }
    }

    /// How long a sample took.
    pub fn put_took(&mut self, time: u64, took: u64) {
        self.row(time).0 = took;
    }

    /// A label.
    pub fn put_label(&mut self, time: u64, text: &str) {
        self.labels.entry(time).or_default().push(text.to_owned());
    }

    /// The rows in their order.
    pub fn batch(self) -> Batch {
        let mut batch = Batch::empty(self.columns);
        let mut labels = self.labels.into_iter().peekable();
        for (time, (took, row)) in self.rows {
            while let Some((at, texts)) = labels.next_if(|(at, _)| *at <= time) {
                texts.into_iter().for_each(|text| batch.push_label(at, text));
            }
            batch.push_sample(time, took, &row);
        }
        for (at, texts) in labels {
            texts.into_iter().for_each(|text| batch.push_label(at, text));
        }
        batch
    }
}

/// The description and the rows that these answers of an engine give: what [`fetch`] does, without the engine.
pub fn fetched(request: &FetchRequest<'_>, answers: Vec<Bytes>) -> Result<(Header, Batch), FetchError> {
    let asker = Asker::Given(answers.into());
    let mut source: Box<dyn Source + '_> = match request.target.emitter.scheme {
        "influxdb1" => Box::new(influx::Influx::new(request, asker)),
        "prometheus" => Box::new(prometheus::Prometheus::new(request, asker)),
        other => return Err(FetchError::WriteOnly(other)),
    };
    let header = source.header()?;
    let rows = source.rows(&header, request.range)?;
    Ok((header, rows))
}

/// Asks an engine for JSON.
enum Asker {
    Engine(Box<EngineClient>),
    /// Has its answers already.
    Given(VecDeque<Bytes>),
}

impl Asker {
    fn new(target: &PushTarget) -> Result<Self, FetchError> {
        let word = target.emitter.token();
        let Place::Http(address) = &target.place else {
            return Err(FetchError::WriteOnly(target.emitter.scheme));
        };
        let client = EngineClient::new(address, &target.credentials, word, target.authority.as_deref())?;
        Ok(Self::Engine(Box::new(client)))
    }

    /// The answer to a query; its path replaces the last parts of the address that begin with `own`.
    fn ask(&mut self, own: &str, path: &str, form: &[(&str, &str)]) -> Result<Value, FetchError> {
        self.send(Method::POST, own, path, encoded(form))
    }

    /// The same for a query that changes nothing and has its form in its path.
    fn get(&mut self, own: &str, path: &str, form: &[(&str, &str)]) -> Result<Value, FetchError> {
        self.send(Method::GET, own, &format!("{path}?{}", encoded(form)), String::new())
    }

    fn send(&mut self, method: Method, own: &str, path: &str, body: String) -> Result<Value, FetchError> {
        let client = match self {
            Self::Engine(client) => client,
            Self::Given(answers) => return json(&answers.pop_front().unwrap_or_default()),
        };
        let headers = [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")];
        let path = client.beside(own, path);
        let answer = client.ask(method, &path, &headers, Bytes::from(body), MAX_ANSWER)?;
        if !answer.is_whole {
            return Err(FetchError::Long);
        }
        if answer.status != 200 {
            let text = clean(&String::from_utf8_lossy(&answer.body));
            return Err(FetchError::Refused { status: answer.status, text });
        }
        json(&answer.body)
    }
}

fn encoded(form: &[(&str, &str)]) -> String {
    let pairs = form.iter().map(|(key, value)| format!("{}={}", escaped(key), escaped(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn json(text: &[u8]) -> Result<Value, FetchError> {
    serde_json::from_slice(text).map_err(|_| FetchError::Answer("it is no JSON"))
}

/// A text as part of a form or of a query.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => escaped.push(char::from(byte)),
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder;
    use crate::testing::{header, rows};
    use numakit_recording::Reader;

    #[test]
    fn a_recording_begins_with_its_rows() {
        let of = |started| Header { started, command: Some("app".to_owned()), ..Header::clone(&header(2)) };
        let begun = |started, from, first| {
            let header = begun(&of(started), from, first);
            (header.started, header.command.is_some())
        };
        assert_eq!(begun(500, 400, 501), (500, true), "all of one recording");
        assert_eq!(begun(300, 400, 401), (401, true), "the end of one");
        assert_eq!(begun(0, 400, 450), (450, true), "nobody knows when it began");
        assert_eq!(begun(700, 400, 450), (450, false), "two recordings, of which the newest is described");
    }

    /// More than half of a batch of the recorder, which waits for a whole one, and more than a batch.
    #[test]
    fn rows_of_several_batches_do_not_wait_for_the_recorder() {
        let folder = std::env::temp_dir().join(format!("numakit-push-fetch-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder::write(&folder, &header(2), &rows(0, 3600, 2)).unwrap();
        let target = PushTarget::parse(&format!("parquet:{}", folder.display())).unwrap();
        let request = FetchRequest { target: &target, host: "h", range: (0, 3600), known: Vec::new() };
        let output = folder.join("back.arrows");
        assert_eq!(fetch(&request, &output, false).unwrap().samples, 3600);
        let mut reader = Reader::open(&output).unwrap();
        let batches: Vec<Batch> = std::iter::from_fn(|| reader.next_batch()).collect();
        let times: Vec<u64> = batches.iter().flat_map(|batch| batch.time.clone()).collect();
        assert_eq!(times, (0..3600).collect::<Vec<u64>>());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
