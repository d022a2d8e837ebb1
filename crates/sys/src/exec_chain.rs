//! A program that becomes itself again and again, loaded by the dynamic linker with the C library
//! each time.

use std::arch::global_asm;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::io::{Errno, FdFlags};
use rustix::pipe::PipeFlags;

use super::elf::{self, Linked, Segment};
use super::program::Program;
use super::spawn::{self, Ended, Way};

// Does with the C library what a program does that counts its own starts: turns a number into text
// and back, asks for the time and for a variable, and writes to its own page of zeros. Then it
// reads a byte from `input`. An `a`: becomes the program of its own name once more, with its
// arguments and environment. Any other byte: ends with 42. No byte: ends with 43. A program that
// could not become itself ends with 44, one whose number came back as another with 45. `code` fills
// in what stands behind the code. The names are weak: this crate's tests link the crate a second
// time, through `testkit`.
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

/// The relocation by which the dynamic linker puts a symbol's address into a table.
#[cfg(target_arch = "x86_64")]
const TABLE_ENTRY: u64 = 6;
#[cfg(target_arch = "aarch64")]
const TABLE_ENTRY: u64 = 1025;

unsafe extern "C" {
    #[link_name = "assay_exec_chain_begin"]
    static BEGIN: u8;
    #[link_name = "assay_exec_chain_end"]
    static END: u8;
}

const AGAIN: u8 = b'a';
const ENOUGH: u8 = b'.';
/// What it ends with when it has become itself often enough.
const CODE: i32 = 42;

/// As many bytes as every pipe holds.
const MOST_AT_ONCE: u64 = 4096;

/// The program, and the pipe that tells it how often.
pub struct ExecChain {
    program: Program,
    tells: OwnedFd,
    told: OwnedFd,
}

/// How a run of the chain went.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub ended: Ended,
    /// Times that the program was to become itself and has not.
    pub left: u64,
}

impl Run {
    pub fn is_right(&self) -> bool {
        self.left == 0 && self.ended.code() == Some(CODE)
    }
}

/// Whose dynamic linker and C library the program has.
const LINKED_AS: &str = "/bin/sh";

/// Why there can be no such program on this system; `None` where it can.
pub fn lack() -> Option<String> {
    elf::linked(Path::new(LINKED_AS)).err().map(|why| format!("no program can be linked here: {why}"))
}

impl ExecChain {
    /// Makes the program and tries it once. It is linked as /bin/sh is: by the same dynamic linker,
    /// with the same C library.
    pub fn new() -> io::Result<ExecChain> {
        let linked = elf::linked(Path::new(LINKED_AS))?;
        // Nobody waits at this pipe, whatever goes wrong.
        let (told, tells) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        rustix::io::fcntl_setfd(&told, FdFlags::empty())?;
        write(&tells, &[ENOUGH])?;
        let program = Program::of_image(&image(&linked, told.as_raw_fd() as u64), CODE)?;
        Ok(ExecChain { program, tells, told })
    }

    /// Starts the program in a child, which is reaped when the program has been started `times` in
    /// all.
    pub fn run(&self, times: u64) -> io::Result<Run> {
        let mut run = Run { ended: self.link(times.min(MOST_AT_ONCE))?, left: self.left()? };
        let mut done = times.min(MOST_AT_ONCE);
        while done < times && run.is_right() {
            let next = (times - done).min(MOST_AT_ONCE);
            run = Run { ended: self.link(next)?, left: self.left()? };
            done += next;
        }
        Ok(Run { left: run.left + (times - done), ..run })
    }

    fn link(&self, times: u64) -> io::Result<Ended> {
        let mut orders = vec![AGAIN; times as usize];
        if let Some(last) = orders.last_mut() {
            *last = ENOUGH;
        }
        write(&self.tells, &orders)?;
        spawn::start(Way::Fork, &self.program)
    }

    /// Takes what nobody has taken out of the pipe.
    fn left(&self) -> io::Result<u64> {
        let mut orders = [0; MOST_AT_ONCE as usize];
        match rustix::io::read(&self.told, &mut orders) {
            Ok(left) => Ok(left as u64),
            Err(Errno::AGAIN) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

fn write(pipe: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    match rustix::io::write(pipe, bytes)? == bytes.len() {
        true => Ok(()),
        false => Err(io::Error::other("a pipe took less than it should")),
    }
}

/// The code, and behind it the descriptor that it reads from and the addresses of its table, its
/// format and its zeros.
fn code(behind: [u64; 4]) -> Vec<u8> {
    let (begin, end) = (&raw const BEGIN, &raw const END);
    // SAFETY: both symbols stand in the block above, the first before and the second behind the
    // code, in one section of constants.
    let code = unsafe { std::slice::from_raw_parts(begin, end.offset_from_unsigned(begin)) };
    let body = &code[..code.len() - size_of_val(&behind)];
    [body, &behind.map(u64::to_le_bytes).concat()].concat()
}

/// What the code calls, in the order of its table.
const FUNCTIONS: [&[u8]; 4] = [b"sprintf", b"strtol", b"time", b"getenv"];
const SYMBOLS: u64 = FUNCTIONS.len() as u64 + 1;

/// Pages of zeros behind the table, one of which is written to.
const ZEROS: u64 = 8192;
const SMALL_PAGE: u64 = 4096;

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// What is put together piece by piece.
struct Content {
    bytes: Vec<u8>,
    begin: u64,
}

impl Content {
    /// Appends a piece; its offset in the file.
    fn put(&mut self, piece: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        self.bytes.extend(piece);
        self.end() - piece.len() as u64
    }

    fn put_words(&mut self, words: &[u64]) -> u64 {
        self.put(&bytes_of(words))
    }

    fn replace(&mut self, offset: u64, bytes: &[u8]) {
        let into = (offset - self.begin) as usize;
        self.bytes[into..into + bytes.len()].copy_from_slice(bytes);
    }

    fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }
}

/// The address of an offset in the file. Each part has pages of its own in memory.
fn at(part: u64, offset: u64) -> u64 {
    elf::BASE + part * elf::PAGE + offset
}

/// Offsets of what the dynamic linker reads.
struct LinkerPart {
    linker: u64,
    /// Among the names.
    library: u64,
    names: u64,
    names_bytes: u64,
    symbols: u64,
    hash: u64,
    relocations: u64,
}

impl LinkerPart {
    /// Names, symbols, a hash table of one bucket, and room for relocations. Symbol 0 is none.
    fn put(content: &mut Content, linked: &Linked) -> LinkerPart {
        let linker = content.put(&[&linked.linker[..], b"\0"].concat());
        let mut names = vec![0];
        let mut name = |text: &[u8]| {
            let index = names.len() as u64;
            names.extend([text, b"\0"].concat());
            index
        };
        let library = name(&linked.library);
        let functions = FUNCTIONS.map(&mut name);
        let names_bytes = names.len() as u64;
        let names = content.put(&names);
        let mut symbols = vec![0; 24];
        for function in functions {
            // Name; a global function, somewhere else; no value, no size.
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

    /// The table that leads the linker to all of it.
    fn dynamic(&self) -> [[u64; 2]; 10] {
        [
            [elf::NEEDED, self.library],
            [elf::HASH, at(0, self.hash)],
            [elf::STRING_TABLE, at(0, self.names)],
            [elf::SYMBOL_TABLE, at(0, self.symbols)],
            [elf::STRING_BYTES, self.names_bytes],
            [elf::SYMBOL_BYTES, 24],
            [elf::RELOCATIONS, at(0, self.relocations)],
            [elf::RELOCATIONS_BYTES, 24 * FUNCTIONS.len() as u64],
            [elf::RELOCATION_BYTES, 24],
            [0, 0],
        ]
    }
}

/// An executable that the dynamic linker loads, of the shape that compilers give to small programs:
/// what the linker reads, the code, its constants, and a table that the linker fills in and
/// protects, with zeros behind it. In the file the parts share a page.
fn image(linked: &Linked, input: u64) -> Vec<u8> {
    const SEGMENTS: u64 = 8;
    let mut content = Content { bytes: Vec::new(), begin: elf::code_at(SEGMENTS) };
    let part = LinkerPart::put(&mut content, linked);
    let first = content.end();

    // The code refers to what comes behind it: its size is known, its content follows.
    let start = content.put(&code([0; 4]));
    let format = content.put(b"%ld\0");
    let constants = content.end();
    let dynamic = part.dynamic();
    let entries = content.put_words(dynamic.as_flattened());
    let dynamic_bytes = size_of_val(&dynamic) as u64;
    let table = content.put_words(&[0; FUNCTIONS.len()]);
    let filled = content.end() - entries;
    let protected = SMALL_PAGE - entries % SMALL_PAGE;
    let zeros = at(3, entries) + protected;
    content.replace(start, &code([input, at(3, table), at(2, format), zeros]));
    let relocation = |index: u64| [at(3, table + index * 8), (index + 1) << 32 | TABLE_ENTRY, 0];
    content.replace(part.relocations, &bytes_of([0, 1, 2, 3].map(relocation).as_flattened()));

    let segment = |kind, flags, part, offset, in_file, in_memory| Segment {
        kind,
        flags,
        offset,
        address: at(part, offset),
        in_file,
        in_memory,
        alignment: if kind == elf::LOAD { elf::PAGE } else { 1 },
    };
    let (readable, writable) = (elf::READABLE, elf::READABLE | elf::WRITABLE);
    let path = linked.linker.len() as u64 + 1;
    let segments: [Segment; SEGMENTS as usize] = [
        segment(elf::INTERPRETER, readable, 0, part.linker, path, path),
        segment(elf::LOAD, readable, 0, 0, first, first),
        segment(elf::LOAD, readable | elf::EXECUTABLE, 1, start, format - start, format - start),
        segment(elf::LOAD, readable, 2, format, constants - format, constants - format),
        segment(elf::LOAD, writable, 3, entries, filled, protected + ZEROS),
        segment(elf::DYNAMIC, writable, 3, entries, dynamic_bytes, dynamic_bytes),
        segment(elf::PROTECTED, readable, 3, entries, filled, protected),
        Segment::STACK,
    ];
    [elf::header(at(1, start) - elf::BASE, &segments), content.bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::alone;

    #[test]
    fn a_program_becomes_itself_as_often_as_it_is_told() {
        alone(|| {
            // Where /bin/sh is static there is no dynamic linker to ask.
            let Ok(chain) = ExecChain::new() else { return };
            for times in [1, 2, 50, MOST_AT_ONCE + 3] {
                let run = chain.run(times).expect("started");
                assert!(run.is_right(), "{times}: {run:?}");
            }
            assert!(spawn::has_no_child());
        });
    }

    #[test]
    fn orders_that_are_left_or_missing_are_seen() {
        alone(|| {
            let Ok(chain) = ExecChain::new() else { return };
            // One too many: the program ends at the first `.`.
            write(&chain.tells, b"..").expect("room");
            let run = chain.run(3).expect("started");
            assert!(!run.is_right() && run.left == 4, "{run:?}");
            // None at all.
            let ended = spawn::start(Way::Fork, &chain.program).expect("started");
            assert_eq!(ended.code(), Some(43));
        });
    }

    #[test]
    fn a_linker_that_is_not_there_is_an_error() {
        alone(|| {
            let linked = Linked { linker: b"/nowhere/ld.so".to_vec(), library: b"libc.so.6".to_vec() };
            assert!(Program::of_image(&image(&linked, 0), CODE).is_err());
        });
    }
}
