//! `POST /recordings`: adds an uploaded recording as a source.

use crate::http::{HttpRefusal, HttpResponse, respond};
use crate::hub::Hub;
use crate::recordings;
use crate::wire::RECORDING_BYTES;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::{Request, StatusCode};
use numakit_formulas::Catalog;
use numakit_sys::file;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// Maximum wait for the next piece.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of uploads at once.
const AT_ONCE: u32 = 2;
/// Bytes that are written at once.
const WRITTEN: usize = 1 << 20;
static SENDING: AtomicU32 = AtomicU32::new(0);

/// The received data: a file without a name, so that nothing is left when this process is killed.
struct Received {
    file: File,
    waiting: Vec<u8>,
    failure: Option<io::Error>,
}

impl Received {
    fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self { file: file::create_unnamed(folder)?, waiting: Vec::new(), failure: None })
    }

    /// Adds a piece. Another thread writes the waiting pieces once they are large. After a failure
    /// the rest is discarded: a browser reads the answer only after it has sent everything.
    async fn add(&mut self, piece: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        self.waiting.extend_from_slice(piece);
        if self.waiting.len() >= WRITTEN
            && let Err(error) = self.write().await
        {
            let _ = self.file.set_len(0);
            self.failure = Some(error);
        }
    }

    /// The complete file.
    async fn finish(mut self) -> io::Result<File> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => self.write().await.map(|()| self.file),
        }
    }

    async fn write(&mut self) -> io::Result<()> {
        let (mut file, bytes) = (self.file.try_clone()?, std::mem::take(&mut self.waiting));
        tokio::task::spawn_blocking(move || file.write_all(&bytes)).await.map_err(io::Error::other)?
    }
}

/// Counts running uploads.
struct UploadSlot;

impl UploadSlot {
    fn take() -> Option<Self> {
        let more = |n| (n < AT_ONCE).then_some(n + 1);
        SENDING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok().then_some(Self)
    }
}

impl Drop for UploadSlot {
    fn drop(&mut self) {
        SENDING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Receives a recording, and adds it under the name in `?name=`.
pub async fn take(
    hub: &Arc<Hub>,
    formulas: &Arc<Catalog>,
    request: Request<Incoming>,
) -> Result<HttpResponse, HttpRefusal> {
    let name = name(request.uri().query().unwrap_or_default());
    let too_large = || {
        let why = format!(
            "the limit for uploads is {} MiB; use 'numa show --page FILE' for a larger recording",
            RECORDING_BYTES >> 20
        );
        HttpRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, why)
    };
    if request.body().size_hint().lower() > RECORDING_BYTES {
        return Err(too_large());
    }
    hub.check_opened().map_err(|error| HttpRefusal::new(StatusCode::CONFLICT, error.to_string()))?;
    let Some(_slot) = UploadSlot::take() else {
        let why = "too many uploads at once; try again later";
        return Err(HttpRefusal::new(StatusCode::TOO_MANY_REQUESTS, why));
    };
    let folder = std::env::temp_dir();
    let failed = |error: io::Error| {
        let why = format!(
            "cannot store the recording in {}: {error}; free some space there, or start numa with TMPDIR set to another folder",
            folder.display()
        );
        HttpRefusal::new(StatusCode::INSUFFICIENT_STORAGE, why)
    };
    let mut received = Received::new(&folder).map_err(failed)?;
    let (mut body, mut bytes) = (request.into_body(), 0);
    while let Some(frame) = timeout(PATIENCE, body.frame()).await.map_err(|_| {
        HttpRefusal::new(StatusCode::REQUEST_TIMEOUT, "timed out while receiving the file; try again")
    })? {
        let frame = frame.map_err(|e| {
            HttpRefusal::new(StatusCode::BAD_REQUEST, format!("the upload was interrupted: {e}"))
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        bytes += piece.len() as u64;
        if bytes > RECORDING_BYTES {
            return Err(too_large());
        }
        received.add(&piece).await;
    }
    let received = received.finish().await.map_err(failed)?;
    let (hub, formulas) = (Arc::clone(hub), Arc::clone(formulas));
    let opened = tokio::task::spawn_blocking(move || {
        let path = file::path_of(&received);
        let opened = recordings::open_sent(&hub, &path, &name, &formulas);
        let hidden = path.display().to_string();
        if opened.is_ok() {
            // Details are read from it when a user zooms.
            hub.keep(Box::new(received));
        }
        opened.map_err(|error| error.to_string().replace(&hidden, &name))
    });
    match opened.await.unwrap_or_else(|_| Err("reading the recording failed".into())) {
        Ok(id) => Ok(respond(StatusCode::OK, "application/json", format!("{{\"source\":{id}}}"))),
        Err(why) => Err(HttpRefusal::new(StatusCode::UNPROCESSABLE_ENTITY, why)),
    }
}

/// Its display name.
fn name(query: &str) -> String {
    let given = query.split('&').find_map(|pair| pair.strip_prefix("name=")).unwrap_or_default();
    let plain: String = percent_decoded(given).chars().filter(|c| !c.is_control()).take(100).collect();
    if plain.is_empty() { "recording".into() } else { plain }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let digit = |at: usize| more.get(at).and_then(|b| char::from(*b).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &more[2..];
            }
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_text() {
        assert_eq!(name("name=a%20b.arrows&x=1"), "a b.arrows");
        assert_eq!(name("name=%1b%00"), "recording");
        assert_eq!(name("name=%c3%a4%"), "\u{e4}%");
        assert_eq!(name(""), "recording");
    }
}
