//! What observing a process costs: `task_cost PID`. Prints the time of a read and the CPU time of the
//! thread that walks the process.
#![allow(clippy::print_stdout)]

use numakit_sensors::{SENSORS, Scene, Target, Tick};
use numakit_sys::{SysRoot, clock};
use std::time::Duration;

fn main() -> Result<(), String> {
    let word = std::env::args().nth(1).unwrap_or_default();
    let pid = word.parse().map_err(|_| format!("give the PID of a process, not '{word}'"))?;
    let root = SysRoot::host();
    let topology = numakit_topology::read(&root).map_err(|e| e.to_string())?;
    let target = Target::running(pid);
    let scene = Scene::new(&root, &topology).observing(Some(&target));
    let entry = SENSORS.iter().find(|e| e.name == "task").ok_or("there is no sensor 'task'")?;
    let mut sensor = (entry.probe)(&scene).map_err(|why| why.to_string())?;
    let mut out = vec![None; sensor.series().len()];
    let mut spent = 0;
    let started = clock::monotonic();
    const READS: u64 = 1000;
    for _ in 0..READS {
        std::thread::sleep(Duration::from_millis(10));
        out.fill(None);
        let tick = Tick { woke: clock::monotonic(), ..Tick::default() };
        let start = clock::thread_cpu();
        sensor.read(&tick, &mut out);
        spent += clock::thread_cpu() - start;
    }
    let elapsed = clock::monotonic() - started;
    println!("read: {} ns on average of {READS}", spent / READS);
    for (series, value) in sensor.series().iter().zip(&out) {
        if ["task.walk_time", "task.walk_age", "task.walk_cpu", "task.resident@node0"]
            .contains(&series.name().as_str())
        {
            println!("{} {value:?} {}", series.name(), series.metric.unit);
        }
    }
    println!("over {} ms; {:?}", elapsed / 1_000_000, sensor.failure());
    Ok(())
}
