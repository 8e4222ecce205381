//! Headers of generated machines, for unit tests.

use crate::machine::MachineMeters;
use numakit_formulas::Catalog;
use numakit_recording::Header;
use numakit_sensors::{Probe, Scene};
use numakit_sys::SysRoot;
use numakit_testing::sysfs;
use numakit_topology::synthetic;

/// The header of a machine of that description, with the series of its files.
pub fn header(description: &str) -> Header {
    let topology = synthetic::parse(description).unwrap();
    let root = SysRoot::of_tree(sysfs::tree(&topology));
    let scene = Scene::new(&root, &topology);
    let probe = Probe::new(&scene);
    let series = probe.sensors.iter().flat_map(|sensor| sensor.series().iter().cloned()).collect();
    Header {
        series,
        topology: Some(topology),
        host: "box".into(),
        page_size: 4096,
        interval: 1_000_000_000,
        ..Header::default()
    }
}

/// Its machine.
pub fn machine_of(header: &Header) -> MachineMeters {
    MachineMeters::new(header, Catalog::built_in())
}
