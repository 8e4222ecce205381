use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

/// A file with this content and mode, removed when it is dropped.
struct Secret(PathBuf);

impl Secret {
    fn new(name: &str, content: &str, mode: u32) -> Self {
        let path = std::env::temp_dir().join(format!("numakit-scraping-{name}-{}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Self(path)
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

struct Text;

impl Scraped for Text {
    fn is_ready(&self) -> bool {
        true
    }

    fn text(&self, accept: Option<&str>) -> Option<(&'static str, Arc<[u8]>)> {
        let kind = if accept == Some("new") { "application/new" } else { "text/old" };
        Some((kind, Arc::from(&b"a 1\n"[..])))
    }
}

fn served(access: ScrapeAccess) -> (ScrapeServer, SocketAddr) {
    let listener = ScrapeListener::bind("127.0.0.1:0", None, access, false).unwrap();
    let address = listener.address;
    (listener.start(Arc::new(Text), CpuSet::new()).unwrap(), address)
}

fn ask(at: SocketAddr, line: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    write!(stream, "{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

const HERE: &str = "Host: localhost:9477\r\n";

#[test]
fn scrapes_and_health_are_answered_and_all_else_is_refused() {
    let (server, at) = served(ScrapeAccess::default());
    let answer = ask(at, "GET /metrics", HERE);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\na 1\n"), "{answer}");
    assert!(ask(at, "GET /metrics", &format!("{HERE}Accept: new\r\n")).contains("application/new"));
    for (line, headers, status) in [
        ("GET /-/healthy", HERE, 200),
        ("GET /-/ready", HERE, 200),
        ("HEAD /metrics", HERE, 200),
        ("GET /", HERE, 200),
        ("GET /other", HERE, 404),
        ("POST /metrics", HERE, 405),
        ("GET /metrics", "Host: evil.example\r\n", 421),
        ("GET /metrics", "", 421),
    ] {
        let answer = ask(at, line, headers);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {answer}");
    }
    drop(server);
    assert!(TcpStream::connect(at).is_err(), "it has ended");
}

#[test]
fn a_token_or_password_is_needed_where_there_is_one() {
    let token = Secret::new("token", "0123456789abcdef0\n", 0o600);
    let password = Secret::new("password", "anna:s:ecret\n", 0o640);
    let (_server, at) = served(ScrapeAccess::read(Some(&token.0), Some(&password.0)).unwrap());
    let status = |line: &str| {
        let answer = ask(at, "GET /metrics", &format!("Host: other.example\r\n{line}"));
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    for (line, expected) in [
        ("", "401"),
        ("Authorization: Bearer 0123456789abcdef0\r\n", "200"),
        ("Authorization: bearer 0123456789abcdef1\r\n", "401"),
        ("Authorization: Basic YW5uYTpzOmVjcmV0\r\n", "200"),
        ("Authorization: Basic YW5uYTpzOmVjcmV1\r\n", "401"),
        ("Authorization: Digest x\r\n", "401"),
    ] {
        assert_eq!(status(line), expected, "{line}");
    }
    assert!(ask(at, "GET /metrics", HERE).contains("www-authenticate: Basic"));
    assert!(ask(at, "GET /-/healthy", HERE).starts_with("HTTP/1.1 200 "));
}

#[test]
fn bad_files_of_secrets_are_refused_without_telling_them() {
    let error = |content: &str, mode, is_token: bool| {
        let file = Secret::new("bad", content, mode);
        let path = Some(file.0.as_path());
        let read = if is_token { ScrapeAccess::read(path, None) } else { ScrapeAccess::read(None, path) };
        read.unwrap_err().to_string()
    };
    assert!(error("0123456789abcdef", 0o644, true).contains("run chmod o="));
    for bad in ["", "short", "0123456789 abcdef", "0123456789abcdef\nsecond"] {
        let said = error(bad, 0o600, true);
        assert!(said.starts_with("--token-file ") && said.contains("openssl rand -hex 16"), "{said}");
    }
    for bad in ["", "anna", ":x", "anna:", "a\x1b:b"] {
        assert!(error(bad, 0o600, false).contains("USER:PASSWORD"), "{bad}");
    }
    let missing = ScrapeAccess::read(Some(Path::new("/nonexistent/token")), None).unwrap_err();
    assert!(missing.to_string().contains("No such file"), "{missing}");
    assert!(error(&"x".repeat(5000), 0o600, true).contains("4096"));
}

#[test]
fn other_hosts_are_served_only_if_something_says_who_may() {
    let open = |access, insecure| ScrapeListener::bind("0.0.0.0:0", None, access, insecure);
    let said = open(ScrapeAccess::default(), false).unwrap_err().to_string();
    assert!(said.contains("--insecure") && said.contains("--listen 127.0.0.1:"), "{said}");
    assert!(open(ScrapeAccess::default(), true).is_ok());
    let token = Secret::new("open", "0123456789abcdef", 0o400);
    assert!(open(ScrapeAccess::read(Some(&token.0), None).unwrap(), false).is_ok());
}

/// More connections than the limit: the oldest are closed, and the newest is answered.
#[test]
fn a_storm_of_connections_is_bounded_and_the_next_scrape_is_answered() {
    let (_server, at) = served(ScrapeAccess::default());
    let idle: Vec<TcpStream> = (0..300).filter_map(|_| TcpStream::connect(at).ok()).collect();
    assert!(idle.len() > 256, "{}", idle.len());
    assert!(ask(at, "GET /metrics", HERE).ends_with("a 1\n"));
    let closed = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        matches!(stream.read(&mut [0]), Ok(0))
    };
    numakit_testing::until!(idle.iter().filter(|stream| closed(stream)).count() >= idle.len() - 256);
    // The server closes the connection before it has read all, so the kernel may throw its answer away.
    let mut stream = TcpStream::connect(at).unwrap();
    let mut answer = String::new();
    let _ = write!(stream, "GET /{} HTTP/1.1\r\n{HERE}\r\n", "x".repeat(64 << 10));
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert!(ask(at, "GET /metrics", HERE).ends_with("a 1\n"));
}
