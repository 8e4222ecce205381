//! `numa explain --try`: what the remedies gain, measured.

use crate::tuned;
use numakit_findings::explained::JudgedReport;
use numakit_sys::stdio::note;
use numakit_trials::{TrialRunner, TrialScene, TriedRemedy, TuneRequest, remedies_of, try_remedies};
use std::ffi::OsString;

/// The first remedy of each verdict against none, in pairs of runs.
pub(super) fn tried(
    report: &JudgedReport,
    command: &[OsString],
    pairs: u32,
) -> anyhow::Result<Vec<TriedRemedy>> {
    let advised = remedies_of(&report.findings, command);
    advised.untried.iter().for_each(|command| {
        note(format_args!("not tried, since it does more than start the program: {command}"));
    });
    if advised.remedies.is_empty() {
        note("no remedy can be tried: none of what was found has a command that starts the program");
        return Ok(Vec::new());
    }
    let request = TuneRequest::of_program(tuned::texts(command)?);
    let scene: &TrialScene = &request.scene;
    let words: Vec<OsString> = scene.words().iter().map(OsString::from).collect();
    let mut runner = TrialRunner::new(&request, &[])?;
    let typed = |setting: &_| numakit_trials::typed(setting, &words);
    let mut run = 0;
    let all = advised.remedies.len() as u32 * (pairs + 1) * 2;
    let ended = try_remedies(&mut runner, &advised.remedies, pairs, typed, |command| {
        run += 1;
        tuned::progress(&format!("tries the remedies, run {run} of {all}: {command}"));
    });
    tuned::end_progress();
    let (tried, signal) = ended?;
    if signal.is_some() {
        note("interrupted: remedies that were not tried to the end are left out");
    }
    Ok(tried)
}
