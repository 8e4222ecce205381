//! What was judged, read back from JSON.

use crate::explained::{JudgedObject, JudgedProjection, JudgedReport};
use crate::finding::{
    Certainty, Finding, FindingCost, FindingRemedy, FindingSubject, RuleName, Worth, rule_name,
};
use crate::next::NextStep;
use numakit_cure::Cure;
use numakit_explain::projection::Projection;
use numakit_explain::{ExplainReport, ExplainedObject};
use serde::{Deserialize, Deserializer};

/// The result without what is computed of it.
#[derive(Deserialize)]
struct SavedReport {
    #[serde(flatten)]
    report: ExplainReport,
    objects: Vec<ExplainedObject>,
    findings: Vec<Finding>,
    projected: Option<SavedProjection>,
    #[serde(default)]
    next: Vec<NextStep>,
    #[serde(default)]
    cure: Option<Cure>,
}

#[derive(Deserialize)]
struct SavedProjection {
    #[serde(flatten)]
    projection: Projection,
    objects: Vec<ProjectedObject>,
}

/// An object on another machine, whose finding is in no other place than its keys.
#[derive(Deserialize)]
struct ProjectedObject {
    #[serde(flatten)]
    object: ExplainedObject,
    verdict: Option<SavedVerdict>,
    r#do: Option<String>,
    r#try: Option<String>,
    expect: Option<String>,
    worth: Option<Worth>,
}

#[derive(Deserialize)]
struct SavedVerdict {
    #[serde(deserialize_with = "rule_name")]
    rule: RuleName,
    says: String,
}

impl<'de> Deserialize<'de> for JudgedReport {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let SavedReport { report, objects, findings, projected, next, cure } =
            SavedReport::deserialize(from)?;
        let finding =
            |place| findings.iter().find(|finding| finding.subject == FindingSubject::Object(place)).cloned();
        let objects = (0..).zip(objects);
        let objects =
            objects.map(|(place, object)| JudgedObject { object, finding: finding(place) }).collect();
        Ok(Self { report, objects, findings, projected: projected.map(SavedProjection::judged), next, cure })
    }
}

impl SavedProjection {
    fn judged(self) -> JudgedProjection {
        let objects = (0..).zip(self.objects).map(|(place, object)| object.judged(place)).collect();
        JudgedProjection { projection: self.projection, objects }
    }
}

impl ProjectedObject {
    fn judged(self, place: u32) -> JudgedObject {
        let Self { object, verdict, r#do, r#try, expect, worth } = self;
        let remedy = FindingRemedy {
            words: r#do.unwrap_or_default(),
            commands: r#try.into_iter().collect(),
            expect: expect.map(Into::into),
            worth,
        };
        let finding = verdict.map(|SavedVerdict { rule, says }| Finding {
            rule,
            subject: FindingSubject::Object(place),
            says,
            since_seconds: 0.0,
            until_seconds: None,
            cost: FindingCost::unknown("results have no costs of another machine"),
            certainty: Certainty::Possible,
            evidence: Vec::new(),
            remedy,
        });
        JudgedObject { object, finding }
    }
}
