//! Tokens of 8 bytes that processes pass on over pipes and sockets, whole or not at all.

use std::os::fd::BorrowedFd;

use anyhow::{Context, bail};
use rustix::io::Errno;

/// Writes a token; an error when the other end is gone.
pub fn send(to: BorrowedFd, token: u64) -> anyhow::Result<()> {
    loop {
        match rustix::io::write(to, &token.to_ne_bytes()) {
            Ok(8) => return Ok(()),
            Ok(bytes) => bail!("a pipe took {bytes} of 8 bytes"),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error).context("cannot write to the partner"),
        }
    }
}

/// Sleeps until a token comes; an error when the other end is gone.
pub fn receive(from: BorrowedFd) -> anyhow::Result<u64> {
    let mut token = [0u8; 8];
    loop {
        match rustix::io::read(from, &mut token) {
            Ok(8) => return Ok(u64::from_ne_bytes(token)),
            Ok(0) => bail!("the partner is gone"),
            Ok(bytes) => bail!("a pipe gave {bytes} of 8 bytes"),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error).context("cannot read from the partner"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn tokens_arrive_and_a_partner_that_is_gone_is_an_error() {
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        send(to.as_fd(), u64::MAX - 1).expect("room for a token");
        assert_eq!(receive(from.as_fd()).expect("a token"), u64::MAX - 1);
        rustix::io::write(&to, b"half").expect("room for half a token");
        assert!(receive(from.as_fd()).is_err_and(|error| error.to_string().contains("4 of 8")));
        drop(to);
        assert!(receive(from.as_fd()).is_err_and(|error| error.to_string().contains("gone")));
    }
}
