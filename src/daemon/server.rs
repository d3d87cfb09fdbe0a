//! Every client of the control socket, inside the event loop.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

use super::connection::{Connection, Next};
use super::events::EventLog;
use super::protocol::{self, Request, Response};
use super::socket::ControlSocket;

/// Clients at the same time at most.
const MAX_CLIENTS: usize = 64;
/// The token of the listening socket; those of clients follow it.
const LISTENER: Token = Token(0);

/// What answers requests.
pub(super) type Answer<'a> = dyn FnMut(Request) -> Result<Response, String> + 'a;

/// The control socket and its clients.
#[derive(Debug)]
pub(super) struct ControlServer {
    socket: ControlSocket,
    registry: Registry,
    clients: BTreeMap<Token, Connection<UnixStream>>,
    /// Clients that have something to do in the next turn.
    busy: Vec<Token>,
    next_token: usize,
    /// How many events there were at the last turn.
    events_seen: u64,
}

impl ControlServer {
    /// Serves `socket`, woken by `registry`.
    ///
    /// # Errors
    /// Those of epoll.
    pub(super) fn new(mut socket: ControlSocket, registry: &Registry) -> io::Result<Self> {
        let registry = registry.try_clone()?;
        registry.register(socket.listener(), LISTENER, Interest::READABLE)?;
        Ok(Self {
            socket,
            registry,
            clients: BTreeMap::new(),
            busy: Vec::new(),
            next_token: LISTENER.0 + 1,
            events_seen: 0,
        })
    }

    /// The socket behind `token` is ready for something.
    pub(super) fn on_ready(&mut self, token: Token) {
        if token == LISTENER {
            self.accept();
        } else if let Some(client) = self.clients.get_mut(&token) {
            client.on_ready();
            self.busy.push(token);
        }
    }

    /// Serves the clients that have something to do; true when some have more.
    pub(super) fn turn(&mut self, log: &RefCell<EventLog>, answer: &mut Answer<'_>) -> bool {
        self.wake_subscribers(log);
        for token in core::mem::take(&mut self.busy) {
            let Some(client) = self.clients.get_mut(&token) else { continue };
            match client.turn(log, answer) {
                Next::Wait => {}
                Next::Again => self.busy.push(token),
                Next::Close => self.close(token),
            }
        }
        // What was answered may have made events.
        self.wake_subscribers(log);
        !self.busy.is_empty()
    }

    fn wake_subscribers(&mut self, log: &RefCell<EventLog>) {
        let end = log.borrow().end();
        if end != self.events_seen {
            self.events_seen = end;
            let behind = self.clients.iter().filter(|(_, client)| client.is_behind(log));
            self.busy.extend(behind.map(|(token, _)| *token));
        }
    }

    /// Takes every waiting connection. An error is one of the host's (out of
    /// file descriptors): those that wait are taken with the next one.
    fn accept(&mut self) {
        while let Ok((stream, _)) = self.socket.listener().accept() {
            if self.clients.len() == MAX_CLIENTS {
                turn_away(stream);
            } else {
                self.add(stream);
            }
        }
    }

    fn add(&mut self, mut stream: UnixStream) {
        let token = Token(self.next_token);
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.registry.register(&mut stream, token, interest).is_ok() {
            self.next_token += 1;
            self.clients.insert(token, Connection::new(stream));
            self.busy.push(token);
        }
    }

    fn close(&mut self, token: Token) {
        if let Some(mut client) = self.clients.remove(&token) {
            // Closing the socket takes it out of epoll as well.
            let _ = self.registry.deregister(client.stream());
        }
    }

    /// Sends what waits, as far as clients take it: the daemon ends.
    pub(super) fn finish(&mut self) {
        for client in self.clients.values_mut() {
            // A client that is gone misses nothing.
            let _ = client.flush();
        }
    }
}

/// Tells a client that there is no room for it.
fn turn_away(mut stream: UnixStream) {
    let refusal = Err(format!("there are {MAX_CLIENTS} clients already"));
    if let Ok(line) = protocol::answer_line(&refusal) {
        // It is closed either way.
        let _ = stream.write_all(format!("{line}\n").as_bytes());
    }
}
