use crate::{SensorEntry, keyed_file};

pub const ENTRY: SensorEntry = keyed_file! {
    name: "meminfo",
    help: "Memory of the whole machine.",
    path: "/proc/meminfo",
    names: "meminfo.txt",
};
