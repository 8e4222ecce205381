//! Recordings that are opened while the server runs.

use crate::client_request_error::ClientRequestError;
use crate::hub::Hub;
use crate::recordings::{self, PartlyOpened, RecordingError};
use crate::wire::{OpeningInfo, SOURCES};
use numakit_formulas::Catalog;
use numakit_recording::Reader;
use numakit_sys::stdio::note;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A recording that is opened sooner is shown at once.
const FIRST_PART: Duration = Duration::from_millis(300);
/// Pause between two parts that are shown: clients ask again for all that they show. And at least this many times what it
/// takes to show one.
const NEXT_PART: Duration = Duration::from_millis(500);
const PART_COSTS: u32 = 10;

/// Is told what is being opened whenever its percentage changes, and `None` when that ended.
pub type Progress<'a> = &'a mut dyn FnMut(Option<&OpeningInfo>);

/// An error if one of these files cannot be shown. Reads each one up to its first sample only.
pub fn check(files: &[PathBuf]) -> Result<(), RecordingError> {
    if files.len() > SOURCES {
        return Err(ClientRequestError::Sources(SOURCES as u32).into());
    }
    files.iter().try_for_each(|file| {
        let mut reader = Reader::open(file)?;
        while let Some(batch) = reader.next_batch() {
            if batch.label.iter().any(Option::is_none) {
                return Ok(());
            }
        }
        Err(RecordingError::Empty(name_of(file)))
    })
}

/// Opens recordings one after the other, and adds each as a source as soon as a part was read; `stop` ends it.
/// Damage is said to all clients and on standard error.
/// If one fails, all clients get the reason as their last message.
pub fn open_all(
    hub: &Hub,
    files: &[PathBuf],
    formulas: &Arc<Catalog>,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Result<(), RecordingError> {
    hub.set_opening(waiting(files));
    for (at, file) in files.iter().enumerate() {
        let (mut told, mut parts) = (None, Parts::new(hub));
        let mut report = |opened: &PartlyOpened<'_>| {
            let percent = opened.percent();
            parts.show(opened);
            if told.replace(percent) != Some(percent) {
                let now = info(file, percent);
                progress(Some(&now));
                hub.set_opening(std::iter::once(now).chain(waiting(&files[at + 1..])).collect());
            }
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let name = name_of(file);
        let opened = recordings::read_while(file, &name, hub.budget, formulas, &mut report);
        let damage = opened.as_ref().ok().and_then(|opened| opened.as_ref()?.damage.clone());
        let added =
            opened.and_then(|opened| opened.map(|opened| recordings::put(hub, parts.id, opened)).transpose());
        progress(None);
        if let Some(damage) = damage {
            note(damage);
        }
        match added {
            Ok(Some(_)) => hub.set_opening(waiting(&files[at + 1..])),
            Ok(None) => return Ok(()),
            Err(error) => {
                hub.close(&error.to_string());
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Shows what was read of a recording while the rest is read.
struct Parts<'a> {
    hub: &'a Hub,
    /// Its number, once a part is shown.
    id: Option<u32>,
    /// When the next part is shown.
    next: Instant,
}

impl<'a> Parts<'a> {
    fn new(hub: &'a Hub) -> Self {
        Self { hub, id: None, next: Instant::now() + FIRST_PART }
    }

    fn show(&mut self, opened: &PartlyOpened<'_>) {
        let begin = Instant::now();
        if begin < self.next {
            return;
        }
        if let Some(part) = opened.so_far() {
            // Where there is no room for it, the whole recording says so.
            self.id = recordings::put(self.hub, self.id, part).ok().or(self.id);
        }
        self.next = Instant::now() + NEXT_PART.max(begin.elapsed() * PART_COSTS);
    }
}

/// These recordings, of which nothing was read yet.
pub fn waiting(files: &[PathBuf]) -> Vec<OpeningInfo> {
    files.iter().map(|file| info(file, 0)).collect()
}

fn info(file: &Path, percent: u8) -> OpeningInfo {
    OpeningInfo { name: name_of(file), percent }
}

fn name_of(file: &Path) -> String {
    file.display().to_string()
}

/// A thread that opens recordings. It ends when this is dropped.
pub struct Opener {
    thread: Option<JoinHandle<Result<(), RecordingError>>>,
    stop: Arc<AtomicBool>,
}

impl Opener {
    /// Starts to open these files as [`open_all`] does.
    pub fn start(
        hub: Arc<Hub>,
        files: Vec<PathBuf>,
        formulas: Arc<Catalog>,
        mut progress: impl FnMut(Option<&OpeningInfo>) + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("open".into())
            .spawn(move || open_all(&hub, &files, &formulas, &stopped, &mut progress))?;
        Ok(Self { thread: Some(thread), stop })
    }

    /// The error of a recording that could not be opened, once there is one.
    pub fn check(&mut self) -> Result<(), RecordingError> {
        match self.thread.take_if(|thread| thread.is_finished()).map(JoinHandle::join) {
            Some(Ok(Err(error))) => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
