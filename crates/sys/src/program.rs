//! Programs to start: a minimal executable made here, and programs of the system.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;

use rustix::fs::{Access, MemfdFlags, Mode, OFlags};

use super::elf;

/// A program with its arguments; starting it needs no allocation.
pub struct Program {
    path: CString,
    arguments: Vec<CString>,
    /// Its exit code if it succeeds.
    code: i32,
    /// The file behind `path` if it has no name of its own.
    _file: Option<OwnedFd>,
}

/// Largest number of arguments, including the program's name.
const MAX_ARGUMENTS: usize = 3;

/// Exit code of the minimal program; no other program here uses it.
const MINIMAL_CODE: i32 = 42;

impl Program {
    /// The minimal program: a static executable of about 200 bytes that calls `exit_group` after
    /// two instructions.
    ///
    /// It is kept in memory (`memfd_create`), or in an unnamed file of the temporary directory if
    /// the kernel refuses to execute from memory. The error says why both failed.
    pub fn minimal() -> io::Result<Program> {
        Program::of_image(&image()?, MINIMAL_CODE)
    }

    /// A program from the bytes of its executable, kept like [`Program::minimal`]. It is tried once
    /// and must exit with `code`.
    pub fn of_image(image: &[u8], code: i32) -> io::Result<Program> {
        let in_memory = memory_file().and_then(|file| Program::of_file(file, image, code));
        in_memory.or_else(|in_memory| {
            let in_directory = directory_file().and_then(|file| Program::of_file(file, image, code));
            in_directory.map_err(|in_file| {
                let why =
                    format!("cannot start a test program from memory ({in_memory}) or a file ({in_file})");
                io::Error::new(in_file.kind(), why)
            })
        })
    }

    /// A program of the system.
    pub fn at(path: &CStr, arguments: &[&CStr], code: i32) -> Program {
        let arguments = arguments.iter().take(MAX_ARGUMENTS).map(|text| CString::from(*text)).collect();
        Program { path: path.into(), arguments, code, _file: None }
    }

    /// `sh -c` of this program.
    pub fn by_shell(&self) -> Program {
        Program::at(SHELL, &[c"sh", c"-c", &self.path], self.code)
    }

    /// Writes the image and tries it.
    fn of_file(file: OwnedFd, image: &[u8], code: i32) -> io::Result<Program> {
        if rustix::io::write(&file, image)? != image.len() {
            return Err(io::Error::other("the program was written only in part"));
        }
        // A file that is open for writing cannot be executed, so it is opened again for reading and
        // the first descriptor closed. Children inherit the second one and execute through it.
        let writable = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let readable = rustix::fs::open(writable.as_c_str(), OFlags::RDONLY, Mode::empty())?;
        drop(file);
        let readable_path = format!("/proc/self/fd/{}", readable.as_fd().as_raw_fd());
        let path = CString::new(readable_path.as_str())?;
        let program = Program { arguments: vec![path.clone()], path, code, _file: Some(readable) };
        let status = Command::new(&readable_path).env_clear().status()?;
        if program.is_right(status.code()) {
            Ok(program)
        } else {
            Err(io::Error::other(format!("the program ended with {status}, not with code {code}")))
        }
    }

    pub fn path(&self) -> &CStr {
        &self.path
    }

    /// The arguments for `execve`: pointers into this value, then null.
    pub fn argv(&self) -> [*const c_char; MAX_ARGUMENTS + 1] {
        let mut argv = [std::ptr::null(); MAX_ARGUMENTS + 1];
        for (pointer, text) in argv.iter_mut().zip(&self.arguments) {
            *pointer = text.as_ptr();
        }
        argv
    }

    /// Whether a child that executed this program succeeded. `code`: its exit code; `None` if a
    /// signal ended it.
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
    // Kernels before 6.3 do not know the flag and do not need it.
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
/// The minimal ELF file that the kernel loads: header, one segment for the whole file, and an entry
/// for a stack that is not executable.
fn image() -> io::Result<Vec<u8>> {
    let start = elf::code_at(2);
    let length = start + CODE.len() as u64;
    let segments = [elf::Segment::whole(length), elf::Segment::STACK];
    let mut image = elf::header(start, &segments);
    image.extend(CODE);
    if image.len() as u64 == length {
        Ok(image)
    } else {
        Err(io::Error::other(format!("the minimal program has {} bytes, not {length}", image.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::alone;

    #[test]
    fn the_minimal_program_has_no_name() {
        alone(|| {
            let image = image().expect("an image");
            assert!(image.len() < 256, "{} bytes", image.len());
            for file in [memory_file(), directory_file()] {
                // A temporary directory may refuse unnamed files or execution.
                let Ok(program) = file.and_then(|file| Program::of_file(file, &image, MINIMAL_CODE)) else {
                    continue;
                };
                let target = std::fs::read_link(program.path().to_str().expect("text")).expect("a link");
                assert!(target.to_string_lossy().ends_with(" (deleted)"), "{target:?} has a name");
            }
            assert!(Program::minimal().is_ok());
        });
    }

    #[test]
    fn a_file_that_is_not_a_program_is_refused() {
        alone(|| {
            let file = memory_file().expect("a file in memory");
            assert!(Program::of_file(file, b"\x7fELF, but no more", MINIMAL_CODE).is_err());
        });
    }
}
