//! Copying a file of our own into another one, block by block, both in the page cache.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use anyhow::Context;
use rustix::fs::{Mode, OFlags, SeekFrom};

use super::super::check_answer;
use super::copies::{Loops, Test};
use model::vocabulary::BenchId;
use model::vocabulary::unixbench as ids;
use sys::scratch::Scratch;

/// What sets the three tests apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub buffer_bytes: usize,
    /// Blocks after which both files are begun anew.
    pub blocks: u64,
}

impl Shape {
    pub fn of(bench: Option<BenchId>) -> Option<Shape> {
        Some(match bench {
            Some(ids::FSTIME) => Shape { buffer_bytes: 1024, blocks: 2000 },
            Some(ids::FSBUFFER) => Shape { buffer_bytes: 256, blocks: 500 },
            Some(ids::FSDISK) => Shape { buffer_bytes: 4096, blocks: 8000 },
            _ => return None,
        })
    }

    /// What both files of a copy take.
    pub fn bytes(self) -> u64 {
        2 * self.blocks * self.buffer_bytes as u64
    }

    /// A block's work: the suite's KB are of 1024 bytes.
    pub fn kilobytes(self) -> f64 {
        self.buffer_bytes as f64 / 1024.0
    }
}

struct FileCopy {
    shape: Shape,
    from: OwnedFd,
    to: OwnedFd,
    buffer: Vec<u8>,
    /// The next block, and all that were copied so far.
    block: u64,
    copied: u64,
    /// Keeps the folder until the files are done with.
    _folder: Rc<Scratch>,
}

/// The files of all copies.
pub const HOLDS: &[&str] = &["from-#", "to-#"];

/// The files of one copy: the first one is written, and read back.
pub fn copying(folder: Rc<Scratch>, copy: usize, shape: Shape) -> anyhow::Result<Loops> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let create = |name: &str| {
        rustix::fs::openat(folder.folder(), format!("{name}-{copy}"), flags, Mode::RUSR | Mode::WUSR)
            .with_context(|| format!("cannot make a file in {}", folder.path().display()))
    };
    let (from, to) = (create("from")?, create("to")?);
    let buffer = vec![0; shape.buffer_bytes];
    let mut files = FileCopy { shape, from, to, buffer, block: 0, copied: 0, _folder: folder.clone() };
    for block in 0..shape.blocks {
        fill(&mut files.buffer, block);
        let wrote = rustix::io::write(&files.from, &files.buffer).context("cannot write the first file")?;
        anyhow::ensure!(
            wrote == shape.buffer_bytes,
            "the filesystem took {wrote} bytes of a block: is it full?"
        );
    }
    begin_anew(&files.from)?;
    holds(&files.from, shape, shape.blocks)?;
    begin_anew(&files.from)?;
    Ok(Box::new(files))
}

/// Each block differs from all others.
fn fill(buffer: &mut [u8], block: u64) {
    for (word, index) in buffer.chunks_exact_mut(8).zip(0u64..) {
        word.copy_from_slice(&(block << 32 | index).to_le_bytes());
    }
}

fn begin_anew(file: &OwnedFd) -> anyhow::Result<()> {
    rustix::fs::seek(file, SeekFrom::Start(0)).context("cannot rewind a file").map(drop)
}

/// Reads this many blocks and compares each with what was written.
fn holds(file: &OwnedFd, shape: Shape, blocks: u64) -> anyhow::Result<()> {
    let (mut meant, mut buffer) = (vec![0; shape.buffer_bytes], vec![0; shape.buffer_bytes]);
    for block in 0..blocks {
        fill(&mut meant, block);
        let read = rustix::io::read(file, &mut buffer).context("cannot read a file")?;
        check_answer(read == meant.len() && buffer == meant, || {
            format!("block {block} of a file is not what was written ({read} of {} bytes)", meant.len())
        })?;
    }
    Ok(())
}

impl Test for FileCopy {
    fn work(&mut self, loops: u64) -> anyhow::Result<()> {
        let size = self.shape.buffer_bytes;
        for _ in 0..loops {
            if self.block == self.shape.blocks {
                begin_anew(&self.from)?;
                begin_anew(&self.to)?;
                self.block = 0;
            }
            let read =
                rustix::io::read(&self.from, &mut self.buffer).context("cannot read the first file")?;
            let wrote = rustix::io::write(&self.to, &self.buffer).context("cannot write the second file")?;
            if (read, wrote) != (size, size) {
                anyhow::bail!(
                    "{read} bytes of a block of {size} were read and {wrote} written: is the disk full?"
                );
            }
            self.block += 1;
        }
        self.copied += loops;
        Ok(())
    }

    /// The second file must hold what the first one does.
    fn finish(&mut self) -> anyhow::Result<()> {
        begin_anew(&self.to)?;
        holds(&self.to, self.shape, self.copied.min(self.shape.blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WrongAnswer;

    const SMALL: Shape = Shape { buffer_bytes: 64, blocks: 5 };

    #[test]
    fn blocks_are_copied_round_and_round() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = Rc::new(Scratch::new(parent.path(), HOLDS).expect("a folder of our own"));
        for (copy, loops) in [0, 3, 5, 17].into_iter().enumerate() {
            let mut files = copying(folder.clone(), copy, SMALL).expect("files");
            files.work(loops).and_then(|()| files.finish()).expect("copied");
            let length = std::fs::metadata(folder.path().join(format!("to-{copy}"))).expect("a file").len();
            assert_eq!(length, 64 * loops.min(5));
        }
        drop(folder);
        assert_eq!(std::fs::read_dir(parent.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_copy_that_differs_is_a_wrong_answer() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = Rc::new(Scratch::new(parent.path(), HOLDS).expect("a folder of our own"));
        let mut files = copying(folder.clone(), 0, SMALL).expect("files");
        files.work(7).expect("copied");
        let path = folder.path().join("to-0");
        let mut bytes = std::fs::read(&path).expect("a file");
        bytes[200] ^= 1;
        std::fs::write(&path, bytes).expect("planted");
        let error = files.finish().expect_err("planted");
        assert!(
            error.downcast_ref::<WrongAnswer>().is_some_and(|wrong| wrong.0.contains("block 3")),
            "{error}"
        );
    }
}
