//! Certificates, passwords and tokens of engines: what is wrong has its sentence, and no secret is shown.

use crate::runner::{Done, Folder};
use crate::scripted::{Scripted, answer, tls_file};

/// A recording, and files with secrets.
fn prepared(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.run("record -i 10ms -e vmstat.pgfault -o a.arrows -- sleep 0.1").says(0, "");
    std::fs::write(folder.path("password"), "numa:correct horse\n").unwrap();
    std::fs::write(folder.path("wrong"), "numa:battery staple\n").unwrap();
    std::fs::write(folder.path("token"), "s3cr3t-t0k3n\n").unwrap();
    folder
}

/// Nothing that was printed has a part of a secret.
fn is_silent(done: &Done) {
    for secret in ["correct horse", "battery staple", "s3cr3t", "bnVtYT"] {
        assert!(!done.out.contains(secret) && !done.err.contains(secret), "{}{}", done.out, done.err);
    }
}

#[test]
fn a_certificate_is_accepted_only_for_its_name_its_time_and_its_authority() {
    let folder = prepared("push-tls");
    let [ca, other] = ["ca.pem", "other-ca.pem"].map(|name| tls_file(name).display().to_string());
    for (certificate, authority, code, says) in [
        ("engine.pem", &ca, 0, ""),
        (
            "engine.pem",
            &other,
            2,
            "no known authority has signed its certificate; give the file of its authority with --ca",
        ),
        ("expired.pem", &ca, 2, "its certificate has expired; renew it, or correct the clock"),
        ("elsewhere.pem", &ca, 2, "write a name that it has: "),
    ] {
        let engine = Scripted::with_tls(certificate, |_, _, to| answer(to, "204 No Content", b""));
        let url = format!("influxdb1+https://localhost:{}?db=d", engine.address.port());
        let done = folder.run(&format!("push a.arrows --to {url} --ca {authority}"));
        done.says(code, says);
        assert_eq!(engine.asked().is_empty(), code != 0, "nothing is sent to an engine that is not trusted");
        if code != 0 {
            let fetch = format!("fetch {url} --host h --from 1h -o b.arrows --ca {authority}");
            folder.run(&fetch).says(2, says);
        }
    }
    let plain = Scripted::start(|_, _, to| answer(to, "204 No Content", b""));
    let port = plain.address.port();
    let says = "it does not speak TLS; check the port, or write +http:";
    folder
        .run(&format!("push a.arrows --to influxdb1+https://localhost:{port}?db=d --ca {ca}"))
        .says(2, says);
    let secured = Scripted::with_tls("engine.pem", |_, _, to| answer(to, "204 No Content", b""));
    let url = format!("influxdb1+http://{}?db=d", secured.address);
    folder.run(&format!("push a.arrows --retry-for 0s --to {url}")).says(2, "does not speak HTTP");
    for (file, says) in [("none", "give a file in PEM form with --ca"), ("token", "has no certificates")] {
        folder
            .run(&format!("push a.arrows --to influxdb1+https://localhost:1?db=d --ca {file}"))
            .says(2, says);
    }
}

#[test]
fn engines_get_passwords_and_tokens_as_they_want_them() {
    let folder = prepared("push-secrets");
    for (url, option, header) in [
        (
            "influxdb1+http://ADDRESS?db=d",
            "--password-file password",
            "authorization: Basic bnVtYTpjb3JyZWN0IGhvcnNl\r\n",
        ),
        (
            "influxdb2+http://ADDRESS?org=o&bucket=b",
            "--token-file token",
            "authorization: Token s3cr3t-t0k3n\r\n",
        ),
        ("prometheus+http://ADDRESS", "--token-file token", "authorization: Bearer s3cr3t-t0k3n\r\n"),
        ("otlp+http://ADDRESS", "--token-file token", "authorization: Bearer s3cr3t-t0k3n\r\n"),
        (
            "clickhouse+http://ADDRESS",
            "--password-file password",
            "authorization: Basic bnVtYTpjb3JyZWN0IGhvcnNl\r\n",
        ),
    ] {
        let engine = Scripted::start(|_, _, to| answer(to, "204 No Content", b""));
        let url = url.replace("ADDRESS", &engine.address.to_string());
        let done = folder.run(&format!("push a.arrows --to {url} {option}"));
        done.says(0, "");
        is_silent(&done);
        let asked = engine.asked();
        assert!(
            !asked.is_empty() && asked.iter().all(|asked| asked.head.contains(header)),
            "{url}: {}",
            asked[0].head
        );
    }
}

#[test]
fn an_engine_that_refuses_credentials_is_not_asked_again_and_repeats_no_secret() {
    let folder = prepared("push-denied");
    for (option, status, says) in [
        ("--password-file wrong", "401 Unauthorized", "check --password-file or --token-file"),
        ("--token-file token", "403 Forbidden", "check --password-file or --token-file"),
        ("", "401 Unauthorized", "check --password-file or --token-file"),
        ("", "404 Not Found", "check the port and the path of the address"),
        ("", "307 Temporary Redirect", "write the address that it redirects to"),
    ] {
        // An engine that says what it got.
        let engine = Scripted::start(move |_, asked, to| {
            let got = asked.head.lines().find(|line| line.starts_with("authorization")).unwrap_or("nothing");
            answer(to, status, format!("got '{got}' with 'battery staple'").as_bytes())
        });
        let url = format!("prometheus+http://{}", engine.address);
        let done = folder.run(&format!("push a.arrows --to {url} {option}"));
        done.says(2, says);
        assert!(done.err.contains(&format!("status {}: got", &status[..3])), "{}", done.err);
        assert_eq!(engine.asked().len(), 1, "{option}");
        if option.is_empty() {
            continue;
        }
        let fetched = folder.run(&format!("fetch {url} --host h --from 1h -o b.arrows {option}"));
        fetched.says(2, "check the address, --password-file and --token-file");
        if option.contains("wrong") {
            is_silent(&done);
            is_silent(&fetched);
        } else {
            assert!(
                !done.err.contains("s3cr3t") && !fetched.err.contains("s3cr3t"),
                "{}{}",
                done.err,
                fetched.err
            );
        }
    }
    // While samples are taken, rows wait until somebody has repaired it.
    let engine = Scripted::start(|_, _, to| answer(to, "401 Unauthorized", b""));
    let url = format!("prometheus+http://{}", engine.address);
    let line = format!(
        "record -i 20ms -e vmstat --spool spool --to {url} --password-file wrong -o b.arrows -- sleep 0.5"
    );
    let done = folder.run(&line);
    done.says(0, "rows not sent: status 401; check --password-file");
    // It is said at once, and once, and counts as an outage.
    assert_eq!(done.err.matches("; trying again").count(), 1, "{}", done.err);
    assert!(done.err.contains("1 outage"), "{}", done.err);
    is_silent(&done);
}
