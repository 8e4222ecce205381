//! Requests of a page.

use crate::bench::{Bench, START};
use numakit_observation::ObservationStatus;
use numakit_testing::until;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

fn watch(step_ms: u64) -> String {
    json!({"type": "watch", "id": 1, "source": 0, "series": [0, 1], "step_ns": step_ms * 1_000_000, "from_ns": START})
        .to_string()
}

#[test]
fn samples_come_as_buckets_and_as_rows() {
    let bench = Bench::new();
    let mut page = bench.connect(&bench.urls.viewer.clone());
    let hello = page.text("hello");
    assert_eq!((&hello["role"], &hello["protocol"]), (&"viewer".into(), &1.into()));
    assert_eq!(hello["sources"][0]["metrics"][1]["name"], "test.b");
    page.send(&watch(10));
    bench.rows(0, 1001);
    let (mut next, mut frames) = (START / 10_000_000, 0);
    while next < START / 10_000_000 + 100 {
        let frame = page.frame();
        assert_eq!(frame["first"], next, "no bucket is left out");
        next += frame["rows"].as_u64().unwrap();
        frames += 1;
    }
    assert!(frames > 0);
    let fetch = json!({"type": "fetch", "id": 2, "source": 0, "series": [0], "from_ns": START, "to_ns": START + 50_000_000, "buckets": 100});
    page.send(&fetch.to_string());
    let frame = page.frame();
    assert_eq!((&frame["id"], &frame["kind"], &frame["rows"]), (&2.into(), &"raw".into(), &50.into()));
    let cookie = bench.login(&bench.urls.viewer.clone());
    let csv = bench.request("GET /export.csv?series=0,1&rows=2000", &[&cookie], "");
    assert!(csv.body.starts_with("time,test.a,test.b\n1700000000.000000000,0,\n"), "{}", csv.body);
}

#[test]
fn a_viewer_looks_and_a_controller_sends_commands() {
    let bench = Bench::new();
    let (mut viewer, mut controller) =
        (bench.connect(&bench.urls.viewer.clone()), bench.connect(&bench.urls.controller.clone()));
    for order in [
        r#"{"type":"order","id":5,"line":"pause"}"#,
        r#"{"type":"label","id":5,"source":0,"time_ns":1,"text":"x"}"#,
        r#"{"type":"remove_label","id":5,"source":0,"label":0}"#,
    ] {
        viewer.send(order);
        let reply = viewer.text("reply");
        assert_eq!((&reply["id"], &reply["ok"]), (&5.into(), &false.into()), "{order}");
    }
    controller.send(r#"{"type":"order","id":6,"line":"interval 10ms"}"#);
    assert_eq!(controller.text("reply")["text"], "Interval(10ms)");
    controller.send(r#"{"type":"label","id":7,"source":0,"time_ns":1700000000000000000,"text":"phase 2"}"#);
    assert_eq!(controller.text("reply")["ok"], true);
    let seen = std::iter::repeat_with(|| viewer.text("labels")).find(|l| l["all"] == false).unwrap();
    assert_eq!(seen["labels"][0]["text"], "phase 2", "the other page sees it at once");
    controller.send(r#"{"type":"label","id":8,"source":0,"time_ns":1,"text":"numakit:lost 3"}"#);
    assert_eq!(controller.text("reply")["ok"], false);
}

#[test]
fn malformed_messages_get_an_answer() {
    let bench = Bench::new();
    let mut page = bench.connect(&bench.urls.viewer.clone());
    page.send("{");
    assert!(page.text("notice")["text"].as_str().unwrap().contains("invalid message"));
    page.0.send(Message::binary(vec![1, 2, 3])).unwrap();
    assert!(page.text("notice")["text"].as_str().unwrap().contains("binary"));
    for wrong in [
        r#"{"type":"watch","id":3,"source":9,"series":[0],"step_ns":1000000,"from_ns":0}"#,
        r#"{"type":"watch","id":3,"source":0,"series":[0],"step_ns":5,"from_ns":0}"#,
        r#"{"type":"fetch","id":3,"source":0,"series":[2],"from_ns":0,"to_ns":1,"buckets":10}"#,
        r#"{"type":"fetch","id":3,"source":0,"series":[0],"from_ns":0,"to_ns":1,"buckets":4000000000}"#,
    ] {
        page.send(wrong);
        assert_eq!(page.text("reply")["ok"], false, "{wrong}");
    }
    let _ = page.0.send(Message::text("x".repeat(1 << 20)));
    let ended =
        std::iter::repeat_with(|| page.0.read()).find(|r| matches!(r, Ok(Message::Close(_)) | Err(_)));
    assert!(ended.is_some(), "an oversized message ends the connection");
    bench.is_alive();
}

#[test]
fn a_client_that_reads_nothing_does_not_delay_others() {
    let bench = Bench::new();
    let (mut stalled, mut page) =
        (bench.connect(&bench.urls.controller.clone()), bench.connect(&bench.urls.viewer.clone()));
    bench.rows(0, 2000);
    page.send(&watch(1));
    let mut next = START / 1_000_000;
    while next + 1 < START / 1_000_000 + 2000 {
        next += page.frame()["rows"].as_u64().unwrap();
    }
    // 24 large answers, more than its socket and its queue take. Its label comes to the other page when most of them are made.
    let fetch = json!({"type": "fetch", "id": 2, "source": 0, "series": vec![0; 500], "from_ns": START, "to_ns": START + 2_000_000_000, "buckets": 2000});
    (0..24).for_each(|_| stalled.send(&fetch.to_string()));
    stalled.send(r#"{"type":"label","id":3,"source":0,"time_ns":1700000000000000000,"text":"all asked"}"#);
    let label = |message: &serde_json::Value| message["labels"][0]["text"] == "all asked";
    std::iter::repeat_with(|| page.text("labels")).find(label).unwrap();
    for part in 2..7 {
        bench.rows(part * 1000, 1000);
        while next + 1 < START / 1_000_000 + (part + 1) * 1000 {
            let frame = page.frame();
            assert_eq!((&frame["first"], &frame["dropped"]), (&next.into(), &0.into()));
            next += frame["rows"].as_u64().unwrap();
        }
    }
    bench.is_alive();
    let dropped = |frame: serde_json::Value| frame["dropped"].as_u64().unwrap() > 0;
    assert!((0..24).any(|_| dropped(stalled.frame())), "it stalled");
}

#[test]
fn a_failed_recording_is_reported_once() {
    let bench = Bench::new();
    let mut page = bench.connect(&bench.urls.viewer.clone());
    page.text("hello");
    let mut status = ObservationStatus::default();
    for failure in ["the disk is full", "it was removed"] {
        status.failures.push(failure.into());
        (0..3).for_each(|_| bench.status(&status));
        assert_eq!(page.text("notice")["text"], failure);
    }
}

#[test]
fn clients_beyond_the_limit_are_refused_until_others_leave() {
    let bench = Bench::new();
    let url = bench.urls.viewer.clone();
    let mut pages: Vec<_> = (0..16).map(|_| bench.connect(&url)).collect();
    pages.iter_mut().for_each(|page| _ = page.text("hello"));
    assert_eq!(bench.upgrade(&url, &[]).status, 503);
    pages.pop();
    // The server needs time to notice the disconnection.
    until!(pages[0].text("state")["clients"] == 15);
    bench.connect(&url).text("hello");
}

#[test]
fn everybody_may_read_the_guide() {
    let bench = Bench::new();
    let slash = bench.request("GET /guide", &[], "");
    assert!(slash.status == 308 && slash.head.contains("location: /guide/\r\n"), "{}", slash.head);
    let first = bench.request("GET /guide/", &[], "");
    assert!(first.status == 200 && first.body.contains("href=\"run.html\""), "{}", first.body);
    let run = bench.request("GET /guide/run.html", &[], "");
    assert!(run.head.contains("content-type: text/html") && run.body.contains("<h1"), "{}", run.head);
    let style = bench.request("GET /guide/guide.css", &[], "");
    assert!(style.head.contains("content-type: text/css"), "{}", style.head);
    for missing in ["GET /guide/run", "GET /guide/../app.js", "GET /guide/docs/README.md", "GET /guidebook"] {
        assert_eq!(bench.request(missing, &[], "").status, 404, "{missing}");
    }
    assert!(bench.urls.guide.ends_with("/guide/"), "{}", bench.urls.guide);
}
