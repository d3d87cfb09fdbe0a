//! One client of the control socket. Nothing here blocks: what the client does
//! not take waits in a buffer of limited size, and a client that lets it
//! overflow is dropped.

use core::mem;
use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};

use super::events::EventLog;
use super::protocol::{self, MAX_REQUEST, Request, Response};

/// Answers that wait for the client at most, in bytes. One answer may go
/// beyond it when none waits before it.
const MAX_OUTPUT: usize = 1 << 20;
/// Events are put into the output while less than this waits, in bytes.
const EVENTS_WAITING: usize = 64 << 10;
/// Requests answered before other clients and the network get their turn.
const REQUESTS_A_TURN: usize = 32;
/// Rounds of events for the same reason.
const ROUNDS_A_TURN: usize = 4;

/// What becomes of a connection after its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// It waits until its socket or the log has something new.
    Wait,
    /// It has more to do at once.
    Again,
    /// It is over.
    Close,
}

/// A client and what is under way with it.
#[derive(Debug)]
pub(super) struct Connection<S> {
    stream: S,
    input: Vec<u8>,
    /// How much of the input is known to hold no line's end.
    searched: usize,
    output: Vec<u8>,
    /// How much of the output the client has.
    written: usize,
    /// The socket may have something to read.
    readable: bool,
    /// The client sends no more, or sent what cannot be understood.
    finished: bool,
    /// The number of the event to send next.
    next_event: Option<u64>,
}

impl<S: Read + Write> Connection<S> {
    /// A connection over a stream that does not block.
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            input: Vec::new(),
            searched: 0,
            output: Vec::new(),
            written: 0,
            readable: true,
            finished: false,
            next_event: None,
        }
    }

    /// The stream.
    pub(super) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The socket says that it is ready for something.
    pub(super) fn on_ready(&mut self) {
        self.readable = true;
    }

    /// Whether events wait for this client.
    pub(super) fn is_behind(&self, log: &RefCell<EventLog>) -> bool {
        self.next_event.is_some_and(|next| next < log.borrow().end())
    }

    /// Answers requests, sends events and answers, as far as that goes without
    /// waiting.
    pub(super) fn turn(
        &mut self,
        log: &RefCell<EventLog>,
        answer: &mut dyn FnMut(Request) -> Result<Response, String>,
    ) -> Next {
        self.try_turn(log, answer).unwrap_or(Next::Close)
    }

    fn try_turn(
        &mut self,
        log: &RefCell<EventLog>,
        answer: &mut dyn FnMut(Request) -> Result<Response, String>,
    ) -> io::Result<Next> {
        let more = self.take_requests(log, answer)?;
        for _ in 0..ROUNDS_A_TURN {
            self.take_events(log)?;
            self.flush()?;
            if !self.output.is_empty() {
                // The client has to read before anything else happens here.
                return Ok(if more { Next::Again } else { Next::Wait });
            }
            if !self.is_behind(log) {
                break;
            }
        }
        Ok(match (more || self.is_behind(log), self.finished) {
            (true, _) => Next::Again,
            (false, true) => Next::Close,
            (false, false) => Next::Wait,
        })
    }

    /// Answers what requests there are; true when there may be more.
    fn take_requests(
        &mut self,
        log: &RefCell<EventLog>,
        answer: &mut dyn FnMut(Request) -> Result<Response, String>,
    ) -> io::Result<bool> {
        for _ in 0..REQUESTS_A_TURN {
            let Some(line) = self.next_line()? else { return Ok(false) };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let answered = match serde_json::from_slice(&line) {
                Ok(Request::Subscribe {}) => Ok(self.subscribe(log)),
                Ok(request) => answer(request),
                Err(error) => Err(format!("not a request: {error}")),
            };
            self.put_answer(&answered)?;
        }
        Ok(true)
    }

    /// The next whole line, read from the socket where needed.
    fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let unsearched = &self.input[self.searched..];
            if let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') {
                let line = self.input.drain(..=self.searched + end).collect();
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.input.len();
            if self.searched > MAX_REQUEST {
                self.refuse_rest()?;
            }
            if self.finished {
                // The last line may do without its end.
                self.searched = 0;
                let rest = mem::take(&mut self.input);
                return Ok((!rest.is_empty()).then_some(rest));
            }
            if !self.readable {
                return Ok(None);
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        match self.stream.read(&mut chunk) {
            Ok(0) => self.finished = true,
            Ok(length) => self.input.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A line without an end: nothing that follows can be understood.
    fn refuse_rest(&mut self) -> io::Result<()> {
        self.input.clear();
        self.searched = 0;
        self.finished = true;
        self.put_answer(&Err(format!("a request is at most {MAX_REQUEST} bytes long")))
    }

    fn subscribe(&mut self, log: &RefCell<EventLog>) -> Response {
        let first = log.borrow().first();
        self.next_event = Some(first);
        Response::Subscribed { forgotten: first }
    }

    fn put_answer(&mut self, answer: &Result<Response, String>) -> io::Result<()> {
        self.flush()?;
        if self.output.len() > MAX_OUTPUT {
            return Err(io::Error::other("the client does not read"));
        }
        let line = protocol::answer_line(answer)?;
        self.put_line(&line);
        Ok(())
    }

    fn put_line(&mut self, line: &str) {
        self.output.extend_from_slice(line.as_bytes());
        self.output.push(b'\n');
    }

    /// Puts events into the output while it has room for them.
    fn take_events(&mut self, log: &RefCell<EventLog>) -> io::Result<()> {
        let Some(mut next) = self.next_event else { return Ok(()) };
        let log = log.borrow();
        if next < log.first() {
            return Err(io::Error::other("the client reads too slowly"));
        }
        while self.output.len() < EVENTS_WAITING
            && let Some(event) = log.get(next)
        {
            let line = protocol::event_line(event)?;
            self.put_line(&line);
            next += 1;
        }
        self.next_event = Some(next);
        Ok(())
    }

    /// Sends what the client takes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => self.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.drain(..self.written);
        self.written = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
