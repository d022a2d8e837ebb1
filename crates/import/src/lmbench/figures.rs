//! What lmbench's figures are here: its names, the keys of the series that mean the same, its
//! units, and where the meanings differ.
//!
//! lmbench counts bandwidth in millions of bytes, not in powers of two ("Deal with it", says
//! lib_timing.c, where MB is 1000*1000.0; 64 MiB stand in its files as 67.11), and block sizes of
//! latency curves in powers of two. Its single tasks run wherever the scheduler puts them, which
//! one pinned task does not feel; its pairs do, so that their counterpart here is the placement
//! `free`.

use crate::builder::Meaning;
use crate::keyed;
use model::{Better, Value};

/// The unit that lmbench has for a figure, and so the one that it has here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Microseconds an operation.
    Us,
    /// Nanoseconds an operation.
    Ns,
    /// Millions of bytes a second: here 10^9.
    Mb,
    /// Microseconds an operation: here operations a second.
    UsEach,
    /// Operations a second.
    PerSecond,
    /// A number without a unit, of which more is better.
    Number,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Us => "us",
            Unit::Ns => "ns",
            Unit::Mb => "GB/s",
            Unit::UsEach | Unit::PerSecond => "1/s",
            Unit::Number => "",
        }
    }

    fn better(self) -> Better {
        match self {
            Unit::Us | Unit::Ns => Better::Lower,
            Unit::Mb | Unit::UsEach | Unit::PerSecond => Better::Higher,
            Unit::Number => Better::Neither,
        }
    }

    /// A value of lmbench's in the unit that it has here; `None` where there is none.
    pub fn ours(self, theirs: f64) -> Option<f64> {
        let value = match self {
            Unit::Mb => theirs / 1e3,
            Unit::UsEach => 1e6 / theirs,
            _ => theirs,
        };
        value.is_finite().then_some(value)
    }

    /// The way back.
    pub fn theirs(self, ours: f64) -> Option<f64> {
        let value = match self {
            Unit::Mb => ours * 1e3,
            Unit::UsEach => 1e6 / ours,
            _ => ours,
        };
        (value.is_finite() && value > 0.0).then_some(value)
    }
}

/// One figure of the summary.
pub struct Figure {
    /// By which tables and lines name it.
    pub name: &'static str,
    /// In lmbench's words.
    pub wording: &'static str,
    /// The series that means the same; under `lmbench.` where there is none.
    pub key: &'static str,
    pub unit: Unit,
    /// How the meanings differ.
    pub note: &'static str,
}

/// lmbench reads a file that it has just written, and does not check whether the page cache still
/// has it.
pub const MAYBE_WARM: &str = "lmbench does not check whether the file is in the page cache";

/// In place of a size: the largest that was asked for, which a summary does not print.
pub const LARGEST_SIZE: &str = "largest";

const SUBTRACTED: &str = "lmbench always subtracts pipe and data; Assay only where they are below 10 %";
/// A hop with all that is in it, which raw files let compute.
pub const WHOLE_HOP: &str = "the figure plus what lmbench subtracted";
const ROUND_TRIP: &str = "lmbench's pair runs where the scheduler puts it";
const SIZE: &str = "at the largest size requested, which the summary does not print";
const NO_COUNTERPART: &str = "not measured by Assay in this form";
const INTERLEAVED: &str = "lmbench divides by its own estimate of the loop's parallelism";

/// The rows below: unit, name, wording, key, and the note of those that have one.
macro_rules! figures {
    ($($unit:ident $name:literal $wording:literal $key:literal $($note:expr)?;)*) => {
        pub const FIGURES: &[Figure] = &[$(Figure {
            name: $name,
            wording: $wording,
            key: $key,
            unit: Unit::$unit,
            note: [$($note,)? ""][0],
        }),*];
    };
}

figures! {
    Number "tlb" "TLB" "lmbench.tlb@one-cpu#pages" NO_COUNTERPART;
    Number "cache line" "cache line" "lmbench.cache-line@one-cpu#bytes" NO_COUNTERPART;
    Number "load parallelism" "Memory load parallelism" "lmbench.load-parallelism@one-cpu/bytes=largest#parallelism"
        SIZE;
    Us "null call" "Simple syscall" "syscall.getpid@one-cpu#latency"
        "lmbench calls getppid through the C library";
    Us "null I/O" "null I/O" "lmbench.null-io@one-cpu#latency" "the mean of a read and a write";
    Us "read" "Simple read" "syscall.read@one-cpu#latency";
    Us "write" "Simple write" "syscall.write@one-cpu#latency";
    Us "stat" "Simple stat" "syscall.stat@one-cpu#latency" "depends on the length of the file's path";
    Us "fstat" "Simple fstat" "syscall.fstat@one-cpu#latency";
    Us "open close" "Simple open/close" "syscall.open-close@one-cpu#latency"
        "depends on the file's path and file system";
    Us "select 100" "Select on 100 fd's" "syscall.select@one-cpu/fds=100#latency"
        "depends on the kind of file";
    Us "select tcp" "Select on 100 tcp fd's" "lmbench.select-tcp@one-cpu/fds=100#latency" NO_COUNTERPART;
    Us "signal install" "Signal handler installation" "signal.handler@one-cpu#install";
    Us "signal handle" "Signal handler overhead" "signal.handler@one-cpu#handle"
        "sending and catching, less a kill() with signal 0; lmbench prints a result of 0 as an empty cell";
    Us "protection fault" "Protection fault" "lmbench.protection-fault@one-cpu#latency"
        "lmbench subtracts the cost of catching an ordinary signal";
    Us "fork" "Process fork+exit" "process.fork@free/resident_mb=0#latency"
        "lmbench's parent is a dynamically linked program";
    Us "exec" "Process fork+execve" "process.exec@free/program=true#latency"
        "lmbench starts a small program of its own";
    Us "shell" "Process fork+/bin/sh -c" "process.shell@free/program=true#latency"
        "depends on the system's shell";
    Ns "integer bit" "integer bit" "lmbench.integer-bit@one-cpu#latency" INTERLEAVED;
    Ns "integer add" "integer add" "lmbench.integer-add@one-cpu#latency" INTERLEAVED;
    Ns "integer mul" "integer mul" "lmbench.integer-mul@one-cpu#latency" INTERLEAVED;
    Ns "integer div" "integer div" "cpu.arithmetic@one-cpu/operation=int32-divide&timing=latency#time"
        INTERLEAVED;
    Ns "integer mod" "integer mod" "lmbench.integer-mod@one-cpu#latency" INTERLEAVED;
    Ns "int64 bit" "int64 bit" "lmbench.int64-bit@one-cpu#latency" INTERLEAVED;
    Ns "int64 add" "int64 add" "cpu.arithmetic@one-cpu/operation=int64-add&timing=latency#time" INTERLEAVED;
    Ns "int64 mul" "int64 mul" "cpu.arithmetic@one-cpu/operation=int64-multiply&timing=latency#time"
        INTERLEAVED;
    Ns "int64 div" "int64 div" "cpu.arithmetic@one-cpu/operation=int64-divide&timing=latency#time"
        INTERLEAVED;
    Ns "int64 mod" "int64 mod" "lmbench.int64-mod@one-cpu#latency" INTERLEAVED;
    Ns "float add" "float add" "cpu.arithmetic@one-cpu/operation=float32-add&timing=latency#time" INTERLEAVED;
    Ns "float mul" "float mul" "cpu.arithmetic@one-cpu/operation=float32-multiply&timing=latency#time"
        INTERLEAVED;
    Ns "float div" "float div" "cpu.arithmetic@one-cpu/operation=float32-divide&timing=latency#time"
        INTERLEAVED;
    Ns "float bogomflops" "float bogomflops" "lmbench.float-bogomflops@one-cpu#latency" NO_COUNTERPART;
    Ns "double add" "double add" "cpu.arithmetic@one-cpu/operation=float64-add&timing=latency#time"
        INTERLEAVED;
    Ns "double mul" "double mul" "cpu.arithmetic@one-cpu/operation=float64-multiply&timing=latency#time"
        INTERLEAVED;
    Ns "double div" "double div" "cpu.arithmetic@one-cpu/operation=float64-divide&timing=latency#time"
        INTERLEAVED;
    Ns "double bogomflops" "double bogomflops" "lmbench.double-bogomflops@one-cpu#latency" NO_COUNTERPART;
    Us "2p/0K" "2p/0K ctxsw" "sched.context-switch@free?processes=2/kb=0#switch" SUBTRACTED;
    Us "2p/16K" "2p/16K ctxsw" "sched.context-switch@free?processes=2/kb=16#switch" SUBTRACTED;
    Us "2p/64K" "2p/64K ctxsw" "sched.context-switch@free?processes=2/kb=64#switch" SUBTRACTED;
    Us "8p/16K" "8p/16K ctxsw" "sched.context-switch@free?processes=8/kb=16#switch" SUBTRACTED;
    Us "8p/64K" "8p/64K ctxsw" "sched.context-switch@free?processes=8/kb=64#switch" SUBTRACTED;
    Us "16p/16K" "16p/16K ctxsw" "sched.context-switch@free?processes=16/kb=16#switch" SUBTRACTED;
    Us "16p/64K" "16p/64K ctxsw" "sched.context-switch@free?processes=16/kb=64#switch" SUBTRACTED;
    Us "pipe" "Pipe latency" "ipc.pipe@free#latency" ROUND_TRIP;
    Us "unix" "AF_UNIX sock stream latency" "ipc.unix-stream@free#latency" ROUND_TRIP;
    Us "udp" "UDP latency using localhost" "ipc.udp@free#latency" ROUND_TRIP;
    Us "rpc udp" "RPC/udp latency using localhost" "lmbench.rpc-udp@free#latency" NO_COUNTERPART;
    Us "tcp" "TCP latency using localhost" "ipc.tcp@free#latency" ROUND_TRIP;
    Us "rpc tcp" "RPC/tcp latency using localhost" "lmbench.rpc-tcp@free#latency" NO_COUNTERPART;
    Us "tcp connect" "TCP/IP connection cost to localhost" "ipc.tcp-connect@free#latency" ROUND_TRIP;
    Us "remote udp" "UDP latency using another host" "lmbench.remote-udp@free#latency" NO_COUNTERPART;
    Us "remote rpc udp" "RPC/udp latency using another host" "lmbench.remote-rpc-udp@free#latency"
        NO_COUNTERPART;
    Us "remote tcp" "TCP latency using another host" "lmbench.remote-tcp@free#latency" NO_COUNTERPART;
    Us "remote rpc tcp" "RPC/tcp latency using another host" "lmbench.remote-rpc-tcp@free#latency"
        NO_COUNTERPART;
    Us "remote tcp connect" "TCP/IP connection cost to another host" "lmbench.remote-tcp-connect@free#latency"
        NO_COUNTERPART;
    UsEach "0K create" "0K File Create" "file.create@one-cpu/bytes=0#create" "depends on the file system";
    UsEach "0K delete" "0K File Delete" "file.create@one-cpu/bytes=0#delete" "depends on the file system";
    UsEach "10K create" "10K File Create" "file.create@one-cpu/bytes=10240#create"
        "depends on the file system";
    UsEach "10K delete" "10K File Delete" "file.create@one-cpu/bytes=10240#delete"
        "depends on the file system";
    Us "mmap" "Mmap Latency" "lmbench.mmap@one-cpu/bytes=largest#latency" SIZE;
    Us "page fault" "Page Fault" "vm.file-fault@one-cpu#page"
        "a page of a file in the page cache, the mean over all touched pages";
    Mb "pipe bandwidth" "Pipe bandwidth" "ipc.pipe-bandwidth@free/message=65536#bandwidth" ROUND_TRIP;
    Mb "unix bandwidth" "AF_UNIX sock stream bandwidth" "ipc.unix-bandwidth@free/message=65536#bandwidth"
        ROUND_TRIP;
    Mb "tcp bandwidth" "Socket bandwidth using localhost" "ipc.tcp-bandwidth@free/message=largest#bandwidth"
        SIZE;
    Mb "file reread" "File reread" "file.read@one-cpu?cache=warm/bytes=largest#io" SIZE;
    Mb "mmap reread" "Mmap reread" "file.mmap@one-cpu?cache=warm/bytes=largest#io" SIZE;
    Mb "bcopy libc" "Bcopy (libc)" "lmbench.bcopy-libc@one-cpu/bytes=largest#bandwidth" SIZE;
    Mb "bcopy hand" "Bcopy (hand)" "lmbench.bcopy-hand@one-cpu/bytes=largest#bandwidth" SIZE;
    Mb "memory read" "Mem read" "memory.bandwidth@one-cpu?op=read/bytes=largest#bandwidth" SIZE;
    Mb "memory write" "Mem write" "memory.bandwidth@one-cpu?op=write/bytes=largest#bandwidth" SIZE;
    Ns "L1" "L1 $" "memory.latency@one-cpu?order=stride&stride=128/bytes=4096#latency"
        "lmbench's block has 1 KiB, Assay's 4 KiB: both fit any L1";
    Ns "L2" "L2 $" "memory.latency@one-cpu?order=stride&stride=128/bytes=131072#latency";
    Ns "main memory" "Main mem" "memory.latency@one-cpu?order=stride&stride=128/bytes=largest#latency" SIZE;
    Ns "random memory" "Rand mem" "memory.latency@one-cpu?order=random/bytes=largest#latency" SIZE;
}

pub fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

impl Figure {
    /// How a cell of it is to be understood.
    pub fn meaning(&self) -> Option<Meaning> {
        meaning(self.key, self.wording, self.unit, self.note)
    }
}

/// The same of any key.
pub fn meaning(key: &str, wording: &str, unit: Unit, note: &str) -> Option<Meaning> {
    Some(Meaning {
        keyed: keyed(key)?,
        wording: wording.to_string(),
        unit: unit.name().into(),
        better: unit.better(),
        note: note.to_string(),
    })
}

/// Whether a point of a series has an unknown size.
pub fn has_unknown_size(value: &Value) -> bool {
    value.text() == Some(LARGEST_SIZE)
}
