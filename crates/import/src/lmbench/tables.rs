//! The tables of lmbench's summary: their headings as they are printed, and which figure stands in
//! which column.

/// A column of a table.
pub struct Column {
    pub holds: CellContent,
    /// Spaces before it.
    pub gap: usize,
    /// Characters that it has in a row.
    pub width: usize,
    /// Characters for which lmbench formats the value; what the column does not hold of them is cut
    /// off.
    pub digits: usize,
    /// Where the texts of its cells may end, if not at the column's end: builds differ in the last
    /// table.
    pub limit: Option<usize>,
}

/// What a column says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CellContent {
    /// A figure by its name in the list of figures.
    Figure(&'static str),
    /// A fact of the host, by its label.
    Fact(&'static str),
}

pub struct Table {
    /// How its title begins.
    pub title: &'static str,
    /// Other beginnings of the same table.
    pub also: &'static [&'static str],
    /// Title, header lines and the dashes, as printed.
    pub heading: &'static str,
    pub columns: &'static [Column],
}

/// Characters of host and system before the first column.
pub const HOST: usize = 9;
pub const SYSTEM: usize = 13;
const PREFIX: usize = HOST + 1 + SYSTEM + 1;

impl Table {
    /// For each column where it ends, counted from the line's start.
    pub fn ends(&self) -> Vec<usize> {
        let mut at = PREFIX;
        let mut end = |column: &Column| {
            at += column.gap + column.width;
            at
        };
        self.columns.iter().map(&mut end).collect()
    }

    /// The last of its heading's lines.
    pub fn dashes(&self) -> &'static str {
        self.heading.lines().last().unwrap_or_default()
    }

    pub fn is_titled(&self, line: &str) -> bool {
        std::iter::once(&self.title).chain(self.also).any(|title| line.starts_with(title))
    }
}

const fn first(figure: &'static str, width: usize) -> Column {
    Column { holds: CellContent::Figure(figure), gap: 0, width, digits: width, limit: None }
}

const fn next(figure: &'static str, width: usize) -> Column {
    Column { gap: 1, ..first(figure, width) }
}

const fn fact(label: &'static str, gap: usize, width: usize) -> Column {
    Column { holds: CellContent::Fact(label), gap, width, digits: width, limit: None }
}

pub const TABLES: &[Table] = &[
    Table {
        title: "Basic system parameters",
        also: &[],
        heading: "\
Basic system parameters
------------------------------------------------------------------------------
Host                 OS Description              Mhz  tlb  cache  mem   scal
                                                     pages line   par   load
                                                           bytes
--------- ------------- ----------------------- ---- ----- ----- ------ ----",
        columns: &[
            fact("system", 0, 23),
            fact("mhz", 1, 4),
            next("tlb", 5),
            next("cache line", 5),
            next("load parallelism", 6),
            fact("copies", 1, 4),
        ],
    },
    Table {
        title: "Processor, Processes",
        also: &[],
        heading: "\
Processor, Processes - times in microseconds - smaller is better
------------------------------------------------------------------------------
Host                 OS  Mhz null null      open slct sig  sig  fork exec sh
                             call  I/O stat clos TCP  inst hndl proc proc proc
--------- ------------- ---- ---- ---- ---- ---- ---- ---- ---- ---- ---- ----",
        columns: &[
            fact("mhz", 0, 4),
            next("null call", 4),
            next("null I/O", 4),
            next("stat", 4),
            next("open close", 4),
            next("select tcp", 4),
            next("signal install", 4),
            next("signal handle", 4),
            next("fork", 4),
            next("exec", 4),
            next("shell", 4),
        ],
    },
    Table {
        title: "Basic integer operations",
        also: &[],
        heading: "\
Basic integer operations - times in nanoseconds - smaller is better
-------------------------------------------------------------------
Host                 OS  intgr intgr  intgr  intgr  intgr
                          bit   add    mul    div    mod
--------- ------------- ------ ------ ------ ------ ------",
        columns: &[
            first("integer bit", 6),
            next("integer add", 6),
            next("integer mul", 6),
            next("integer div", 6),
            next("integer mod", 6),
        ],
    },
    Table {
        title: "Basic uint64 operations",
        also: &["Basic int64 operations"],
        heading: "\
Basic uint64 operations - times in nanoseconds - smaller is better
------------------------------------------------------------------
Host                 OS int64  int64  int64  int64  int64
                         bit    add    mul    div    mod
--------- ------------- ------ ------ ------ ------ ------",
        columns: &[
            // One character less than it is formatted for.
            Column { holds: CellContent::Figure("int64 bit"), gap: 1, width: 5, digits: 6, limit: None },
            next("int64 add", 6),
            next("int64 mul", 6),
            next("int64 div", 6),
            next("int64 mod", 6),
        ],
    },
    Table {
        title: "Basic float operations",
        also: &[],
        heading: "\
Basic float operations - times in nanoseconds - smaller is better
-----------------------------------------------------------------
Host                 OS  float  float  float  float
                         add    mul    div    bogo
--------- ------------- ------ ------ ------ ------",
        columns: &[
            first("float add", 6),
            next("float mul", 6),
            next("float div", 6),
            next("float bogomflops", 6),
        ],
    },
    Table {
        title: "Basic double operations",
        also: &[],
        heading: "\
Basic double operations - times in nanoseconds - smaller is better
------------------------------------------------------------------
Host                 OS  double double double double
                         add    mul    div    bogo
--------- ------------- ------  ------ ------ ------",
        columns: &[
            first("double add", 6),
            next("double mul", 6),
            next("double div", 6),
            next("double bogomflops", 6),
        ],
    },
    Table {
        title: "Context switching",
        also: &[],
        heading: "\
Context switching - times in microseconds - smaller is better
-------------------------------------------------------------------------
Host                 OS  2p/0K 2p/16K 2p/64K 8p/16K 8p/64K 16p/16K 16p/64K
                         ctxsw  ctxsw  ctxsw ctxsw  ctxsw   ctxsw   ctxsw
--------- ------------- ------ ------ ------ ------ ------ ------- -------",
        columns: &[
            first("2p/0K", 6),
            next("2p/16K", 6),
            next("2p/64K", 6),
            next("8p/16K", 6),
            next("8p/64K", 6),
            next("16p/16K", 7),
            next("16p/64K", 7),
        ],
    },
    Table {
        title: "*Local* Communication latencies",
        also: &[],
        heading: "\
*Local* Communication latencies in microseconds - smaller is better
---------------------------------------------------------------------
Host                 OS 2p/0K  Pipe AF     UDP  RPC/   TCP  RPC/ TCP
                        ctxsw       UNIX         UDP         TCP conn
--------- ------------- ----- ----- ---- ----- ----- ----- ----- ----",
        columns: &[
            // The first column of the table before, once more and shorter.
            fact("2p/0K again", 0, 5),
            next("pipe", 5),
            next("unix", 4),
            next("udp", 5),
            next("rpc udp", 5),
            next("tcp", 5),
            next("rpc tcp", 5),
            Column { holds: CellContent::Figure("tcp connect"), gap: 1, width: 4, digits: 5, limit: None },
        ],
    },
    Table {
        title: "*Remote* Communication latencies",
        also: &[],
        heading: "\
*Remote* Communication latencies in microseconds - smaller is better
---------------------------------------------------------------------
Host                 OS   UDP  RPC/  TCP   RPC/ TCP
                               UDP         TCP  conn
--------- ------------- ----- ----- ----- ----- ----",
        columns: &[
            first("remote udp", 5),
            next("remote rpc udp", 5),
            next("remote tcp", 5),
            next("remote rpc tcp", 5),
            next("remote tcp connect", 4),
        ],
    },
    Table {
        title: "File & VM system latencies",
        also: &[],
        heading: "\
File & VM system latencies in microseconds - smaller is better
-------------------------------------------------------------------------------
Host                 OS   0K File      10K File     Mmap    Prot   Page   100fd
                        Create Delete Create Delete Latency Fault  Fault  selct
--------- ------------- ------ ------ ------ ------ ------- ----- ------- -----",
        columns: &[
            first("0K create", 6),
            next("0K delete", 6),
            next("10K create", 6),
            next("10K delete", 6),
            next("mmap", 7),
            next("protection fault", 5),
            next("page fault", 7),
            next("select 100", 5),
        ],
    },
    Table {
        title: "*Local* Communication bandwidths",
        also: &[],
        heading: "\
*Local* Communication bandwidths in MB/s - bigger is better
-----------------------------------------------------------------------------
Host                OS  Pipe AF    TCP  File   Mmap  Bcopy  Bcopy  Mem   Mem
                             UNIX      reread reread (libc) (hand) read write
--------- ------------- ---- ---- ---- ------ ------ ------ ------ ---- -----",
        columns: &[
            first("pipe bandwidth", 4),
            next("unix bandwidth", 4),
            next("tcp bandwidth", 4),
            next("file reread", 6),
            next("mmap reread", 6),
            next("bcopy libc", 6),
            next("bcopy hand", 6),
            next("memory read", 4),
            next("memory write", 5),
        ],
    },
    Table {
        title: "Memory latencies",
        also: &[],
        heading: "\
Memory latencies in nanoseconds - smaller is better
    (WARNING - may not be correct, check graphs)
------------------------------------------------------------------------------
Host                 OS   Mhz   L1 $   L2 $    Main mem    Rand mem    Guesses
--------- -------------   ---   ----   ----    --------    --------    -------",
        columns: &[
            fact("mhz", 1, 4),
            next("L1", 6),
            next("L2", 6),
            // Some builds print this and the next one five characters further right.
            Column { limit: Some(55), ..next("main memory", 6) },
            Column { limit: Some(67), width: 11, ..next("random memory", 6) },
        ],
    },
];
