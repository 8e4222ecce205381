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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::words_of_line;
    use serde_json::{Value, json};

    fn finding(command: &str, percent: f64) -> Value {
        json!({
            "rule": "remote-use", "subject": {"kind": "program"}, "says": format!("it costs {percent} %"),
            "since_seconds": 0.0, "until_seconds": null, "certainty": "measured", "evidence": [],
            "cost": {"kind": "share", "of": "cpu-time", "percent": percent, "low": percent, "high": percent},
            "remedy": {"words": "do this", "commands": [command]},
        })
    }

    fn read(findings: &[Value], cure: Value) -> Advised {
        let result = json!({"findings": findings, "cure": cure, "too_few_samples": null, "later": [1]});
        advised(&result.to_string(), &words_of_line("./app 3"), "app.cure").unwrap()
    }

    fn commands(advised: &Advised) -> Vec<(String, Option<f64>)> {
        let words = |one: &AdvisedRemedy| (one.remedy.setting.words().join(" "), one.remedy.bound);
        advised.remedies.iter().map(words).collect()
    }

    #[test]
    fn remedies_that_can_gain_most_come_first() {
        let mut worth = finding("numa run --thp on ./app 3", 50.0);
        worth["remedy"]["worth"] = json!({"at_most": 0.1, "why": "misses of the TLB"});
        let findings =
            [worth, finding("numa run ./app 3", 20.0), finding("numa run --memory interleave ./app 3", 30.0)];
        let found = read(&findings, Value::Null);
        let wanted = [("--memory interleave", 0.3), ("", 0.2), ("--thp on", 0.1)];
        assert_eq!(commands(&found), wanted.map(|(words, bound)| (words.to_owned(), Some(bound))));
        assert_eq!((found.remedies[1].says.as_deref(), found.untried.len()), (Some("it costs 20 %"), 0));
    }

    #[test]
    fn a_remedy_of_several_findings_can_gain_what_all_promise() {
        let run = "numa run ./app 3";
        let sum = |percents: [f64; 2]| commands(&read(&percents.map(|one| finding(run, one)), Value::Null));
        assert_eq!(sum([20.0, 30.0]), [(String::new(), Some(0.5))]);
        assert_eq!(sum([70.0, 60.0]), [(String::new(), Some(1.0))]);
        let mut unknown = finding(run, 1.0);
        unknown["cost"] = json!({"kind": "unknown", "why": "no counters"});
        assert_eq!(commands(&read(&[finding(run, 20.0), unknown], Value::Null)), [(String::new(), None)]);
    }

    #[test]
    fn what_is_no_start_of_the_program_is_not_tried_and_said_once() {
        let mut possible = finding("numa run ./app 3", 20.0);
        possible["certainty"] = json!("possible");
        let mut silent = finding("", 5.0);
        silent["remedy"]["commands"] = json!([]);
        let sysctl = "sysctl kernel.numa_balancing=0";
        let other = "numa run ./other";
        let findings = [possible, silent, finding(sysctl, 9.0), finding(sysctl, 8.0), finding(other, 3.0)];
        let found = read(&findings, Value::Null);
        assert_eq!(
            (commands(&found), found.untried),
            (Vec::new(), vec![sysctl.to_owned(), other.to_owned()])
        );
    }

    #[test]
    fn a_cure_is_tried_if_it_has_objects() {
        let cured =
            |findings: &[Value], objects: Value| commands(&read(findings, json!({ "objects": objects })));
        assert_eq!(cured(&[], json!([])), []);
        let whole = [("--apply app.cure".to_owned(), None)];
        assert_eq!(cured(&[], json!([{}, {}])), whole);
        // A finding that advises the same says more.
        let advised = finding("numa run --apply app.cure ./app 3", 40.0);
        assert_eq!(cured(&[advised], json!([{}])), [("--apply app.cure".to_owned(), Some(0.4))]);
        assert_eq!(commands(&read(&[], json!({}))), []);
    }

    #[test]
    fn json_of_another_kind_is_an_error() {
        for json in
            ["", "[]", "{}", "{\"findings\":7}", "{\"findings\":[{}]}", "{\"findings\":[{\"rule\":\"new\"}]}"]
        {
            assert!(advised(json, &words_of_line("./app"), "app.cure").is_err(), "{json}");
        }
        let few =
            advised("{\"findings\":[],\"too_few_samples\":\"3 samples\"}", &words_of_line("./app"), "c")
                .unwrap();
        assert_eq!((few.few.as_deref(), few.remedies.len()), (Some("3 samples"), 0));
    }
}
