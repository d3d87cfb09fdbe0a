//! Keeps the host's kernel quiet about packets that are not for it.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use socket2::{Domain, Protocol, SockFilter, Socket, Type};

/// A classic BPF program of one instruction: keep 0 bytes, that is, drop.
const DROP_ALL: (u16, u8, u8, u32) = (0x06, 0, 0, 0);

/// A UDP socket that takes the datagrams to one address and port and drops each
/// at once. Where frames carry the interface's own MAC address, the kernel sees
/// them too; with nobody at the port it would answer every one with an ICMP
/// "port unreachable".
#[derive(Debug)]
pub struct GuardSocket {
    _socket: Socket,
}

impl GuardSocket {
    /// Takes `port` of `address` in this thread's network namespace.
    ///
    /// # Errors
    /// EADDRINUSE when another socket has it, EADDRNOTAVAIL when it is no
    /// address of this host.
    pub fn bind(address: Ipv4Addr, port: u16) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        let (code, if_true, if_false, bytes) = DROP_ALL;
        socket.attach_filter(&[SockFilter::new(code, if_true, if_false, bytes)])?;
        // The kernel makes of it the least that it allows.
        socket.set_recv_buffer_size(1)?;
        socket.bind(&SocketAddrV4::new(address, port).into())?;
        Ok(Self { _socket: socket })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

    #[test]
    fn datagrams_to_a_guarded_port_draw_no_icmp() {
        let sender = UdpSocket::bind((LOOPBACK, 0)).expect("bound");
        sender.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
        let free = UdpSocket::bind((LOOPBACK, 0)).and_then(|s| s.local_addr()).expect("bound");
        sender.connect(free).expect("connected");
        let told = |sender: &UdpSocket| {
            sender.send(&[0; 100]).expect("sent");
            sender.recv(&mut [0; 1]).expect_err("nobody answers").kind()
        };
        assert_eq!(told(&sender), io::ErrorKind::ConnectionRefused);
        let guard = GuardSocket::bind(LOOPBACK, free.port()).expect("bound");
        assert_eq!(told(&sender), io::ErrorKind::WouldBlock);
        let second = GuardSocket::bind(LOOPBACK, free.port()).expect_err("taken");
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        drop(guard);
        assert_eq!(told(&sender), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn addresses_of_others_cannot_be_guarded() {
        let error = GuardSocket::bind(Ipv4Addr::new(192, 0, 2, 1), 4791).expect_err("not ours");
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }
}
