//! What is measured: metrics, where they are measured, and their names, which never change.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The unit of a raw value, as the source has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Events, or things that exist.
    Count,
    /// Memory pages of the machine's base page size.
    Pages,
    /// Bytes.
    Bytes,
    /// Units of 1,024 bytes (`kB` in /proc/meminfo).
    Kibibytes,
    /// Ticks of USER_HZ, 10 ms each.
    Ticks,
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Cycles of some clock.
    Cycles,
}

impl Unit {
    /// Every unit, for tables and documents.
    pub const ALL: [Self; 9] = [
        Self::Count,
        Self::Pages,
        Self::Bytes,
        Self::Kibibytes,
        Self::Ticks,
        Self::Nanoseconds,
        Self::Microseconds,
        Self::Milliseconds,
        Self::Cycles,
    ];

    /// The name in listings, exporters and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Pages => "pages",
            Self::Bytes => "bytes",
            Self::Kibibytes => "KiB",
            Self::Ticks => "ticks",
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Cycles => "cycles",
        }
    }

    /// Seconds per unit for units of time.
    pub fn seconds(self) -> Option<f64> {
        match self {
            Self::Ticks => Some(1e-2),
            Self::Nanoseconds => Some(1e-9),
            Self::Microseconds => Some(1e-6),
            Self::Milliseconds => Some(1e-3),
            _ => None,
        }
    }

    /// Bytes per unit for units of memory.
    pub fn bytes(self, page_size: u64) -> Option<u64> {
        match self {
            Self::Bytes => Some(1),
            Self::Kibibytes => Some(1024),
            Self::Pages => Some(page_size),
            _ => None,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a raw value changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Only grows, and wraps at 2^bits.
    Counter {
        /// Width of the counter.
        bits: u8,
    },
    /// A level that goes up and down.
    Gauge,
    /// Already a rate per second, signed: the raw word holds an `i64`. Only recordings of
    /// other programs have it, sensors never.
    Rate,
}

impl Kind {
    /// A counter of 64 bits.
    pub const COUNTER: Self = Self::Counter { bits: 64 };

    /// `counter`, `gauge` or `rate`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter { .. } => "counter",
            Self::Gauge => "gauge",
            Self::Rate => "rate",
        }
    }
}

/// What a metric has one value for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Scope {
    Machine,
    Node,
    Package,
    Cpu,
    Cache,
    Link,
    Pair,
    Device,
    Task,
}

impl Scope {
    /// The name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Node => "node",
            Self::Package => "package",
            Self::Cpu => "cpu",
            Self::Cache => "cache",
            Self::Link => "link",
            Self::Pair => "pair",
            Self::Device => "device",
            Self::Task => "task",
        }
    }
}

/// One thing of a scope, such as node 3. Printed as the suffix of a series name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Instance {
    Machine,
    Node(u32),
    Package(u32),
    Cpu(u32),
    Cache(u32),
    Link(u32, u32),
    /// The node of a CPU, and the node of the memory that it uses.
    Pair(u32, u32),
    Device(u32),
    Task(u32),
}

impl Instance {
    /// The scope that this is an instance of.
    pub fn scope(self) -> Scope {
        match self {
            Self::Machine => Scope::Machine,
            Self::Node(_) => Scope::Node,
            Self::Package(_) => Scope::Package,
            Self::Cpu(_) => Scope::Cpu,
            Self::Cache(_) => Scope::Cache,
            Self::Link(..) => Scope::Link,
            Self::Pair(..) => Scope::Pair,
            Self::Device(_) => Scope::Device,
            Self::Task(_) => Scope::Task,
        }
    }

    /// Parses the part of a series name after the `@`.
    pub fn parse(text: &str) -> Option<Self> {
        let split = text.find(|c: char| c.is_ascii_digit())?;
        let (word, number) = text.split_at(split);
        let id = |s: &str| s.parse::<u32>().ok();
        Some(match word {
            "node" => Self::Node(id(number)?),
            "package" => Self::Package(id(number)?),
            "cpu" => Self::Cpu(id(number)?),
            "cache" => Self::Cache(id(number)?),
            "card" => Self::Device(id(number)?),
            "pid" => Self::Task(id(number)?),
            "link" | "pair" => {
                let (a, b) = number.split_once('.')?;
                let (a, b) = (id(a)?, id(b)?);
                if word == "link" { Self::Link(a, b) } else { Self::Pair(a, b) }
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => Ok(()),
            Self::Node(n) => write!(f, "@node{n}"),
            Self::Package(n) => write!(f, "@package{n}"),
            Self::Cpu(n) => write!(f, "@cpu{n}"),
            Self::Cache(n) => write!(f, "@cache{n}"),
            Self::Link(a, b) => write!(f, "@link{a}.{b}"),
            Self::Pair(a, b) => write!(f, "@pair{a}.{b}"),
            Self::Device(n) => write!(f, "@card{n}"),
            Self::Task(n) => write!(f, "@pid{n}"),
        }
    }
}

/// One thing that a sensor measures, for all its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// `sensor.metric`, the name in globs, columns and exporters.
    pub name: String,
    /// Unit of the raw value.
    pub unit: Unit,
    /// Counter, gauge or rate.
    pub kind: Kind,
    /// What it has one value for.
    pub scope: Scope,
    /// One sentence.
    pub help: String,
    /// The file or interface that it is read from.
    pub source: String,
    /// The shortest time over which a difference of two values means something.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub resolution: Duration,
    /// How sure the description is; `None` where the kernel itself names the metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The largest value per second, such as the frequency of the clock that it counts: 100 % of its
    /// percentages. `None` where there is no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<u64>,
}

/// How sure it is that a hardware event counts what its description says. No table of
/// events was tested on all the hardware that it describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Partly inferred, or the vendor documents little.
    Medium,
    /// From the vendor's or the kernel's own tables.
    High,
}

impl Confidence {
    /// The word in listings and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl Metric {
    /// The sensor's part of the name.
    pub fn sensor(&self) -> &str {
        self.name.split_once('.').map_or(self.name.as_str(), |(s, _)| s)
    }

    /// The name without the sensor: for kernel counters, the kernel's own name.
    pub fn bare(&self) -> &str {
        self.name.split_once('.').map_or(self.name.as_str(), |(_, m)| m)
    }
}

/// One column: a metric at one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// What is measured; shared by all instances.
    pub metric: Arc<Metric>,
    /// Where.
    pub instance: Instance,
}

impl Series {
    /// Names a column.
    pub fn new(metric: &Arc<Metric>, instance: Instance) -> Self {
        Self { metric: Arc::clone(metric), instance }
    }

    /// `sensor.metric@node3`; for the machine only `sensor.metric`.
    pub fn name(&self) -> String {
        format!("{}{}", self.metric.name, self.instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_print_and_parse() {
        for instance in [
            Instance::Node(3),
            Instance::Package(0),
            Instance::Cpu(12),
            Instance::Cache(5),
            Instance::Link(0, 1),
            Instance::Pair(3, 0),
            Instance::Device(2),
            Instance::Task(4711),
        ] {
            let text = instance.to_string();
            assert_eq!(Instance::parse(&text[1..]), Some(instance), "{text}");
        }
        for bad in ["", "node", "3", "link3", "disk0", "node-1", "node99999999999"] {
            assert_eq!(Instance::parse(bad), None, "{bad}");
        }
    }
}
