//! Builds series as sums of counts.

use super::names;
use crate::events::{Class, EventTable, Feed, PlatformEvent, Section, Spread};
use crate::pmu::{CounterRequest, Factor};
use crate::sensor::{Absent, metric};
use numakit_model::{Confidence, Instance, Kind, Metric, Scope, Series, Unavailable, Unit};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A series and its counts.
type Counted = (Series, Vec<(CounterRequest, Factor)>);

/// All series of a sensor.
#[derive(Debug)]
pub struct Sums {
    sensor: String,
    classes: Vec<Sum>,
    events: Vec<Sum>,
    // Positions in these vectors by name.
    places: BTreeMap<(String, Scope), usize>,
}

/// A metric with its instances.
#[derive(Debug)]
pub struct Sum {
    metric: Metric,
    // The events and their PMUs, for the end of the description.
    of: Vec<(String, Vec<String>)>,
    mean: bool,
    parts: BTreeMap<Instance, Vec<(CounterRequest, Factor)>>,
    refused: Option<Unavailable>,
    whole: bool,
}

impl Sums {
    /// Without any series.
    pub fn new(sensor: &str) -> Self {
        let (classes, events, places) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { sensor: sensor.to_owned(), classes, events, places }
    }

    /// The sum of an event.
    pub fn event(&mut self, table: &EventTable, section: &Section, event: &PlatformEvent) -> &mut Sum {
        let pmu = names::short(&section.pmus[0]);
        let point = if pmu.is_empty() { "" } else { "." };
        let name = format!("{}.{pmu}{point}{}", self.sensor, names::of_event(event));
        let scope = scope_of(section.spread);
        let at = *self.places.entry((name.clone(), scope)).or_insert_with(|| {
            let mut metric = metric(&name, unit_of(event), Kind::COUNTER, scope, &event.help, "");
            metric.source = format!("{} by perf_event_open; {}", names::several(&section.pmus), table.source);
            metric.confidence = Some(event.confidence);
            self.events.push(Sum::new(metric, false));
            self.events.len() - 1
        });
        let sum = &mut self.events[at];
        // One of several lines, each for one node: the description of the class fits all.
        if let Some(feed) = event.feeds.first().filter(|_| sum.metric.help != event.help) {
            sum.metric.help = feed.class.help.to_owned();
        }
        sum
    }

    /// The sum of a class that an event is added to; none if it only belongs to the class.
    pub fn class(
        &mut self,
        table: &EventTable,
        section: &Section,
        event: &PlatformEvent,
        feed: &Feed,
    ) -> Option<&mut Sum> {
        feed.factor?;
        let class: &Class = feed.class;
        let name = format!("{}.{}", self.sensor, class.name);
        let scope = scope_of(section.spread);
        let at = *self.places.entry((name.clone(), scope)).or_insert_with(|| {
            let mut metric = metric(&name, class.unit, Kind::COUNTER, scope, class.help, "");
            metric.source = format!("perf_event_open; {}", table.source);
            self.classes.push(Sum::new(metric, class.mean));
            self.classes.len() - 1
        });
        let sum = &mut self.classes[at];
        sum.adds(&names::several(&section.pmus), &names::of_event(event), event.confidence);
        Some(sum)
    }

    /// Every metric, classes first, each name once.
    pub fn metrics(self) -> Vec<Metric> {
        let mut seen = std::collections::BTreeSet::new();
        let all = self.classes.into_iter().chain(self.events).map(|sum| sum.metric);
        all.filter(|metric| seen.insert(metric.name.clone())).collect()
    }

    /// The series that can be counted, and what cannot.
    pub fn finish(self) -> (Vec<Counted>, Vec<Absent>) {
        let (mut counted, mut absent) = (Vec::new(), Vec::new());
        for sum in self.classes.into_iter().chain(self.events) {
            match sum.why_not() {
                Some(why) => absent.push(Absent { metric: sum.described(), why }),
                None => counted.extend(sum.series()),
            }
        }
        (counted, absent)
    }
}

impl Sum {
    fn new(metric: Metric, mean: bool) -> Self {
        Self { metric, of: Vec::new(), mean, parts: BTreeMap::new(), refused: None, whole: false }
    }

    /// Adds a count to an instance.
    pub fn part(&mut self, instance: Instance, request: CounterRequest, factor: Factor) {
        self.parts.entry(instance).or_default().push((request, factor));
    }

    /// Notes why an event is missing. `whole`: without it, the sum would be wrong.
    pub fn refuse(&mut self, why: &Unavailable, whole: bool) {
        self.refused.get_or_insert_with(|| why.clone());
        self.whole |= whole;
    }

    fn adds(&mut self, pmu: &str, event: &str, confidence: Confidence) {
        self.metric.confidence = self.metric.confidence.into_iter().chain([confidence]).min();
        let at = self.of.iter().position(|(of, _)| of == pmu).unwrap_or_else(|| {
            self.of.push((pmu.to_owned(), Vec::new()));
            self.of.len() - 1
        });
        let events = &mut self.of[at].1;
        if !events.iter().any(|e| e == event) {
            events.push(event.to_owned());
        }
    }

    fn why_not(&self) -> Option<Unavailable> {
        self.refused.clone().filter(|_| self.whole || self.parts.is_empty())
    }

    /// The metric, with its events in the description.
    fn described(&self) -> Metric {
        let words = self.of.iter().map(|(pmu, events)| format!("{} of {pmu}", events.join(" + ")));
        let words = words.collect::<Vec<_>>().join(", ");
        let mut metric = self.metric.clone();
        if !words.is_empty() {
            let mean = if self.mean { "Mean of " } else { "" };
            metric.help = format!("{} [{mean}{words}]", metric.help);
        }
        metric
    }

    fn series(self) -> Vec<Counted> {
        let metric = Arc::new(self.described());
        let series = self.parts.into_iter().map(|(instance, mut parts)| {
            let count = parts.len() as u64;
            if self.mean {
                parts.iter_mut().for_each(|(_, factor)| factor.over *= count);
            }
            (Series::new(&metric, instance), parts)
        });
        series.collect()
    }
}

fn scope_of(spread: Spread) -> Scope {
    match spread {
        Spread::Machine => Scope::Machine,
        Spread::Package => Scope::Package,
        Spread::Node | Spread::Cpu => Scope::Node,
        Spread::Link | Spread::Target => Scope::Link,
    }
}

/// The unit of the count itself.
fn unit_of(event: &PlatformEvent) -> Unit {
    match event.feeds.iter().find(|feed| feed.factor == Some(Factor::ONE)) {
        Some(feed) => feed.class.unit,
        None => Unit::Count,
    }
}
