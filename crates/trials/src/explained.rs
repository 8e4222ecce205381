//! What `numa explain` advises for a program, as candidates.

use crate::commands::setting_of;
use numakit_findings::finding::{Certainty, Finding};
use numakit_tune::candidates::TuneSetting;
use numakit_tune::tuning::TuneRemedy;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;

/// A remedy of a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdvisedRemedy {
    /// The setting, with the most that it can gain.
    pub remedy: TuneRemedy,
    /// What the finding says; `None` for a setting that the user gave.
    pub says: Option<String>,
}

/// What an observation advises.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Advised {
    /// Remedies that can be tried, those that can gain most first.
    pub remedies: Vec<AdvisedRemedy>,
    /// Commands that are not tried, since they do more than start the program.
    pub untried: Vec<String>,
    /// Why the observation says little, if it does.
    pub few: Option<String>,
}

/// What is read of the result.
#[derive(Deserialize)]
struct ExplainResult {
    findings: Vec<Finding>,
    too_few_samples: Option<String>,
    cure: Option<CureObjects>,
}

#[derive(Deserialize)]
struct CureObjects {
    #[serde(default)]
    objects: Vec<serde_json::Value>,
}

/// The remedies in the JSON of `numa explain`. `cure` is the file of the cure that it has written.
pub fn advised(json: &str, program: &[OsString], cure: &str) -> Result<Advised, serde_json::Error> {
    let result: ExplainResult = serde_json::from_str(json)?;
    let mut advised = Advised { few: result.too_few_samples, ..remedies_of(&result.findings, program) };
    if result.cure.is_some_and(|cure| !cure.objects.is_empty()) {
        let words = ["--apply".to_owned(), cure.to_owned()];
        let setting = TuneSetting::typed(&[], Some(&words));
        if advised.remedies.iter().all(|known| known.remedy.setting != setting) {
            let remedy = TuneRemedy { setting, bound: None };
            advised
                .remedies
                .push(AdvisedRemedy { remedy, says: Some("the cure of all its objects".to_owned()) });
        }
    }
    advised.sort();
    Ok(advised)
}

/// The first remedy of each finding about a program.
pub fn remedies_of(findings: &[Finding], program: &[OsString]) -> Advised {
    let mut advised = Advised::default();
    for finding in findings.iter().filter(|finding| !finding.is_of_others()) {
        let Some(command) = finding.remedy.commands.first() else { continue };
        if finding.certainty == Certainty::Possible {
            continue;
        }
        match setting_of(command, program) {
            Some(setting) => add(&mut advised.remedies, setting, finding),
            None if !advised.untried.contains(command) => advised.untried.push(command.clone()),
            None => {}
        }
    }
    advised.sort();
    advised
}

impl Advised {
    /// Adds settings that the user gave. They come first.
    pub fn add_given(&mut self, settings: &[TuneSetting]) {
        let given = settings.iter().map(|setting| AdvisedRemedy {
            remedy: TuneRemedy { setting: setting.clone(), bound: None },
            says: None,
        });
        self.remedies.retain(|known| !settings.contains(&known.remedy.setting));
        self.remedies.splice(0..0, given);
    }

    /// Those that can gain most come first. What is not known may be the most.
    fn sort(&mut self) {
        let most = |advised: &AdvisedRemedy| advised.remedy.bound.unwrap_or(1.0);
        self.remedies.sort_by(|one, other| most(other).total_cmp(&most(one)));
    }
}

/// Adds a remedy; one that several findings have can gain what all of these promise.
fn add(remedies: &mut Vec<AdvisedRemedy>, setting: TuneSetting, finding: &Finding) {
    let worth = finding.remedy.worth.as_ref().and_then(|worth| worth.at_most);
    let bound = worth.or_else(|| finding.cost.percent().map(|percent| percent / 100.0));
    match remedies.iter_mut().find(|known| known.remedy.setting == setting) {
        Some(known) => {
            let sum = known.remedy.bound.zip(bound).map(|(one, other)| one + other);
            known.remedy.bound = sum.map(|sum: f64| sum.min(1.0));
        }
        None => remedies
            .push(AdvisedRemedy { remedy: TuneRemedy { setting, bound }, says: Some(finding.says.clone()) }),
    }
}
