//! How the memory of a cluster is shared out, MiB: the same for each slot whatever their number,
//! and more for windows.

/// Heap of the JobManager: it plans one job.
pub const JOBMANAGER_HEAP: usize = 320;
pub const JOBMANAGER_DIRECT: usize = 128;
pub const METASPACE: usize = 192;
pub const OVERHEAD: usize = 64;

/// Heap of a TaskManager: its framework's, and of each slot, whose events are garbage at once.
pub const FRAMEWORK_HEAP: usize = 96;
pub const SLOT_HEAP: usize = 160;
pub const MAX_HEAP: usize = 16 << 10;
/// Heap for windows whatever the number of slots: Q7 keeps the bids of a window and of the
/// watermark's 4 s, 129,000 of them, which took 80 MiB (after full collections).
const WINDOWS_HEAP: usize = 384;
/// Memory outside of the heap in which a slot's windows count before they write to their state.
const SLOT_MANAGED: usize = 32;

/// Memory outside of the heap that the framework takes, without network buffers.
const FRAMEWORK_DIRECT: usize = 96;
/// Network buffers: a chained job uses none.
const NETWORK: usize = 32;
/// Exchanges between all slots in the widest of the queries, Q5.
const EXCHANGES: usize = 4;
/// Buffers of one slot in an exchange: Flink's two for each slot that it sends to, and what both
/// its ends share.
const BUFFERS_A_CHANNEL: usize = 2;
const BUFFERS_SHARED: usize = 16;
/// A network buffer, KiB: Flink's own size, less if many slots (buffers grow with their square)
/// would take more than the heap; Flink's smallest.
const SEGMENT_KIB: usize = 32;
const SEGMENT_SLOTS: usize = 64;
const MIN_SEGMENT_KIB: usize = 4;

/// The parts of a TaskManager's memory, MiB, and the size of a network buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    pub heap: usize,
    pub managed: usize,
    pub network: usize,
    pub segment_kib: usize,
}

impl Sizes {
    pub fn of(slots: usize, windows: bool) -> Sizes {
        let heap = (FRAMEWORK_HEAP + SLOT_HEAP * slots).min(MAX_HEAP);
        if !windows {
            return Sizes { heap, managed: 0, network: NETWORK, segment_kib: SEGMENT_KIB };
        }
        let fewer = slots.div_ceil(SEGMENT_SLOTS).next_power_of_two();
        let segment_kib = (SEGMENT_KIB / fewer).max(MIN_SEGMENT_KIB);
        let buffers = EXCHANGES * slots * (BUFFERS_A_CHANNEL * slots + BUFFERS_SHARED);
        let network = NETWORK.max((buffers * segment_kib).div_ceil(1 << 10));
        Sizes { heap: heap + WINDOWS_HEAP, managed: SLOT_MANAGED * slots, network, segment_kib }
    }

    /// Memory that Java may take outside of its heap, but for the managed one.
    pub fn direct(&self) -> usize {
        FRAMEWORK_DIRECT + self.network
    }

    /// By Flink's names.
    pub fn of_flink(&self) -> [(&'static str, usize); 10] {
        [
            ("network.min", self.network),
            ("network.max", self.network),
            ("task.heap.size", self.heap - FRAMEWORK_HEAP),
            ("task.off-heap.size", 0),
            ("framework.heap.size", FRAMEWORK_HEAP),
            ("framework.off-heap.size", FRAMEWORK_DIRECT),
            ("managed.size", self.managed),
            ("jvm-metaspace.size", METASPACE),
            ("jvm-overhead.min", OVERHEAD),
            ("jvm-overhead.max", OVERHEAD),
        ]
    }
}

/// Memory of a cluster with this many slots, bytes.
pub fn memory(slots: usize, windows: bool) -> u64 {
    let sizes = Sizes::of(slots, windows);
    // The Java host also takes memory for its code and threads: 200 MiB in both.
    let taskmanager = sizes.heap + sizes.managed + sizes.direct() + METASPACE + OVERHEAD;
    ((JOBMANAGER_HEAP + METASPACE + OVERHEAD + taskmanager + 400) as u64) << 20
}
