//! The numbers of the kernel's tracepoints.

use numakit_model::{Fix, Unavailable};
use numakit_sys::SysRoot;
use numakit_sys::perf::PerfEvent;
use std::io::ErrorKind;

/// Mount points of tracefs, the usual one first.
const MOUNT_POINTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A readable tracefs.
#[derive(Debug, Clone)]
pub struct Tracefs<'a> {
    root: &'a SysRoot,
    place: &'static str,
}

impl<'a> Tracefs<'a> {
    /// Finds it.
    pub fn find(root: &'a SysRoot) -> Result<Self, Unavailable> {
        let mut denied = None;
        for place in MOUNT_POINTS {
            match root.list(place) {
                Ok(names) if names.iter().any(|n| n == "events") => return Ok(Self { root, place }),
                Err(error) if error.kind == ErrorKind::PermissionDenied => denied = denied.or(Some(place)),
                _ => {}
            }
        }
        let (seen, fix) = match denied {
            Some(place) => (format!("{place}: permission denied"), as_root()),
            None => (
                format!("tracefs is not mounted: {} has no folder 'events'", MOUNT_POINTS[0]),
                Fix::command(format!("sudo mount -t tracefs tracefs {}", MOUNT_POINTS[0])),
            ),
        };
        Err(Unavailable::new("tracepoints of the kernel", seen, fix))
    }

    /// The event of a tracepoint.
    pub fn event(&self, system: &str, name: &str) -> Result<PerfEvent, Unavailable> {
        let path = format!("{}/events/{system}/{name}/id", self.place);
        let missing = format!("the tracepoint {system}:{name}");
        match self.root.text(&path) {
            Ok(text) => match text.trim().parse() {
                Ok(id) => Ok(PerfEvent::new(PerfEvent::TRACEPOINT, id)),
                Err(_) => {
                    let seen = format!("{path} is '{}', not a number", text.trim());
                    Err(Unavailable::new(missing, seen, Fix::OtherKernel("that numbers it".to_owned())))
                }
            },
            Err(error) if error.is_missing() => {
                let seen = format!("the kernel has no {}/events/{system}/{name}", self.place);
                Err(Unavailable::new(missing, seen, Fix::OtherKernel("that has it".to_owned())))
            }
            Err(error) => Err(Unavailable::new(missing, error.to_string(), as_root())),
        }
    }
}

fn as_root() -> Fix {
    Fix::Root { or: Some(format!("sudo mount -o remount,mode=755 {}", MOUNT_POINTS[0])) }
}
