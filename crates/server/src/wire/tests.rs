use super::*;
use crate::standalone::{Contained, ContainedComparison, Contents, Stretch};
use std::path::Path;

fn declaration<T: TS>() -> String {
    let doc = T::docs().unwrap_or_default();
    // All JSON numbers are `number` in TypeScript.
    let config = ts_rs::Config::new().with_large_int("number");
    format!("\n{doc}export {}\n", T::decl(&config))
}

macro_rules! declarations { ($($t:ty),* $(,)?) => { [$(declaration::<$t>()),*].concat() } }

/// A generated file of the page: its imports and its declarations.
fn generated(from: &str, imports: &str, declarations: &str) -> String {
    format!(
        "// Generated from crates/server/src/{from}; do not edit. To update it:\n\
         // UPDATE=1 cargo test -p numakit-server wire\n{imports}{declarations}"
    )
}

fn findings() -> String {
    let imports = "\nimport type { Ns } from \"./wire\";\n";
    let declared = declarations!(RangeFindings, FindingInfo, EvidenceInfo, UntoldInfo);
    generated("wire/findings.rs", imports, &declared)
}

fn compared() -> String {
    let imports = "\nimport type { Ns } from \"./wire\";\n";
    generated("wire/compared.rs", imports, &declarations!(ComparedRange, ComparedInfo, DifferenceInfo))
}

fn processes() -> String {
    let imports = "\nimport type { Ns } from \"./wire\";\n";
    generated("wire/processes.rs", imports, &declarations!(ProcessList, ProcessInfo, MemoryUnknown))
}

fn messages() -> String {
    let declared = declarations!(
        Ns,
        Role,
        SourceKind,
        MetricInfo,
        FormulaInfo,
        AbsentInfo,
        SourceInfo,
        OpeningInfo,
        RecordingState,
        HistoryState,
        SensorState,
        ObservationState,
        WireLabel,
        ClientLimits,
        FromServer,
        ToServer,
        Login,
        LoggedIn,
        What,
        ColumnType,
        FrameColumn,
        FrameKind,
        FrameHeader,
        Stretch,
        Contained,
        ContainedComparison,
        Contents,
    );
    let imports = "\nimport type { ComparedInfo, ComparedRange } from \"./wire-compared\";\n\
                   import type { RangeFindings } from \"./wire-findings\";\n\
                   import type { ProcessList } from \"./wire-processes\";\n";
    generated("wire.rs", imports, &declared)
}

#[test]
fn the_page_has_these_types() {
    let files = [
        ("wire.ts", messages()),
        ("wire-compared.ts", compared()),
        ("wire-findings.ts", findings()),
        ("wire-processes.ts", processes()),
    ];
    for (file, text) in files {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src").join(file);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(there == text, "web/src/{file} is stale; run: UPDATE=1 cargo test -p numakit-server wire");
    }
}

#[test]
fn messages_are_parsed() {
    let watch =
        br#"{"type":"watch","id":1,"source":0,"series":[3,4],"step_ns":1e8,"from_ns":1763690400000000000}"#;
    let expected = ToServer::Watch {
        id: 1,
        source: 0,
        series: vec![3, 4],
        step_ns: Ns(100_000_000),
        from_ns: Ns(1_763_690_400_000_000_000),
        partial: false,
    };
    assert_eq!(ToServer::parse(watch).unwrap(), expected);
    let order = br#"{"type":"order","id":7,"line":"interval 10ms"}"#;
    let expected = ToServer::Order { id: 7, line: "interval 10ms".into() };
    assert_eq!(ToServer::parse(order).unwrap(), expected);
}

#[test]
fn malformed_messages_are_errors_with_a_message() {
    for bad in [
        &b""[..],
        b"{}",
        b"[]",
        b"\xff",
        br#"{"type":"reboot","id":1}"#,
        br#"{"type":"unwatch"}"#,
        br#"{"type":"unwatch","id":-1}"#,
        br#"{"type":"watch","id":1,"source":0,"series":["x"],"step_ns":1,"from_ns":1}"#,
    ] {
        let error = ToServer::parse(bad).unwrap_err().to_string();
        assert!(error.starts_with("invalid message: "), "{error}");
    }
    let long = ToServer::parse(&vec![b' '; MESSAGE_BYTES + 1]).unwrap_err().to_string();
    assert!(long.contains("the limit is"), "{long}");
    assert!(ToServer::parse("[".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn times_are_whole_and_never_negative() {
    let time = |text: &str| serde_json::from_str::<Ns>(text).map(|n| n.0).ok();
    assert_eq!(time("1763690400000000001"), Some(1_763_690_400_000_000_001));
    assert_eq!(time("1.4"), Some(1));
    assert_eq!(time("-5"), Some(0));
    assert_eq!(time("1e300"), Some(u64::MAX));
    assert_eq!(time("\"1\""), None);
}

#[test]
fn the_state_is_flat() {
    let text = FromServer::State(ObservationState::default()).text();
    assert!(
        text.starts_with(r#"{"type":"state","interval_ns":0,"paused":false,"ended":false,"recording":null"#),
        "{text}"
    );
}
