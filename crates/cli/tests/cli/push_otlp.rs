//! What a collector of OpenTelemetry is sent, decoded by the official messages.

use crate::export::python;
use crate::runner::Folder;
use crate::scripted::{Scripted, answer};

pub const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/check_push.py");

#[test]
fn a_collector_gets_sums_and_gauges_of_every_value() {
    let folder = Folder::new("push-otlp");
    folder.run("record -i 1ms -o a.arrows -- sleep 1").says(0, "");
    let collector = Scripted::start(|_, _, to| answer(to, "200 OK", b""));
    folder.run(&format!("push a.arrows --to otlp+http://{}", collector.address)).says(0, "");
    let asked = collector.asked();
    assert!(asked.len() > 1, "a sum goes on in the next request: {}", asked.len());
    std::fs::create_dir(folder.path("bodies")).unwrap();
    for (number, asked) in asked.iter().enumerate() {
        assert!(asked.head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{}", asked.head);
        assert!(asked.head.contains("content-type: application/x-protobuf\r\n"), "{}", asked.head);
        std::fs::write(folder.path(&format!("bodies/{number:04}")), &asked.body).unwrap();
    }
    let Some(done) = python(&folder, &[CHECK, "otlp", "a.arrows", "bodies"]) else { return };
    assert!(done.code == 0, "{}{}", done.out, done.err);
    println!("{}", done.out.trim_end());
}

/// A collector that takes a request may still refuse points of it.
#[test]
fn points_that_a_collector_refuses_are_counted_with_its_reason() {
    let folder = Folder::new("push-otlp-refused");
    folder.run("record -i 10ms -e vmstat -o a.arrows -- sleep 0.2").says(0, "");
    // ExportMetricsServiceResponse { partial_success { rejected_data_points: 7, error_message: "too\nold" } }.
    let partial = b"\x0a\x0b\x08\x07\x12\x07too\nold";
    let collector = Scripted::start(|_, _, to| answer(to, "200 OK", partial));
    let done = folder.run(&format!("push a.arrows --to otlp+http://{}", collector.address));
    done.says(1, "");
    assert!(done.out.contains("1 request\n  7 values refused: too old\n"), "{}", done.out);
}
