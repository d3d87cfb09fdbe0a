//! Recording a capture beside the data path.
//!
//! The caller encodes each frame into a batch of bytes; a thread swaps the
//! batch with its own empty one and writes it out. Two buffers go back and
//! forth, so recording allocates nothing once both have grown.
//!
//! ```text
//! record() --> batch (at most QUEUE_LEN bytes) <-- swap --> thread --> output
//! ```

use core::time::Duration;
use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::block::{self, Record};
use super::{CaptureInfo, Direction, InterfaceId};
use crate::time::Instant;

/// The most bytes that wait for the thread.
const QUEUE_LEN: usize = 4 << 20;
/// The thread is woken when this many bytes wait...
const WRITE_LEN: usize = 256 << 10;
/// ...and looks by itself this often, so that a slow capture can be watched.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);

/// What happens to a frame when the queue to the thread is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueuePolicy {
    /// The caller waits: nothing is lost. For the exact clocks.
    Lossless,
    /// The frame is not recorded, but counted: the caller never waits for the
    /// output. For the wall clock.
    Bounded,
}

/// How a capture went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CaptureSummary {
    /// Frames recorded.
    pub packets: u64,
    /// Frames left out.
    pub dropped: u64,
}

/// A capture that a thread writes, so that a slow disk holds up the data path
/// either not at all or no longer than it must ([`QueuePolicy`]).
///
/// What was recorded reaches the output within a tenth of a second, and in any
/// case by [`Self::finish`] or when this value is dropped.
// spec: RC-6
#[derive(Debug)]
pub struct CaptureFile {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    policy: QueuePolicy,
    info: CaptureInfo,
    interfaces: u32,
    summary: CaptureSummary,
}

impl CaptureFile {
    /// Creates the file `path`, replacing one that is there.
    ///
    /// # Errors
    /// When the file cannot be created or the thread cannot be started.
    pub fn create(path: &Path, info: &CaptureInfo, policy: QueuePolicy) -> io::Result<Self> {
        Self::to_writer(File::create(path)?, info, policy)
    }

    /// Records to `out`, for example a pipe to a capture tool.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn to_writer<W>(out: W, info: &CaptureInfo, policy: QueuePolicy) -> io::Result<Self>
    where
        W: Write + Send + 'static,
    {
        let queue = Arc::new(Queue::new());
        block::put_section_header(&mut queue.lock().batch, &[info.comment()]);
        let shared = Arc::clone(&queue);
        let thread = thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || write_batches(&shared, out))?;
        let (info, summary) = (info.clone(), CaptureSummary::default());
        Ok(Self { queue, thread: Some(thread), policy, info, interfaces: 0, summary })
    }

    /// Adds an Ethernet interface; never dropped, never waits.
    pub fn add_interface(&mut self, name: &str) -> InterfaceId {
        block::put_interface(&mut self.queue.lock().batch, &self.info.interface(name));
        self.interfaces += 1;
        InterfaceId(self.interfaces - 1)
    }

    /// Records a frame that passed `interface` at `at`, cut to the snap length.
    /// A comment longer than 65,535 bytes is cut.
    ///
    /// The frame counts as dropped when the queue is full ([`QueuePolicy::Bounded`]),
    /// after the output has failed, and when `interface` is not of this capture.
    // spec: RC-6
    pub fn record(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        direction: Direction,
        frame: &[u8],
        comment: Option<&str>,
    ) {
        let record = self.info.record(interface, at, direction, frame, comment);
        if interface.0 < self.interfaces && self.queue.push(&record, self.policy) {
            self.summary.packets += 1;
        } else {
            self.summary.dropped += 1;
        }
    }

    /// How many frames were left out so far.
    pub fn dropped(&self) -> u64 {
        self.summary.dropped
    }

    /// Writes all that waits and closes the output.
    ///
    /// # Errors
    /// The first error of the output; what it took before stays readable.
    pub fn finish(mut self) -> io::Result<CaptureSummary> {
        self.close()?;
        Ok(self.summary)
    }

    fn close(&mut self) -> io::Result<()> {
        self.queue.close();
        let joined = self.thread.take().map_or(Ok(()), JoinHandle::join);
        if joined.is_err() {
            return Err(io::Error::other("the output panicked"));
        }
        self.queue.lock().error.take().map_or(Ok(()), Err)
    }
}

impl Drop for CaptureFile {
    /// Writes all that waits; errors are lost, [`Self::finish`] tells them.
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// What the caller and the thread share.
#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    /// Signals the thread: enough waits, or the capture is closed.
    filled: Condvar,
    /// Signals the caller: there is room, or the thread has ended.
    emptied: Condvar,
}

#[derive(Debug)]
struct State {
    /// Whole blocks that wait for the thread.
    batch: Vec<u8>,
    /// Nothing more will be recorded.
    closed: bool,
    /// The thread has ended: nothing more will be written.
    ended: bool,
    error: Option<io::Error>,
}

impl Queue {
    fn new() -> Self {
        let batch = Vec::with_capacity(QUEUE_LEN);
        let state = State { batch, closed: false, ended: false, error: None };
        Self { state: Mutex::new(state), filled: Condvar::new(), emptied: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds `record` to the batch; false when it is left out.
    fn push(&self, record: &Record<'_>, policy: QueuePolicy) -> bool {
        let len = record.max_encoded_len();
        let mut state = self.lock();
        if policy == QueuePolicy::Lossless {
            let waited = self.emptied.wait_while(state, |state| !state.ended && state.full(len));
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if state.ended || state.full(len) {
            return false;
        }
        let before = state.batch.len();
        block::put_packet(&mut state.batch, record);
        if before < WRITE_LEN && state.batch.len() >= WRITE_LEN {
            self.filled.notify_one();
        }
        true
    }

    /// Swaps the batch with the empty `batch`; false when there is no more.
    fn take(&self, batch: &mut Vec<u8>) -> bool {
        let waited = self.filled.wait_timeout_while(self.lock(), WRITE_INTERVAL, |state| {
            state.batch.len() < WRITE_LEN && !state.closed
        });
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        mem::swap(&mut state.batch, batch);
        self.emptied.notify_one();
        !(state.closed && batch.is_empty())
    }

    fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    fn end(&self) {
        self.lock().ended = true;
        self.emptied.notify_one();
    }
}

impl State {
    /// Whether `len` more bytes are too many.
    fn full(&self, len: usize) -> bool {
        self.batch.len() + len > QUEUE_LEN
    }
}

/// Tells the caller that the thread has ended, however it does, so that it
/// never waits for a thread that is gone.
struct EndOfThread<'a>(&'a Queue);

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The thread: writes batches until the capture is closed or the output fails.
fn write_batches(queue: &Queue, mut out: impl Write) {
    let _end = EndOfThread(queue);
    let mut batch = Vec::with_capacity(QUEUE_LEN);
    while queue.take(&mut batch) {
        if let Err(error) = out.write_all(&batch).and_then(|()| out.flush()) {
            queue.lock().error = Some(error);
            return;
        }
        batch.clear();
    }
}
