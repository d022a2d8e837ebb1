//! What the two ends of a network test say to each other, as bytes: pure, and safe to feed with
//! anything.
//!
//! A connection to the server's port begins with two hellos of 48 bytes (`assaynet`, version,
//! answer, 32 random bytes), then the client proves that it knows the token and the server answers
//! with its own proof: HMAC-SHA256 (RFC 2104) over both random numbers, so that the token is never
//! on the wire and no old answer fits again. From then on each side sends frames: a length, a tag
//! over direction, running number and text, and the text (JSON). The hello's layout is the same in
//! all versions; so both can report that they differ.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The version of all that follows the hello.
pub const VERSION: u16 = 2;

pub const HELLO_BYTES: usize = 48;
pub const PROOF_BYTES: usize = 32;
/// An answer and the server's own proof.
pub const VERDICT_BYTES: usize = 1 + PROOF_BYTES;
/// The first bytes of a connection, or a datagram, that carries data.
pub const COOKIE_BYTES: usize = 32;
/// No frame is longer: a description of 64 KiB, escaped, and a report fit.
pub const LONGEST_FRAME: usize = 256 << 10;

const MAGIC: &[u8; 8] = b"assaynet";
const DATA_MAGIC: &[u8; 8] = b"assaydat";
const TAG_BYTES: usize = 16;
const HEAD_BYTES: usize = 4 + TAG_BYTES;

/// HMAC-SHA256 of several pieces, one after another.
fn proof(key: &[u8], pieces: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    pieces.iter().for_each(|piece| mac.update(piece));
    mac.finalize().into_bytes().into()
}

/// Whether two texts are equal, in a time that does not depend on where they differ.
pub fn equal(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// The first words of either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    pub version: u16,
    pub nonce: [u8; 32],
}

impl Hello {
    pub fn bytes(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0u8; HELLO_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_be_bytes());
        bytes[16..].copy_from_slice(&self.nonce);
        bytes
    }

    /// What the bytes so far say: `None` while more are needed. An error is for people, and ends
    /// the connection.
    pub fn parse(bytes: &[u8]) -> Result<Option<Hello>, String> {
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err("the other end is not an Assay network test".to_string());
        }
        let Some(bytes) = bytes.get(..HELLO_BYTES) else { return Ok(None) };
        let version = u16::from_be_bytes([bytes[8], bytes[9]]);
        let mut nonce = [0u8; 32];
        nonce.copy_from_slice(&bytes[16..]);
        Ok(Some(Hello { version, nonce }))
    }

    /// Whether the two can go on.
    pub fn agrees(&self) -> Result<(), String> {
        match self.version == VERSION {
            true => Ok(()),
            false => Err(format!(
                "the other end has version {} of the network test, this one version {VERSION}: use the same Assay on both hosts",
                self.version
            )),
        }
    }
}

/// The server's answer to a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Welcome,
    WrongToken,
    Busy,
}

impl Verdict {
    fn byte(self) -> u8 {
        match self {
            Verdict::Welcome => 0,
            Verdict::WrongToken => 1,
            Verdict::Busy => 2,
        }
    }

    /// With the server's own proof, which only an accepted client receives.
    pub fn bytes(self, keys: &Keys) -> [u8; VERDICT_BYTES] {
        let mut bytes = [0u8; VERDICT_BYTES];
        bytes[0] = self.byte();
        if self != Verdict::WrongToken {
            bytes[1..].copy_from_slice(&keys.server);
        }
        bytes
    }

    pub fn parse(bytes: &[u8; VERDICT_BYTES], keys: &Keys) -> Result<Verdict, String> {
        let verdict = match bytes[0] {
            0 => Verdict::Welcome,
            1 => return Ok(Verdict::WrongToken),
            2 => Verdict::Busy,
            other => return Err(format!("the other end sent an unknown answer ({other})")),
        };
        match equal(&bytes[1..], &keys.server) {
            true => Ok(verdict),
            false => {
                Err("the other end does not have this token: it is not the `assay serve` that showed it"
                    .to_string())
            }
        }
    }
}

/// What both sides make of the token and their random numbers.
#[derive(Clone)]
pub struct Keys {
    pub client: [u8; PROOF_BYTES],
    server: [u8; PROOF_BYTES],
    session: [u8; 32],
}

impl Keys {
    pub fn of(token: &str, client: &[u8; 32], server: &[u8; 32]) -> Keys {
        let of = |what: &[u8]| proof(token.as_bytes(), &[what, &VERSION.to_be_bytes(), client, server]);
        Keys { client: of(b"client"), server: of(b"server"), session: of(b"session") }
    }

    /// What a connection for data begins with: it names the test and the stream, and only this
    /// session can make it.
    pub fn cookie(&self, test: u32, stream: u32) -> [u8; COOKIE_BYTES] {
        let mut bytes = [0u8; COOKIE_BYTES];
        bytes[..8].copy_from_slice(DATA_MAGIC);
        bytes[8..12].copy_from_slice(&test.to_be_bytes());
        bytes[12..16].copy_from_slice(&stream.to_be_bytes());
        let tag = proof(&self.session, &[b"data", &bytes[..16]]);
        bytes[16..].copy_from_slice(&tag[..16]);
        bytes
    }

    /// The stream that a cookie names, if it is of this session and test.
    pub fn stream_of(&self, bytes: &[u8], test: u32) -> Option<u32> {
        let bytes: &[u8; COOKIE_BYTES] = bytes.try_into().ok()?;
        let stream = u32::from_be_bytes(bytes[12..16].try_into().ok()?);
        equal(bytes, &self.cookie(test, stream)).then_some(stream)
    }
}

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDirection {
    ToServer,
    ToClient,
}

impl FrameDirection {
    fn word(self) -> &'static [u8] {
        match self {
            FrameDirection::ToServer => b"to server",
            FrameDirection::ToClient => b"to client",
        }
    }
}

/// Writes frames that go one way.
pub struct Framer {
    keys: Keys,
    way: FrameDirection,
    number: u64,
}

impl Framer {
    pub fn new(keys: &Keys, way: FrameDirection) -> Framer {
        Framer { keys: keys.clone(), way, number: 0 }
    }

    pub fn frame(&mut self, text: &[u8]) -> Vec<u8> {
        let tag = tag(&self.keys, self.way, self.number, text);
        self.number += 1;
        let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(&tag);
        bytes.extend_from_slice(text);
        bytes
    }
}

fn tag(keys: &Keys, way: FrameDirection, number: u64, text: &[u8]) -> [u8; TAG_BYTES] {
    let whole = proof(&keys.session, &[way.word(), &number.to_be_bytes(), text]);
    let mut tag = [0u8; TAG_BYTES];
    tag.copy_from_slice(&whole[..TAG_BYTES]);
    tag
}

/// Reads the frames of the other way. Holds one frame at most.
pub struct Unframer {
    keys: Keys,
    way: FrameDirection,
    number: u64,
    pending: Vec<u8>,
}

impl Unframer {
    pub fn new(keys: &Keys, way: FrameDirection) -> Unframer {
        Unframer { keys: keys.clone(), way, number: 0, pending: Vec::new() }
    }

    /// How many bytes are wanted next: never more than what is left of one frame.
    pub fn wants(&self) -> usize {
        match self.length() {
            None => HEAD_BYTES - self.pending.len(),
            Some(length) => HEAD_BYTES + length.min(LONGEST_FRAME) - self.pending.len(),
        }
    }

    fn length(&self) -> Option<usize> {
        let head = self.pending.get(..HEAD_BYTES)?;
        Some(u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize)
    }

    /// Takes bytes, at most as many as [`Unframer::wants`] says, and gives the text that they
    /// complete. After an error nothing that follows can be trusted.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let wanted = self.wants();
        if bytes.len() > wanted {
            return Err(format!("only {} of {wanted} bytes arrived", bytes.len()));
        }
        self.pending.extend_from_slice(bytes);
        let Some(length) = self.length() else { return Ok(None) };
        if length > LONGEST_FRAME {
            return Err(format!("the other end announced a message of {length} bytes"));
        }
        if self.pending.len() < HEAD_BYTES + length {
            return Ok(None);
        }
        let text = self.pending.split_off(HEAD_BYTES);
        let right = equal(&self.pending[4..], &tag(&self.keys, self.way, self.number, &text));
        self.pending.clear();
        self.number += 1;
        match right {
            true => Ok(Some(text)),
            false => Err("a message arrived that the other end did not sign".to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
