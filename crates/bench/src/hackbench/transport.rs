//! What messages go through.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use anyhow::{Context, bail};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

pub const TRANSPORTS: [&str; 3] = ["socket", "pipe", "inet"];

/// Both ends of one way: what is written to `sends` is read from `receives`.
pub struct Ends {
    pub receives: File,
    pub sends: File,
}

pub fn ends(transport: &str) -> anyhow::Result<Ends> {
    let (receives, sends) = match transport {
        "pipe" => rustix::pipe::pipe().context("cannot make a pipe")?,
        "socket" => {
            let flags = SocketFlags::empty();
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
                .context("cannot make a pair of sockets")?
        }
        "inet" => over_loopback().context("cannot connect over the loopback device")?,
        other => bail!("messages do not go through {other:?}"),
    };
    Ok(Ends { receives: File::from(receives), sends: File::from(sends) })
}

fn over_loopback() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let listener = std::net::TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let sends = std::net::TcpStream::connect(listener.local_addr()?)?;
    let (receives, _) = listener.accept()?;
    Ok((receives.into(), sends.into()))
}
