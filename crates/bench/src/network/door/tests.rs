//! Strangers at the door.

use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};

use super::*;
use crate::network::messages::Side;

const LIMIT: Duration = Duration::from_secs(10);

fn untuned(_: &OwnedFd) -> anyhow::Result<()> {
    Ok(())
}

/// A session's two ends, and a door of the server's with its port.
fn opened(protocol: Transport) -> (Link, Link, DataPort<'static>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
    let (server, _) = listener.accept().expect("accepted");
    let keys = Keys::of("t", &[0; 32], &[1; 32]);
    let mut client = Link::new(client, keys.clone(), Side::Client).expect("a link");
    let mut server = Link::new(server, keys, Side::Server).expect("a link");
    let door = DataPort::open(&mut server, 0, protocol, 7, &untuned).expect("a door");
    let Some(Reply::Port(port)) = client.receive(LIMIT).expect("told") else { panic!("no port") };
    (client, server, door, ([127, 0, 0, 1], port).into())
}

#[test]
fn who_proves_himself_is_not_kept_waiting_by_strangers() {
    let (client, mut server, door, to) = opened(Transport::Tcp);
    let connect = || TcpStream::connect(to).expect("it listens");
    // More of them than there is room for, some with half a cookie, some with a wrong one; then our
    // own, in any order.
    let mut strangers: Vec<TcpStream> = (0..GUESTS + 40).map(|_| connect()).collect();
    for (number, stranger) in strangers.iter_mut().enumerate() {
        stranger.write_all(&[0x61; COOKIE_BYTES][..number % (COOKIE_BYTES + 1)]).expect("sent");
    }
    let mut ours: Vec<(u32, TcpStream)> = [2, 0, 1].map(|stream| (stream, connect())).into();
    for (stream, socket) in &mut ours {
        socket.write_all(&client.keys.cookie(7, *stream)).expect("sent");
    }
    // Of another test, of no stream of this one, and of one that is there already.
    for cookie in [client.keys.cookie(8, 0), client.keys.cookie(7, 3), client.keys.cookie(7, 0)] {
        let mut other = connect();
        other.write_all(&cookie).expect("sent");
        strangers.push(other);
    }
    let sockets = door.streams(&mut server, 3).expect("all are there");
    let peers = sockets.iter().map(|socket| TcpStream::from(socket.try_clone().expect("a copy")).peer_addr());
    ours.sort_by_key(|(stream, _)| *stream);
    let own = ours.iter().map(|(_, socket)| socket.local_addr());
    assert!(peers.map(Result::unwrap).eq(own.map(Result::unwrap)));
}

/// Whether another socket can be bound to the data port, even if it offers to share it.
fn can_be_shared(at: SocketAddr) -> bool {
    let options = [(true, false), (false, true), (true, true)];
    options.into_iter().any(|(address, port)| {
        let socket =
            rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("a socket");
        sockopt::set_socket_reuseaddr(&socket, address).expect("set");
        sockopt::set_socket_reuseport(&socket, port).expect("set");
        let anywhere = SocketAddr::new([0, 0, 0, 0].into(), at.port());
        [at, anywhere].iter().any(|at| rustix::net::bind(&socket, at).is_ok())
    })
}

#[test]
fn a_port_for_datagrams_is_shared_with_nobody() {
    let (mut client, mut server, door, to) = opened(Transport::Udp);
    assert!(!can_be_shared(to));
    const STREAMS: u32 = 4;
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let loud = stranger.try_clone().expect("a copy");
    let client = std::thread::spawn(move || {
        let mut ours = Vec::new();
        for stream in 0..STREAMS {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
            socket.connect(to).expect("connected");
            for wrong in [&[0; 16][..], &[0x61; COOKIE_BYTES], &client.keys.cookie(8, stream)] {
                loud.send_to(wrong, to).expect("sent");
            }
            socket.send(&client.keys.cookie(7, stream)).expect("sent");
            let heard = client.receive::<Reply>(LIMIT).expect("told");
            assert_eq!(heard, Some(Reply::FirstDatagram(stream)));
            assert!(!can_be_shared(to), "after stream {stream}");
            ours.push(socket);
        }
        (ours, client)
    });
    let sockets = door.streams(&mut server, STREAMS).expect("all are there");
    let (ours, _client) = client.join().expect("it ends");
    assert!(!can_be_shared(to), "all are connected");
    // Each hears its own peer, and none what the stranger says.
    for (stream, (socket, own)) in sockets.into_iter().zip(&ours).enumerate() {
        stranger.send_to(b"stranger", to).expect("sent");
        own.send(&[stream as u8; 3]).expect("sent");
        let socket = UdpSocket::from(socket);
        socket.set_read_timeout(Some(LIMIT)).expect("a limit");
        let mut buffer = [0; 100];
        let count = socket.recv(&mut buffer).expect("it comes");
        assert_eq!(buffer[..count], [stream as u8; 3]);
    }
}
