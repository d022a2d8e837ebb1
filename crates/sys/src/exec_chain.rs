//! A program that replaces itself by `execve` repeatedly; the dynamic linker loads it with the C
//! library each time.

use std::arch::global_asm;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::io::{Errno, FdFlags};
use rustix::pipe::PipeFlags;

use super::elf::{self, Linkage, Segment};
use super::program::Program;
use super::spawn::{self, Ended, StartMethod};

// Uses the C library as a program that counts its starts: converts a number to text and back, reads
// the time and an environment variable, writes to a page of zeros. Then it reads a byte from
// `input`:
// - `a`: calls execve with its own path, arguments and environment
// - any other byte: exits with 42; no byte: exits with 43 It exits with 44 if execve fails, with 45
//   if the number came back wrong. `code` fills in the words behind the code. The symbols are weak
//   because this crate's tests link the crate a second time, through `testkit`.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .rodata.assay_exec_chain, \"a\", @progbits",
    ".balign 16",
    ".weak assay_exec_chain_begin",
    "assay_exec_chain_begin:",
    "mov rbx, rsp",
    "sub rsp, 128",
    "mov rax, [rip + assay_exec_chain_zeros]",
    "mov qword ptr [rax], 1",
    "mov r12, [rip + assay_exec_chain_table]",
    "lea rdi, [rsp + 64]",
    "mov rsi, [rip + assay_exec_chain_format]",
    "mov edx, 1976",
    "xor eax, eax",
    "call [r12]", // sprintf
    "lea rdi, [rsp + 64]",
    "xor esi, esi",
    "mov edx, 10",
    "call [r12 + 8]", // strtol
    "mov edi, 45",
    "cmp rax, 1976",
    "jne 3f",
    "xor edi, edi",
    "call [r12 + 16]", // time
    "mov rdi, [rip + assay_exec_chain_format]",
    "call [r12 + 24]", // getenv: there is no such variable
    "xor eax, eax",    // read
    "mov edi, dword ptr [rip + assay_exec_chain_input]",
    "mov rsi, rsp",
    "mov edx, 1",
    "syscall",
    "mov edi, 43",
    "cmp rax, 1",
    "jne 3f",
    "mov edi, 42",
    "cmp byte ptr [rsp], 97",
    "jne 3f",
    "mov rdi, [rbx + 8]",
    "lea rsi, [rbx + 8]",
    "mov rcx, [rbx]",
    "lea rdx, [rbx + rcx * 8 + 16]",
    "mov eax, 59", // execve
    "syscall",
    "mov edi, 44",
    "3:",
    "mov eax, 231", // exit_group
    "syscall",
    ".balign 8",
    "assay_exec_chain_input: .quad 0",
    "assay_exec_chain_table: .quad 0",
    "assay_exec_chain_format: .quad 0",
    "assay_exec_chain_zeros: .quad 0",
    ".weak assay_exec_chain_end",
    "assay_exec_chain_end:",
    ".popsection",
);
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .rodata.assay_exec_chain, \"a\", @progbits",
    ".balign 16",
    ".weak assay_exec_chain_begin",
    "assay_exec_chain_begin:",
    "mov x19, sp",
    "sub sp, sp, #128",
    "ldr x9, assay_exec_chain_zeros",
    "mov x10, #1",
    "str x10, [x9]",
    "ldr x20, assay_exec_chain_table",
    "add x0, sp, #64",
    "ldr x1, assay_exec_chain_format",
    "mov x2, #1976",
    "ldr x9, [x20]", // sprintf
    "blr x9",
    "add x0, sp, #64",
    "mov x1, #0",
    "mov x2, #10",
    "ldr x9, [x20, #8]", // strtol
    "blr x9",
    "mov x9, x0",
    "mov x0, #45",
    "cmp x9, #1976",
    "b.ne 3f",
    "mov x0, #0",
    "ldr x9, [x20, #16]", // time
    "blr x9",
    "ldr x0, assay_exec_chain_format",
    "ldr x9, [x20, #24]", // getenv: there is no such variable
    "blr x9",
    "ldr w0, assay_exec_chain_input",
    "mov x1, sp",
    "mov x2, #1",
    "mov x8, #63", // read
    "svc #0",
    "mov x9, x0",
    "mov x0, #43",
    "cmp x9, #1",
    "b.ne 3f",
    "mov x0, #42",
    "ldrb w10, [sp]",
    "cmp w10, #97",
    "b.ne 3f",
    "ldr x0, [x19, #8]",
    "add x1, x19, #8",
    "ldr x10, [x19]",
    "add x2, x1, x10, lsl #3",
    "add x2, x2, #8",
    "mov x8, #221", // execve
    "svc #0",
    "mov x0, #44",
    "3:",
    "mov x8, #94", // exit_group
    "svc #0",
    ".balign 8",
    "assay_exec_chain_input: .quad 0",
    "assay_exec_chain_table: .quad 0",
    "assay_exec_chain_format: .quad 0",
    "assay_exec_chain_zeros: .quad 0",
    ".weak assay_exec_chain_end",
    "assay_exec_chain_end:",
    ".popsection",
);

/// The type of relocation that makes the dynamic linker write a symbol's address into a table.
#[cfg(target_arch = "x86_64")]
const GLOB_DAT: u64 = 6;
#[cfg(target_arch = "aarch64")]
const GLOB_DAT: u64 = 1025;

unsafe extern "C" {
    #[link_name = "assay_exec_chain_begin"]
    static BEGIN: u8;
    #[link_name = "assay_exec_chain_end"]
    static END: u8;
}

const EXEC: u8 = b'a';
const EXIT: u8 = b'.';
/// Exit code after the byte [`EXIT`].
const CODE: i32 = 42;

/// Every pipe has at least this capacity, bytes.
const MAX_ORDERS: u64 = 4096;

/// The program, and the pipe from which it reads its orders.
pub struct ExecChain {
    program: Program,
    orders_writer: OwnedFd,
    orders_reader: OwnedFd,
}

/// The outcome of a run of the chain.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub ended: Ended,
    /// Orders that the program did not read.
    pub left: u64,
}

impl Run {
    pub fn is_right(&self) -> bool {
        self.left == 0 && self.ended.code() == Some(CODE)
    }
}

/// The program uses the dynamic linker and C library of this one.
const LINKED_AS: &str = "/bin/sh";

/// Why this host cannot run the chain; `None` if it can.
pub fn why_unavailable() -> Option<String> {
    elf::linkage_of(Path::new(LINKED_AS)).err().map(|why| format!("cannot link a program: {why}"))
}

impl ExecChain {
    /// Makes the program and tries it once. It uses the dynamic linker and C library of /bin/sh.
    pub fn new() -> io::Result<ExecChain> {
        let linkage = elf::linkage_of(Path::new(LINKED_AS))?;
        // Non-blocking, so that no error makes a process wait for this pipe.
        let (orders_reader, orders_writer) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        rustix::io::fcntl_setfd(&orders_reader, FdFlags::empty())?;
        write(&orders_writer, &[EXIT])?;
        let program = Program::of_image(&image(&linkage, orders_reader.as_raw_fd() as u64), CODE)?;
        Ok(ExecChain { program, orders_writer, orders_reader })
    }

    /// Starts the program `times` times in all, by one child for each 4096 times, and reaps it.
    pub fn run(&self, times: u64) -> io::Result<Run> {
        let mut run = Run { ended: self.start_child(times.min(MAX_ORDERS))?, left: self.take_left()? };
        let mut done = times.min(MAX_ORDERS);
        while done < times && run.is_right() {
            let next = (times - done).min(MAX_ORDERS);
            run = Run { ended: self.start_child(next)?, left: self.take_left()? };
            done += next;
        }
        Ok(Run { left: run.left + (times - done), ..run })
    }

    fn start_child(&self, times: u64) -> io::Result<Ended> {
        let mut orders = vec![EXEC; times as usize];
        if let Some(last) = orders.last_mut() {
            *last = EXIT;
        }
        write(&self.orders_writer, &orders)?;
        spawn::start(StartMethod::Fork, &self.program)
    }

    /// Empties the pipe; returns the number of orders in it.
    fn take_left(&self) -> io::Result<u64> {
        let mut orders = [0; MAX_ORDERS as usize];
        match rustix::io::read(&self.orders_reader, &mut orders) {
            Ok(left) => Ok(left as u64),
            Err(Errno::AGAIN) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

fn write(pipe: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    match rustix::io::write(pipe, bytes)? {
        written if written == bytes.len() => Ok(()),
        written => Err(io::Error::other(format!("a pipe took {written} of {} bytes", bytes.len()))),
    }
}

/// The code, with four words behind it: the descriptor that it reads from, and the addresses of its
/// table, its format and its zeros.
fn code(words: [u64; 4]) -> Vec<u8> {
    let (begin, end) = (&raw const BEGIN, &raw const END);
    // SAFETY: the assembly above defines both symbols in one section, the first before and the
    // second behind the code.
    let code = unsafe { std::slice::from_raw_parts(begin, end.offset_from_unsigned(begin)) };
    let body = &code[..code.len() - size_of_val(&words)];
    [body, &words.map(u64::to_le_bytes).concat()].concat()
}

/// The functions that the code calls, in the order of its table.
const FUNCTIONS: [&[u8]; 4] = [b"sprintf", b"strtol", b"time", b"getenv"];
const SYMBOLS: u64 = FUNCTIONS.len() as u64 + 1;

/// Zeros behind the table, bytes; the code writes to one of their pages.
const ZERO_BYTES: u64 = 8192;
const SMALL_PAGE_BYTES: u64 = 4096;

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The content of the file, appended piece by piece.
struct Content {
    bytes: Vec<u8>,
    /// Its offset in the file.
    begin: u64,
}

impl Content {
    /// Appends a piece and returns its offset in the file.
    fn put(&mut self, piece: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        self.bytes.extend(piece);
        self.end() - piece.len() as u64
    }

    fn put_words(&mut self, words: &[u64]) -> u64 {
        self.put(&bytes_of(words))
    }

    fn replace(&mut self, offset: u64, bytes: &[u8]) {
        let start = (offset - self.begin) as usize;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }
}

/// The address of an offset in the file. In memory each part has its own pages.
fn address(part: u64, offset: u64) -> u64 {
    elf::BASE + part * elf::PAGE_BYTES + offset
}

/// Offsets of the data that the dynamic linker reads.
struct LinkerPart {
    linker: u64,
    /// Offset within the names.
    library: u64,
    names: u64,
    names_bytes: u64,
    symbols: u64,
    hash: u64,
    relocations: u64,
}

impl LinkerPart {
    /// Appends names, symbols, a hash table of one bucket, and space for relocations. Symbol 0 is
    /// unused.
    fn put(content: &mut Content, linkage: &Linkage) -> LinkerPart {
        let linker = content.put(&[&linkage.linker[..], b"\0"].concat());
        let mut names = vec![0];
        let mut name = |text: &[u8]| {
            let index = names.len() as u64;
            names.extend([text, b"\0"].concat());
            index
        };
        let library = name(&linkage.library);
        let functions = FUNCTIONS.map(&mut name);
        let names_bytes = names.len() as u64;
        let names = content.put(&names);
        let mut symbols = vec![0; 24];
        for function in functions {
            // Name; a global function, undefined here; no value, no size.
            elf::push(&mut symbols, &[(function, 4), (0x12, 1), (0, 1), (0, 2), (0, 8), (0, 8)]);
        }
        let symbols = content.put(&symbols);
        let mut hash = Vec::new();
        elf::push(&mut hash, &[(1, 4), (SYMBOLS, 4), (0, 4)]);
        elf::push(&mut hash, &[(0, 4); SYMBOLS as usize]);
        let hash = content.put(&hash);
        let relocations = content.put_words(&[0; 3 * FUNCTIONS.len()]);
        LinkerPart { linker, library, names, names_bytes, symbols, hash, relocations }
    }

    /// The dynamic table: tags and values.
    fn dynamic(&self) -> [[u64; 2]; 10] {
        [
            [elf::NEEDED, self.library],
            [elf::HASH, address(0, self.hash)],
            [elf::STRING_TABLE, address(0, self.names)],
            [elf::SYMBOL_TABLE, address(0, self.symbols)],
            [elf::STRING_BYTES, self.names_bytes],
            [elf::SYMBOL_BYTES, 24],
            [elf::RELOCATIONS, address(0, self.relocations)],
            [elf::RELOCATIONS_BYTES, 24 * FUNCTIONS.len() as u64],
            [elf::RELOCATION_BYTES, 24],
            [0, 0],
        ]
    }
}

/// An executable for the dynamic linker, laid out as compilers lay out small programs: data for the
/// linker (part 0), code (1), constants (2), a table that the linker fills in and protects with
/// zeros behind it (3). In the file the parts share a page.
fn image(linkage: &Linkage, input: u64) -> Vec<u8> {
    const SEGMENTS: u64 = 8;
    let mut content = Content { bytes: Vec::new(), begin: elf::code_at(SEGMENTS) };
    let part = LinkerPart::put(&mut content, linkage);
    let first = content.end();

    // A placeholder of the right size: the code refers to addresses behind it.
    let start = content.put(&code([0; 4]));
    let format = content.put(b"%ld\0");
    let constants = content.end();
    let dynamic = part.dynamic();
    let entries = content.put_words(dynamic.as_flattened());
    let dynamic_bytes = size_of_val(&dynamic) as u64;
    let table = content.put_words(&[0; FUNCTIONS.len()]);
    let filled = content.end() - entries;
    let protected = SMALL_PAGE_BYTES - entries % SMALL_PAGE_BYTES;
    let zeros = address(3, entries) + protected;
    content.replace(start, &code([input, address(3, table), address(2, format), zeros]));
    let relocation = |index: u64| [address(3, table + index * 8), (index + 1) << 32 | GLOB_DAT, 0];
    content.replace(part.relocations, &bytes_of([0, 1, 2, 3].map(relocation).as_flattened()));

    let segment = |kind, flags, part, offset, in_file, in_memory| Segment {
        kind,
        flags,
        offset,
        address: address(part, offset),
        in_file,
        in_memory,
        alignment: if kind == elf::LOAD { elf::PAGE_BYTES } else { 1 },
    };
    let (readable, writable) = (elf::READABLE, elf::READABLE | elf::WRITABLE);
    let path = linkage.linker.len() as u64 + 1;
    let segments: [Segment; SEGMENTS as usize] = [
        segment(elf::INTERPRETER, readable, 0, part.linker, path, path),
        segment(elf::LOAD, readable, 0, 0, first, first),
        segment(elf::LOAD, readable | elf::EXECUTABLE, 1, start, format - start, format - start),
        segment(elf::LOAD, readable, 2, format, constants - format, constants - format),
        segment(elf::LOAD, writable, 3, entries, filled, protected + ZERO_BYTES),
        segment(elf::DYNAMIC, writable, 3, entries, dynamic_bytes, dynamic_bytes),
        segment(elf::PROTECTED, readable, 3, entries, filled, protected),
        Segment::STACK,
    ];
    [elf::header(address(1, start) - elf::BASE, &segments), content.bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::alone;

    #[test]
    fn the_program_is_started_as_often_as_ordered() {
        alone(|| {
            // Unavailable if /bin/sh is static.
            let Ok(chain) = ExecChain::new() else { return };
            for times in [1, 2, 50, MAX_ORDERS + 3] {
                let run = chain.run(times).expect("started");
                assert!(run.is_right(), "{times}: {run:?}");
            }
            assert!(spawn::has_no_child());
        });
    }

    #[test]
    fn left_and_missing_orders_are_noticed() {
        alone(|| {
            let Ok(chain) = ExecChain::new() else { return };
            // One too many: the program ends at the first `.`.
            write(&chain.orders_writer, b"..").expect("room");
            let run = chain.run(3).expect("started");
            assert!(!run.is_right() && run.left == 4, "{run:?}");
            // None at all.
            let ended = spawn::start(StartMethod::Fork, &chain.program).expect("started");
            assert_eq!(ended.code(), Some(43));
        });
    }

    #[test]
    fn a_missing_linker_is_an_error() {
        alone(|| {
            let linkage = Linkage { linker: b"/nowhere/ld.so".to_vec(), library: b"libc.so.6".to_vec() };
            assert!(Program::of_image(&image(&linkage, 0), CODE).is_err());
        });
    }
}
