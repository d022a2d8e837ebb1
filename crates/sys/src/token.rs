//! Tokens of 8 bytes that processes exchange over pipes and sockets, complete or not at all.

use std::io;
use std::os::fd::BorrowedFd;

use anyhow::Context;

/// Writes a token; an error if the other end is closed.
pub fn send(to: BorrowedFd, token: u64) -> anyhow::Result<()> {
    loop {
        match send_once(to, token) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done.context("cannot write to the partner process"),
        }
    }
}

/// Sleeps until a token arrives; an error if the other end is closed.
pub fn receive(from: BorrowedFd) -> anyhow::Result<u64> {
    loop {
        match receive_once(from) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done.context("cannot read from the partner process"),
        }
    }
}

/// As [`send`], but a signal ends the wait with `Interrupted`.
pub fn send_once(to: BorrowedFd, token: u64) -> io::Result<()> {
    match rustix::io::write(to, &token.to_ne_bytes())? {
        8 => Ok(()),
        bytes => Err(io::Error::other(format!("{bytes} of 8 bytes were written"))),
    }
}

/// As [`receive`], but a signal ends the wait with `Interrupted`.
pub fn receive_once(from: BorrowedFd) -> io::Result<u64> {
    let mut token = [0u8; 8];
    match rustix::io::read(from, &mut token)? {
        8 => Ok(u64::from_ne_bytes(token)),
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the partner process has ended")),
        bytes => Err(io::Error::other(format!("{bytes} of 8 bytes arrived"))),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn tokens_arrive_and_a_closed_end_is_an_error() {
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        send(to.as_fd(), u64::MAX - 1).expect("a token");
        assert_eq!(receive(from.as_fd()).expect("a token"), u64::MAX - 1);
        rustix::io::write(&to, b"half").expect("half a token");
        assert!(receive(from.as_fd()).is_err_and(|error| format!("{error:#}").contains("4 of 8")));
        drop(to);
        assert!(receive(from.as_fd()).is_err_and(|error| format!("{error:#}").contains("has ended")));
    }
}
