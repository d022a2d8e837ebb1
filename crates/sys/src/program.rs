//! Programs to start: the smallest one there can be, made here, and those of the system.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;

use rustix::fs::{Access, MemfdFlags, Mode, OFlags};

use super::elf;

/// A program with its arguments, ready to be started without another allocation.
pub struct Program {
    path: CString,
    arguments: Vec<CString>,
    /// What it ends with when all is well.
    code: i32,
    /// The file that `path` leads to, where it has no name of its own.
    _file: Option<OwnedFd>,
}

/// The most arguments that a program here has, its own name among them.
const ARGUMENTS: usize = 3;

/// What the smallest program ends with: a number that nothing else here does.
const MINIMAL_CODE: i32 = 42;

impl Program {
    /// The smallest program: a static executable of two hundred bytes, two instructions long before
    /// it asks to end.
    ///
    /// It lives in memory (`memfd_create`), or in an unnamed file of the temporary directory where
    /// the kernel lets no such memory be executed; so nothing is left behind. An error says why
    /// neither could be started.
    pub fn minimal() -> io::Result<Program> {
        Program::of_image(&image()?, MINIMAL_CODE)
    }

    /// A program by its executable's bytes, kept as [`Program::minimal`] is. It is tried once, and
    /// must end with `code`.
    pub fn of_image(image: &[u8], code: i32) -> io::Result<Program> {
        let in_memory = memory_file().and_then(|file| Program::of_file(file, image, code));
        in_memory.or_else(|first| {
            let in_directory = directory_file().and_then(|file| Program::of_file(file, image, code));
            in_directory.map_err(|second| {
                let why =
                    format!("no program of our own can be started: in memory {first}; in a file {second}");
                io::Error::new(second.kind(), why)
            })
        })
    }

    /// A program of the system.
    pub fn at(path: &CStr, arguments: &[&CStr], code: i32) -> Program {
        let arguments = arguments.iter().take(ARGUMENTS).map(|text| CString::from(*text)).collect();
        Program { path: path.into(), arguments, code, _file: None }
    }

    /// `sh -c` of this program.
    pub fn by_shell(&self) -> Program {
        Program::at(SHELL, &[c"sh", c"-c", &self.path], self.code)
    }

    /// Writes the image and tries it.
    fn of_file(file: OwnedFd, image: &[u8], code: i32) -> io::Result<Program> {
        if rustix::io::write(&file, image)? != image.len() {
            return Err(io::Error::other("it could not be written whole"));
        }
        // What is open for writing cannot be executed: it is opened once more, and the first handle
        // closed. Children get the second one by inheritance, and find the file through it.
        let writable = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let readable = rustix::fs::open(writable.as_c_str(), OFlags::RDONLY, Mode::empty())?;
        drop(file);
        let readable_path = format!("/proc/self/fd/{}", readable.as_fd().as_raw_fd());
        let path = CString::new(readable_path.as_str())?;
        let program = Program { arguments: vec![path.clone()], path, code, _file: Some(readable) };
        let ended = Command::new(&readable_path).env_clear().status()?;
        match program.is_right(ended.code()) {
            true => Ok(program),
            false => Err(io::Error::other("it ended otherwise than it should")),
        }
    }

    pub fn path(&self) -> &CStr {
        &self.path
    }

    /// As `execve` wants it: pointers into this value, and a null.
    pub fn argv(&self) -> [*const c_char; ARGUMENTS + 1] {
        let mut argv = [std::ptr::null(); ARGUMENTS + 1];
        for (pointer, text) in argv.iter_mut().zip(&self.arguments) {
            *pointer = text.as_ptr();
        }
        argv
    }

    /// Whether a child that was to become this program has ended as the program does. `code`: its
    /// exit code; `None` when a signal ended it.
    pub fn is_right(&self, code: Option<i32>) -> bool {
        code == Some(self.code)
    }
}

pub const SHELL: &CStr = c"/bin/sh";
pub const TRUE: &CStr = c"/bin/true";

/// Whether the caller may execute this file.
pub fn is_executable(path: &CStr) -> bool {
    rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

fn memory_file() -> io::Result<OwnedFd> {
    let create = |flags| rustix::fs::memfd_create("assay-minimal", MemfdFlags::CLOEXEC | flags);
    // Kernels before 6.3 do not know the flag, and need none.
    Ok(create(MemfdFlags::EXEC).or_else(|_| create(MemfdFlags::empty()))?)
}

fn directory_file() -> io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open(std::env::temp_dir(), flags, Mode::RWXU)?)
}

/// `exit_group(MINIMAL_CODE)`.
#[cfg(target_arch = "x86_64")]
const CODE: [u8; 12] = [
    0xbf,
    MINIMAL_CODE as u8,
    0,
    0,
    0, // mov edi, 42
    0xb8,
    231,
    0,
    0,
    0, // mov eax, 231
    0x0f,
    0x05, // syscall
];
#[cfg(target_arch = "aarch64")]
const CODE: [u8; 12] = {
    // movz x0, #42; movz x8, #94; svc #0
    let [a, b, c, d] = (0xd280_0000u32 | (MINIMAL_CODE as u32) << 5).to_le_bytes();
    let [e, f, g, h] = (0xd280_0008u32 | 94 << 5).to_le_bytes();
    let [i, j, k, l] = 0xd400_0001u32.to_le_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l]
};
/// An ELF file as the kernel's loader wants it and no more: its header, one segment that holds the
/// whole file, and the entry that refuses an executable stack.
fn image() -> io::Result<Vec<u8>> {
    let start = elf::code_at(2);
    let length = start + CODE.len() as u64;
    let segments = [elf::Segment::whole(length), elf::Segment::STACK];
    let mut image = elf::header(start, &segments);
    image.extend(CODE);
    match image.len() as u64 == length {
        true => Ok(image),
        false => Err(io::Error::other("the smallest program has come out in another size than it says")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::alone;

    #[test]
    fn the_smallest_program_needs_no_name_anywhere() {
        alone(|| {
            let image = image().expect("an image");
            assert!(image.len() < 256, "{} bytes", image.len());
            for file in [memory_file(), directory_file()] {
                // A temporary directory may refuse unnamed files or execution: then memory is what
                // is left.
                let Ok(program) = file.and_then(|file| Program::of_file(file, &image, MINIMAL_CODE)) else {
                    continue;
                };
                let leads_to = std::fs::read_link(program.path().to_str().expect("text")).expect("a link");
                assert!(leads_to.to_string_lossy().ends_with(" (deleted)"), "{leads_to:?} has a name");
            }
            assert!(Program::minimal().is_ok());
        });
    }

    #[test]
    fn a_file_that_is_no_program_is_refused_with_the_reason() {
        alone(|| {
            let file = memory_file().expect("a file in memory");
            assert!(Program::of_file(file, b"\x7fELF, but no more", MINIMAL_CODE).is_err());
        });
    }
}
