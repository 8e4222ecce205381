//! Selects series: the list of `-e`.
//!
//! Items are separated by commas; `!ITEM` excludes. An item is a name or a pattern (`*`, `?`, `[..]`)
//! and means the first of these that matches:
//! 1. the full name of a series (`node.MemFree@node0`), of a metric with all instances
//!    (`node.MemFree`), or of a sensor with all its metrics (`node`);
//! 2. the kernel's name of a metric of the whole machine (`pgfault`, `numa_hit`);
//! 3. the kernel's name of any other metric (`MemFree`, `numa_hit@node0`), or the vendor's name of a
//!    hardware event (`UNC_M_CAS_COUNT.RD`).
//!
//! `default` means what each sensor samples by default. It is implied if all items exclude: `!node` is
//! the default without `node`, and `default,perf` adds the sensor `perf`.

use crate::glob::{self, Pattern, PatternError};
use crate::{Probe, SENSORS, Scene, Sensor, SensorEntry};
use numakit_model::{Fix, Instance, Metric, Scope, Series, Unavailable, suggest};
use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// The item for the default selection.
const DEFAULT: &str = "default";

/// Whether a metric is sampled by default.
fn by_default(metric: &Metric) -> bool {
    SENSORS.iter().any(|entry| entry.name == metric.sensor() && (entry.default)(metric))
}

/// A parsed list of items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    take: Vec<String>,
    leave: Vec<String>,
}

/// The selected sensors.
pub struct Selected {
    /// Each with its selected series only.
    pub sensors: Vec<Box<dyn Sensor>>,
    /// Unavailable sensors and `sensor.metric` names.
    pub missing: Vec<(String, Unavailable)>,
}

/// Why a selection is impossible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectError {
    /// An item is empty.
    #[error(
        "the list of events '{0}' has an empty item; give comma-separated names or patterns, for instance 'pgfault,numa_*'"
    )]
    Empty(String),
    /// An item is too long.
    #[error("an event is no name or pattern: {0}")]
    Pattern(#[from] PatternError),
    /// No such name.
    #[error("unknown event '{item}'; {}", where_to_look(.nearest))]
    Unknown {
        /// The item.
        item: String,
        /// Similar names.
        nearest: Vec<String>,
    },
    /// The name is known, but unavailable here.
    #[error("event '{item}' is unavailable here: {why}")]
    Absent {
        /// The item.
        item: String,
        /// Why.
        why: Box<Unavailable>,
    },
    /// Everything is excluded.
    #[error("the events '{0}' exclude everything; exclude less")]
    Nothing(String),
}

/// The nearest names and how to list all, as the end of a message.
pub fn where_to_look(nearest: &[String]) -> String {
    match nearest {
        [] => "'numa list' shows all".to_owned(),
        names => format!("nearest: {}; 'numa list' shows all", names.join(", ")),
    }
}

impl FromStr for Selection {
    type Err = SelectError;

    fn from_str(text: &str) -> Result<Self, SelectError> {
        let mut selection = Self::default();
        for item in text.split(',').map(str::trim) {
            let (list, item) = match item.strip_prefix('!') {
                Some(item) => (&mut selection.leave, item.trim()),
                None => (&mut selection.take, item),
            };
            if item.is_empty() {
                return Err(SelectError::Empty(text.to_owned()));
            }
            glob::check(item, glob::MAX_BYTES)?;
            list.push(item.to_owned());
        }
        Ok(selection)
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let leave = self.leave.iter().map(|item| format!("!{item}"));
        f.write_str(&self.take.iter().cloned().chain(leave).collect::<Vec<_>>().join(","))
    }
}

impl Selection {
    /// Whether it takes what is sampled by default.
    pub fn is_default(&self) -> bool {
        self.take.is_empty() || self.take.iter().any(|item| item == DEFAULT)
    }

    /// Whether it takes a metric of this sensor by its name.
    pub fn names_sensor(&self, name: &str) -> bool {
        let metrics = SENSORS.iter().filter(|entry| entry.name == name).flat_map(|entry| (entry.known)());
        let metrics: Vec<Metric> = metrics.collect();
        self.take.iter().any(|item| {
            let pattern = &Pattern::new(item.split('@').next().unwrap_or(item));
            pattern.fits(name) || metrics.iter().any(|metric| means(pattern, metric))
        })
    }

    /// The sensors that it names, if each item starts with the name of a sensor; `None` if any sensor
    /// may have the requested names.
    pub fn sensors(&self) -> Option<Vec<&'static SensorEntry>> {
        let named = |item: &String, entry: &SensorEntry| {
            let start = item.split(['*', '?', '[', '@']).next().unwrap_or_default();
            let whole = start.len() == item.len();
            let inside = start.strip_prefix(entry.name).is_some_and(|rest| rest.starts_with('.'));
            inside || if whole { start == entry.name } else { entry.name.starts_with(start) }
        };
        let sure = |item| SENSORS.iter().any(|entry| named(item, entry));
        let needed = |entry: &&SensorEntry| self.take.iter().any(|item| named(item, entry));
        let all_named = !self.take.is_empty() && self.take.iter().all(sure);
        all_named.then(|| SENSORS.iter().filter(needed).collect())
    }
}

impl Probe {
    /// The selected sensors with their selected series. If the selection names its sensors, no
    /// other is probed.
    pub fn selected(scene: &Scene<'_>, selection: &Selection) -> Result<Selected, SelectError> {
        let narrow = |probe: Self| {
            let missing = probe.missing().map(|(name, why)| (name, why.clone())).collect();
            Ok(Selected { sensors: probe.select(selection)?, missing })
        };
        if let Some(entries) = selection.sensors()
            && let Ok(selected) = narrow(Self::of(scene, entries))
        {
            return Ok(selected);
        }
        narrow(Self::new(scene))
    }

    /// The selected sensors, each with its selected series.
    pub fn select(self, selection: &Selection) -> Result<Vec<Box<dyn Sensor>>, SelectError> {
        let identity = |s: &Series| (Arc::as_ptr(&s.metric), s.instance);
        let flags = self.wanted(selection)?;
        let selected = self.series().zip(flags).filter(|(_, wanted)| *wanted);
        let selected: HashSet<_> = selected.map(|(series, _)| identity(series)).collect();
        let mut sensors = self.sensors;
        for sensor in &mut sensors {
            sensor.keep(&|s| selected.contains(&identity(s)));
        }
        sensors.retain(|s| !s.series().is_empty());
        Ok(sensors)
    }

    /// For each series of [`Probe::series`], whether it is selected.
    fn wanted(&self, selection: &Selection) -> Result<Vec<bool>, SelectError> {
        let names = Names::of(self);
        let mut wanted = match selection.take.is_empty() {
            true => self.series().map(|s| by_default(&s.metric)).collect(),
            false => vec![false; names.full.len()],
        };
        for (items, value) in [(&selection.take, true), (&selection.leave, false)] {
            for item in items {
                let found = names.find(item);
                if found.is_empty() && (value || self.why_absent(item).is_none()) {
                    return Err(self.error(item));
                }
                found.into_iter().for_each(|at| wanted[at] = value);
            }
        }
        if wanted.contains(&true) { Ok(wanted) } else { Err(SelectError::Nothing(selection.to_string())) }
    }

    /// The available part of a selection, and the errors of the rest; an error if nothing is available.
    pub fn available(&self, selection: &Selection) -> Result<(Selection, Vec<SelectError>), SelectError> {
        let names = Names::of(self);
        let (take, unavailable): (Vec<String>, Vec<String>) =
            selection.take.iter().cloned().partition(|item| !names.find(item).is_empty());
        let leave = selection.leave.iter().filter(|item| !names.find(item).is_empty()).cloned().collect();
        match unavailable.first() {
            Some(first) if take.is_empty() => Err(self.error(first)),
            _ => Ok((Selection { take, leave }, unavailable.iter().map(|item| self.error(item)).collect())),
        }
    }

    fn error(&self, item: &str) -> SelectError {
        let item = item.to_owned();
        if let Some(why) = self.why_absent(&item) {
            return SelectError::Absent { item, why: Box::new(why) };
        }
        let nearest = self.nearest(&item);
        SelectError::Unknown { item, nearest }
    }

    /// Why everything that an item means is unavailable, if it means something.
    fn why_absent(&self, item: &str) -> Option<Unavailable> {
        // The item may have an instance; absent metrics have none.
        let item = &Pattern::new(item.split('@').next().unwrap_or(item));
        if let Some(absent) = self.absent().find(|a| means(item, &a.metric)) {
            return Some(absent.why.clone());
        }
        for (entry, why) in &self.unavailable {
            if item.fits(entry.name) || (entry.known)().iter().any(|m| means(item, m)) {
                return Some(why.clone());
            }
        }
        if self.series().any(|s| means(item, &s.metric)) {
            return None;
        }
        let known = SENSORS.iter().flat_map(|e| (e.known)()).find(|m| means(item, m))?;
        if known.confidence.is_some() {
            let seen = "no table for this processor has it";
            let fix = Fix::OtherMachine("a processor whose table has it: docs/guide/counters.md".to_owned());
            return Some(Unavailable::new(known.name, seen, fix));
        }
        let seen = format!("{} does not show it", known.source);
        let fix = Fix::OtherKernel("whose version and configuration have it, or exclude it".to_owned());
        Some(Unavailable::new(known.name, seen, fix))
    }

    /// Names similar to an item: full ones if it has a dot, otherwise the kernel's.
    pub fn nearest(&self, item: &str) -> Vec<String> {
        let text: String = item.split('@').next().unwrap_or(item).replace(['*', '?', '[', ']'], "");
        let mut known = HashSet::new();
        for metric in self.series().map(|s| &s.metric) {
            known.insert(if text.contains('.') { metric.name.as_str() } else { metric.bare() });
        }
        if !text.contains('.') {
            known.extend(SENSORS.iter().map(|e| e.name));
        }
        suggest::nearest(&text, known, 3).into_iter().map(str::to_owned).collect()
    }
}

/// Whether an item means a metric, in any scope.
fn means(item: &Pattern, metric: &Metric) -> bool {
    item.fits(&metric.name) || item.fits(metric.bare()) || by_vendor(item, metric)
}

/// Whether an item is the vendor's name of an event, without the PMU.
fn by_vendor(item: &Pattern, metric: &Metric) -> bool {
    let event = metric.bare().split_once('.').filter(|_| metric.confidence.is_some());
    event.is_some_and(|(_, event)| item.fits(event))
}

/// Whether an item means a series with this full name.
type Meaning<'a> = &'a dyn Fn(&Series, &str) -> bool;

/// The names of all series, to look items up.
struct Names<'a> {
    full: Vec<(&'a Series, String)>,
}

impl<'a> Names<'a> {
    fn of(probe: &'a Probe) -> Self {
        Self { full: probe.series().map(|s| (s, s.name())).collect() }
    }

    /// The positions of the series that an item means.
    fn find(&self, item: &str) -> Vec<usize> {
        if item == DEFAULT {
            let places = self.full.iter().enumerate().filter(|(_, (series, _))| by_default(&series.metric));
            return places.map(|(at, _)| at).collect();
        }
        let with_instance = item.contains('@');
        let item = &Pattern::new(item);
        let by_name = |s: &Series, name: &str| {
            item.fits(name) || item.fits(&s.metric.name) || item.fits(s.metric.sensor())
        };
        let bare = |s: &Series| {
            item.fits(s.metric.bare())
                || by_vendor(item, &s.metric)
                || (s.instance != Instance::Machine
                    && with_instance
                    && item.fits(&format!("{}{}", s.metric.bare(), s.instance)))
        };
        let of_machine = |s: &Series, _: &str| s.metric.scope == Scope::Machine && bare(s);
        let of_others = |s: &Series, _: &str| bare(s);
        let meanings: [Meaning<'_>; 3] = [&by_name, &of_machine, &of_others];
        let places = |meaning: Meaning<'_>| {
            let fitting = self.full.iter().enumerate().filter(|(_, (series, name))| meaning(series, name));
            fitting.map(|(at, _)| at).collect::<Vec<_>>()
        };
        meanings.into_iter().map(places).find(|found| !found.is_empty()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
