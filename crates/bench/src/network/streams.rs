//! Bytes over TCP. One process serves all connections of a direction that share a CPU, as an event
//! loop of a server does: with a process for each, four of them carried a third less than iperf3's
//! one process does (docs/method/network.md).

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use super::workers::{BYTES, Board, CpuBurner, MESSAGES, SENDERS, WRONG};

/// A connection and its line on the board.
pub struct Flow<'a> {
    socket: BorrowedFd<'a>,
    line: usize,
    bytes: u64,
    messages: u64,
    open: bool,
}

impl<'a> Flow<'a> {
    pub fn new(socket: &'a impl AsFd, line: usize) -> Flow<'a> {
        Flow { socket: socket.as_fd(), line, bytes: 0, messages: 0, open: true }
    }

    fn is_over_loopback(&self) -> bool {
        let any = rustix::net::getpeername(self.socket).ok().flatten();
        let address = any.and_then(|any| SocketAddr::try_from(any).ok());
        address.is_some_and(|address| address.ip().to_canonical().is_loopback())
    }
}

/// The connections of one task.
pub struct Streams<'a> {
    pub board: &'a Board,
    pub flows: Vec<Flow<'a>>,
    /// Share of its time that the task burns CPU.
    pub burn: f64,
}

/// One read takes this much at most: it stays in the L2.
const READ_BYTES: usize = 128 << 10;

/// Offset in the buffer of the next read. Over loopback a read asks for the rest of a block: one
/// connection then carried a third more than with reads of all that is there. Between virtual cards
/// it carried a sixth less, so elsewhere a read takes all (docs/method/network.md).
fn place(blocks: bool, bytes: u64) -> usize {
    if blocks { (bytes % READ_BYTES as u64) as usize } else { 0 }
}

impl Streams<'_> {
    /// Sends messages of this size, round-robin to each connection that accepts some, until it is
    /// stopped.
    pub fn send(mut self, bytes: u32) {
        let whole = self.send_all(&pattern(bytes as usize));
        let shut = |flow: &Flow| rustix::net::shutdown(flow.socket, Shutdown::Write).is_ok();
        for flow in &self.flows {
            self.board.end(flow.line, whole && shut(flow));
        }
    }

    fn send_all(&mut self, message: &[u8]) -> bool {
        // What is alone waits where it asks.
        let wait = if self.flows.len() == 1 { SendFlags::empty() } else { SendFlags::DONTWAIT };
        let mut fire = CpuBurner::new(self.burn);
        while !self.board.stopped(SENDERS) {
            let mut moved = false;
            for flow in &mut self.flows {
                let at = (flow.bytes % message.len() as u64) as usize;
                match rustix::net::send(flow.socket, &message[at..], SendFlags::NOSIGNAL | wait) {
                    Ok(count) => {
                        moved = true;
                        flow.bytes += count as u64;
                        self.board.tell(flow.line, BYTES, flow.bytes);
                        if at + count == message.len() {
                            flow.messages += 1;
                            self.board.tell(flow.line, MESSAGES, flow.messages);
                            fire.burn();
                        }
                    }
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(_) => return false,
                }
            }
            if !moved && !self.wait(PollFlags::OUT) {
                return false;
            }
        }
        true
    }

    /// Receives until every connection ends, and compares a sample of each read with what is sent.
    pub fn receive(mut self, bytes: u32) {
        if !self.receive_all(&pattern(bytes as usize)) {
            self.flows.iter().filter(|flow| flow.open).for_each(|flow| self.board.end(flow.line, false));
        }
    }

    fn receive_all(&mut self, message: &[u8]) -> bool {
        let wait = if self.flows.len() == 1 { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let mut buffer = vec![0u8; READ_BYTES];
        let blocks = self.flows.iter().all(Flow::is_over_loopback);
        let mut fire = CpuBurner::new(self.burn);
        while self.flows.iter().any(|flow| flow.open) {
            let mut moved = false;
            for flow in self.flows.iter_mut().filter(|flow| flow.open) {
                let at = place(blocks, flow.bytes);
                match rustix::net::recv(flow.socket, &mut buffer[at..], wait) {
                    Ok((_, 0)) => {
                        (flow.open, moved) = (false, true);
                        self.board.end(flow.line, true);
                    }
                    Ok((_, count)) => {
                        moved = true;
                        if !fits(message, flow.bytes, &buffer[at..at + count]) {
                            self.board.tell(flow.line, WRONG, flow.bytes + 1);
                        }
                        flow.bytes += count as u64;
                        self.board.tell(flow.line, BYTES, flow.bytes);
                        // What is left when the time is over is read without delay.
                        if !self.board.stopped(SENDERS) {
                            fire.burn();
                        }
                    }
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(_) => return false,
                }
            }
            if !moved && !self.wait(PollFlags::IN) {
                return false;
            }
        }
        true
    }

    /// Waits until one of the connections that are open can go on.
    fn wait(&self, what: PollFlags) -> bool {
        let open = self.flows.iter().filter(|flow| flow.open);
        let mut all: Vec<PollFd> = open.map(|flow| PollFd::from_borrowed_fd(flow.socket, what)).collect();
        matches!(poll(&mut all, None), Ok(_) | Err(Errno::INTR))
    }
}

/// What a message over TCP holds: no two words alike, and nothing that a link or a card could
/// shrink.
fn pattern(bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(0x6173_7361_7931);
    let mut pattern = vec![0; bytes];
    random.fill(&mut pattern);
    pattern
}

/// Whether the stream holds what was sent, at one place of what was read from this offset on.
fn fits(message: &[u8], offset: u64, read: &[u8]) -> bool {
    let sample = read.len().min(8);
    // Any place will do that differs from read to read.
    let place = (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % (read.len() - sample + 1);
    let at = (offset % message.len() as u64) as usize + place;
    (0..sample).all(|byte| read[place + byte] == message[(at + byte) % message.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_stream_is_seen_sooner_or_later() {
        let message = pattern(1000);
        let stream: Vec<u8> = message.iter().cycle().copied().take(200_000).collect();
        let right = |stream: &[u8]| {
            stream.chunks(777).enumerate().all(|(n, read)| fits(&message, n as u64 * 777, read))
        };
        assert!(right(&stream));
        assert!(!right(&stream[1..]), "a byte is missing");
        let zeroes = vec![0; 20_000];
        assert!(!right(&zeroes));
        assert!(fits(&message, 3, &message[3..4]), "reads of a byte have one place");
    }
}
