//! How much of a file is read: nothing that a file holds makes reading it endless, or takes memory
//! without bound.

/// What a run file may be. What lies beyond is refused or left out in a sentence, and never
/// silently.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of the file, unpacked: a run of a 512-CPU host's full profile takes a tenth of it.
    pub size: u64,
    /// A compressed file may unpack to this many times its size. Run files reach 6, invented ones
    /// 30; deflate reaches 1000.
    pub expansion: u64,
    /// ... which is asked once this much came out of it.
    pub expansion_from: u64,
    /// Bytes of the first line: a snapshot holds half as much.
    pub header: u64,
    /// Bytes of any other line: a visit's process may say less in all.
    pub line: u64,
    /// After this many lines that cannot be read, or this many bytes of them and of blanks, the
    /// rest is not read.
    pub unreadable_lines: usize,
    pub unreadable_bytes: u64,
    pub visits: usize,
    /// Cases of the plan, and the headline metrics of all of them together.
    pub cases: usize,
    pub planned_series: usize,
    /// Benchmarks of the catalogue, of which there are some hundred, and metrics of each.
    pub titles: usize,
    pub metrics: usize,
    /// Time lines, events and lines of newer versions: how many, and their bytes.
    pub others: usize,
    pub other_bytes: u64,
    /// Visits of one case that are kept, drawn evenly over the run: a profile makes 80.
    pub visits_each: usize,
    /// Memory for visits and what is made of them, roughly, in bytes. Where they would take more,
    /// those of the longest cases are thinned, down to this many each.
    pub memory: [(u64, usize); 2],
}

impl Limits {
    pub const DEFAULT: Limits = Limits {
        size: 2 << 30,
        expansion: 200,
        expansion_from: 16 << 20,
        header: 128 << 20,
        line: 64 << 20,
        unreadable_lines: 10_000,
        unreadable_bytes: 64 << 20,
        visits: 2_000_000,
        cases: 100_000,
        planned_series: 1_000_000,
        titles: 2_000,
        metrics: 1_000,
        others: 200_000,
        other_bytes: 128 << 20,
        visits_each: 4096,
        memory: [(448 << 20, 128), (2 << 30, 8)],
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
