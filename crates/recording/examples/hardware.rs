//! The cost of hundreds of hardware counters on a simulated machine of eight packages,
//! and the part of it that its script spends in reads.
//!
//! Usage: hardware SECONDS. Samples at 100 Hz and prints `name value` lines; times are CPU time
//! of this process per sample.
#![allow(clippy::print_stdout)]

use numakit_model::CpuSet;
use numakit_recording::{Priority, Ring, Sampler, Settings};
use numakit_sensors::{Probe, Scene, Selection};
use numakit_sys::{SysRoot, clock};
use numakit_testing::counters::{MEASURED, Script};
use numakit_testing::machines;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

const DESCRIPTION: &str = include_str!("../../../tests/testing/data/machines/sapphire-rapids.txt");
/// Links and memory controllers.
const EVENTS: &str = "uncore.link*,uncore.upi.*,uncore.dram*,uncore.pmem*,uncore.imc.*";
const INTERVAL: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: u64 = std::env::args().nth(1).ok_or("usage: hardware SECONDS")?.parse()?;
    let machine = machines::parse(&DESCRIPTION.replace("package:2 ", "package:8 "))?;
    let script = Script::in_real_time();
    for pmu in &machine.pmus {
        script.pmu(pmu.kind, pmu.counters, &pmu.cpus.to_string());
    }
    let packages: Vec<CpuSet> = machine.topology.packages.iter().map(|p| p.cpus.clone()).collect();
    script.costs(&packages, MEASURED);
    let root = SysRoot::of_tree(machine.tree).with_counters(Arc::new(script.clone()));
    let selection: Selection = EVENTS.parse()?;
    let sensors = Probe::new(&Scene::new(&root, &machine.topology)).select(&selection)?;
    let series: usize = sensors.iter().map(|s| s.series().len()).sum();

    let ring = Arc::new(Ring::in_memory(series, 100_000)?);
    let settings = Settings { interval: INTERVAL, cpus: CpuSet::new(), priority: Priority::Normal };
    let sampler = Sampler::start(sensors, settings, vec![ring])?;
    // The first sample opens everything.
    std::thread::sleep(Duration::from_millis(500));
    let before = (clock::process_cpu(), script.spent(), script.reads(), sampler.state().samples());
    std::thread::sleep(Duration::from_secs(seconds));
    let samples = (sampler.state().samples() - before.3) as f64;
    println!("series {series}");
    println!("groups {}", (script.reads() - before.2) as f64 / samples);
    println!("samples {samples}");
    println!("lost {}", sampler.state().lost());
    println!("scripted_us {}", (script.spent() - before.1) as f64 / 1e3 / samples);
    println!("process_us {}", (clock::process_cpu() - before.0) as f64 / 1e3 / samples);
    Ok(())
}
