//! Which recordings there are, and what is in one.

use super::bounded;
use crate::directory::SharedDirectory;
use crate::error::ToolError;
use numakit_model::time::utc;
use numakit_recording::Reader;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// As many recordings, series and absent metrics as one answer has.
const MAX_RECORDINGS: usize = 200;
const MAX_SERIES: usize = 400;
const MAX_ABSENT: usize = 50;

/// Where recordings are looked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recordings {
    /// only below this directory
    directory: Option<String>,
}

/// Which series are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeriesOf {
    /// path of a recording, as list_recordings has it
    recording: String,
    /// only names that contain this text, as in 'numa' or '@node3'
    #[serde(rename = "match")]
    part: Option<String>,
}

pub(crate) fn list(directory: &SharedDirectory, asked: &Recordings) -> Result<Value, ToolError> {
    let (files, has_more) = directory.files(asked.directory.as_deref().unwrap_or("."))?;
    let describe = |path: &std::path::PathBuf| {
        let name = path.to_str()?;
        // Other files are not recordings, and no error.
        let is_named = path.extension().is_some_and(|e| e == "arrows" || e == "arrow" || e == "json");
        is_named.then(|| directory.recording(name).ok())?.map(|mut reader| described(name, &mut reader))
    };
    let recordings: Vec<Value> = files.iter().filter_map(describe).collect();
    let note = has_more.then_some("there are more files than are looked at; give a directory below");
    Ok(json!({"recordings": bounded(recordings, MAX_RECORDINGS), "note": note}))
}

fn described(name: &str, reader: &mut Reader) -> Value {
    let header = reader.header().clone();
    // Without reading its rows, only of a recording that was closed.
    let samples = reader.batch_positions().and_then(|all| Some(all.last()?.rows));
    let interval = (header.interval > 0).then(|| header.interval as f64 / 1e9);
    json!({
        "recording": name,
        "host": header.host,
        "kernel": header.kernel,
        "command": header.command,
        "started": utc(header.started),
        "interval_seconds": interval,
        "samples": samples,
        "about_seconds": samples.zip(interval).map(|(samples, interval)| samples as f64 * interval),
        "series": header.series.len(),
        "nodes": header.topology.as_ref().map(|topology| topology.nodes.len()),
    })
}

pub(crate) fn series(directory: &SharedDirectory, asked: &SeriesOf) -> Result<Value, ToolError> {
    let name = &asked.recording;
    let reader = directory.recording(name)?;
    let header = reader.header();
    let part = asked.part.as_deref().unwrap_or_default();
    let wanted = header.series.iter().filter(|series| series.name().contains(part));
    let listed: Vec<Value> = wanted
        .map(|series| {
            let metric = &series.metric;
            json!({
                "series": series.name(),
                "unit": metric.unit.name(),
                "kind": metric.kind.name(),
                "help": metric.help,
            })
        })
        .collect();
    if listed.is_empty() {
        let count = header.series.len();
        return Err(ToolError::NoMatch { name: name.to_owned(), part: part.to_owned(), count });
    }
    let absent =
        header.absent.iter().map(|absent| json!({"name": absent.name, "why": absent.why.to_string()}));
    Ok(json!({
        "count": listed.len(),
        "series": bounded(listed, MAX_SERIES),
        "absent": bounded(absent.collect(), MAX_ABSENT),
    }))
}
