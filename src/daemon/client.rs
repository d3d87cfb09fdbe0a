//! The other end of a control socket.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::protocol::{EventReport, Line, Request, Response};

/// How long an answer may take: registering a large file takes some seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a daemon could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers at this path.
    #[error(
        "no daemon answers at {path} ({source}); give what a running one was told as --control"
    )]
    Connect {
        /// The path.
        path: String,
        /// What the host said.
        source: io::Error,
    },
    /// The daemon refuses the request.
    #[error("{0}")]
    Refused(String),
    /// The daemon closed the connection: it ended, or was read too slowly.
    #[error("the daemon closed the connection")]
    Closed,
    /// No answer came.
    #[error("the daemon does not answer")]
    TimedOut,
    /// What came is not of this protocol.
    #[error("the daemon sent what cannot be understood: {0}")]
    Garbled(#[from] serde_json::Error),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(io::Error),
}

/// A connection to a daemon.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    /// Events that came before an answer that was waited for.
    events: VecDeque<EventReport>,
}

impl Client {
    /// Connects to the daemon whose control socket is at `path`.
    ///
    /// # Errors
    /// When nobody listens there, or this user may not connect.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let connected = UnixStream::connect(path).and_then(|stream| {
            stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
            Ok(stream)
        });
        let fail = |source| ClientError::Connect { path: path.display().to_string(), source };
        let stream = connected.map_err(fail)?;
        Ok(Self { stream, input: Vec::new(), events: VecDeque::new() })
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// [`ClientError::Refused`] when the daemon says no; the others when it
    /// cannot be asked.
    pub fn request(&mut self, request: &Request) -> Result<Response, ClientError> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stream.write_all(&line).map_err(connection_error)?;
        loop {
            match self.next_line(ANSWER_TIMEOUT)?.ok_or(ClientError::TimedOut)? {
                Line::Event(event) => self.events.push_back(event),
                Line::Answer(answer) => return answer.map_err(ClientError::Refused),
            }
        }
    }

    /// The next event, after [`Request::Subscribe`]; `None` when none comes
    /// within `timeout`.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<EventReport>, ClientError> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        match self.next_line(timeout)? {
            Some(Line::Event(event)) => Ok(Some(event)),
            // An answer that was no longer waited for.
            Some(Line::Answer(_)) | None => Ok(None),
        }
    }

    /// The next line; `None` when none comes within `timeout`.
    fn next_line(&mut self, timeout: Duration) -> Result<Option<Line>, ClientError> {
        // The longest that a read may take; zero would mean for ever.
        let timeout = timeout.max(Duration::from_micros(1));
        self.stream.set_read_timeout(Some(timeout)).map_err(ClientError::Io)?;
        let mut searched = 0;
        loop {
            let unsearched = &self.input[searched..];
            if let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.input.drain(..=searched + end).collect();
                return Ok(Some(Line::parse(&line)?));
            }
            searched = self.input.len();
            if !self.read()? {
                return Ok(None);
            }
        }
    }

    /// Reads what there is; false when nothing comes in time.
    fn read(&mut self) -> Result<bool, ClientError> {
        let mut chunk = [0; 16 << 10];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(ClientError::Closed),
            Ok(length) => {
                self.input.extend_from_slice(&chunk[..length]);
                Ok(true)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(false),
                ErrorKind::Interrupted => Ok(true),
                _ => Err(connection_error(error)),
            },
        }
    }
}

fn connection_error(error: io::Error) -> ClientError {
    match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => ClientError::Closed,
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::TimedOut,
        _ => ClientError::Io(error),
    }
}
