//! Streams for x86-64: 64-, 32- and 16-byte vectors.

use std::arch::asm;

use crate::streams::{Loop, Op};

/// The loops of an operation that this CPU can run, the widest first.
pub fn loops(op: Op) -> Vec<(&'static str, Loop)> {
    let (avx512, avx2, sse2): (Loop, Loop, Loop) = match op {
        Op::Read => (read_avx512, read_avx2, read_sse2),
        Op::Load => (load_avx512, load_avx2, load_sse2),
        Op::Write => (write_avx512, write_avx2, write_sse2),
        Op::WriteNt => (write_nt_avx512, write_nt_avx2, write_nt_sse2),
        Op::ReadWrite => (read_write_avx512, read_write_avx2, read_write_sse2),
        Op::Copy => (copy_avx512, copy_avx2, copy_sse2),
        Op::CopyNt => (copy_nt_pages_avx512, copy_nt_pages_avx2, copy_nt_pages_sse2),
        Op::CopyRep => return vec![("rep-movsb", copy_rep_movsb as Loop)],
        Op::Fill => return vec![("rep-stosb", fill_rep_stosb as Loop)],
        Op::Triad => (triad_avx512, triad_avx2, triad_sse2),
    };
    let mut loops = Vec::new();
    if std::arch::is_x86_feature_detected!("avx512f") {
        loops.push(("avx512", avx512));
    }
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        loops.push(("avx2", avx2));
    }
    loops.push(("sse2", sse2));
    loops
}

// One loop for each width and operation, 512 bytes per turn unless stated. Registers 0 to 7 contain
// data, 8 the word that is written, added or multiplied by. Loads of a turn precede its stores, so
// no load waits for a store's address. Arrays after the first are addressed by their distance,
// which saves incrementing several pointers. The loop over passes is inside, so the time of a 4 KiB
// array excludes its call. A pass of non-temporal stores ends with `sfence`; otherwise they would
// still be in flight when the clock is read.
macro_rules! stream_loop {
    ($name:ident, $start:literal, [$($each:expr),+], $pass_end:literal, $end:literal) => {
        stream_loop!($name, 512, "0,1,2,3,4,5,6,7", $start, [$($each),+], $pass_end, $end);
    };
    // Bytes a turn, and the registers that it uses.
    ($name:ident, $turn:literal, $each_of:literal, $start:literal, [$($each:expr),+], $pass_end:literal, $end:literal) => {
        /// # Safety
        /// As [`Loop`] says; the CPU must have the instructions.
        unsafe fn $name(a: *mut u8, b: *const u8, c: *const u8, blocks: usize, passes: u64, word: u64) -> u64 {
            let mut lanes = [0u64; 64];
            let (b, c) = (b as usize - a as usize, c as usize - a as usize);
            // SAFETY: touches exactly `blocks` blocks of 512 bytes in each array that the operation
            // has, and writes at most eight registers of up to 64 bytes to `lanes`.
            unsafe {
                asm!(
                    "/* {b} {c} {word} {lanes} */",
                    $start,
                    "2:",
                    "mov {at}, {a}",
                    "mov {left}, {blocks}",
                    ".p2align 5",
                    "3:",
                    $(concat!(".irp i,", $each_of), $each, ".endr",)+
                    concat!("add {at}, ", $turn),
                    "dec {left}",
                    "jnz 3b",
                    $pass_end,
                    "dec {passes}",
                    "jnz 2b",
                    $end,
                    a = in(reg) a,
                    b = in(reg) b,
                    c = in(reg) c,
                    blocks = in(reg) blocks * (crate::BLOCK_BYTES / $turn),
                    passes = inout(reg) passes => _,
                    word = in(reg) word,
                    lanes = in(reg) lanes.as_mut_ptr(),
                    at = out(reg) _,
                    left = out(reg) _,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                    out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                    out("xmm8") _,
                    options(nostack),
                );
            }
            lanes.iter().fold(0, |sum: u64, lane| sum.wrapping_add(*lane))
        }
    };
}

// Reading: eight accumulators, because an add takes one cycle and two or three loads start per
// cycle; so no load waits for an accumulator. The add has a memory operand: it costs only the load,
// and every word counts.
stream_loop!(
    read_avx512,
    ".irp i,0,1,2,3,4,5,6,7; vpxorq zmm\\i, zmm\\i, zmm\\i; .endr",
    ["vpaddq zmm\\i, zmm\\i, [{at} + 64*\\i]"],
    "",
    ".irp i,0,1,2,3,4,5,6,7; vmovdqu64 [{lanes} + 64*\\i], zmm\\i; .endr; vzeroupper"
);
stream_loop!(
    read_avx2,
    ".irp i,0,1,2,3,4,5,6,7; vpxor ymm\\i, ymm\\i, ymm\\i; .endr",
    ["vpaddq ymm\\i, ymm\\i, [{at} + 32*\\i]", "vpaddq ymm\\i, ymm\\i, [{at} + 256 + 32*\\i]"],
    "",
    ".irp i,0,1,2,3,4,5,6,7; vmovdqu [{lanes} + 32*\\i], ymm\\i; .endr; vzeroupper"
);
stream_loop!(
    read_sse2,
    ".irp i,0,1,2,3,4,5,6,7; pxor xmm\\i, xmm\\i; .endr",
    [
        "paddq xmm\\i, [{at} + 16*\\i]",
        "paddq xmm\\i, [{at} + 128 + 16*\\i]",
        "paddq xmm\\i, [{at} + 256 + 16*\\i]",
        "paddq xmm\\i, [{at} + 384 + 16*\\i]"
    ],
    "",
    ".irp i,0,1,2,3,4,5,6,7; movdqu [{lanes} + 16*\\i], xmm\\i; .endr"
);

// Loading: nothing but loads, and at the end the last 128 bytes that were loaded.
stream_loop!(
    load_avx512,
    "",
    ["vmovdqa64 zmm\\i, [{at} + 64*\\i]"],
    "",
    "vmovdqu64 [{lanes}], zmm6; vmovdqu64 [{lanes} + 64], zmm7; vzeroupper"
);
stream_loop!(
    load_avx2,
    "",
    ["vmovdqa ymm\\i, [{at} + 32*\\i]", "vmovdqa ymm\\i, [{at} + 256 + 32*\\i]"],
    "",
    ".irp i,4,5,6,7; vmovdqu [{lanes} + 32*\\i], ymm\\i; .endr; vzeroupper"
);
stream_loop!(
    load_sse2,
    "",
    [
        "movdqa xmm\\i, [{at} + 16*\\i]",
        "movdqa xmm\\i, [{at} + 128 + 16*\\i]",
        "movdqa xmm\\i, [{at} + 256 + 16*\\i]",
        "movdqa xmm\\i, [{at} + 384 + 16*\\i]"
    ],
    "",
    ".irp i,0,1,2,3,4,5,6,7; movdqu [{lanes} + 16*\\i], xmm\\i; .endr"
);

stream_loop!(
    write_avx512,
    "vpbroadcastq zmm8, {word}",
    ["vmovdqa64 [{at} + 64*\\i], zmm8"],
    "",
    "vzeroupper"
);
stream_loop!(
    write_avx2,
    "vmovq xmm8, {word}; vpbroadcastq ymm8, xmm8",
    ["vmovdqa [{at} + 32*\\i], ymm8", "vmovdqa [{at} + 256 + 32*\\i], ymm8"],
    "",
    "vzeroupper"
);
stream_loop!(
    write_sse2,
    "movq xmm8, {word}; punpcklqdq xmm8, xmm8",
    [
        "movdqa [{at} + 16*\\i], xmm8",
        "movdqa [{at} + 128 + 16*\\i], xmm8",
        "movdqa [{at} + 256 + 16*\\i], xmm8",
        "movdqa [{at} + 384 + 16*\\i], xmm8"
    ],
    "",
    ""
);

stream_loop!(
    write_nt_avx512,
    "vpbroadcastq zmm8, {word}",
    ["vmovntdq [{at} + 64*\\i], zmm8"],
    "sfence",
    "vzeroupper"
);
stream_loop!(
    write_nt_avx2,
    "vmovq xmm8, {word}; vpbroadcastq ymm8, xmm8",
    ["vmovntdq [{at} + 32*\\i], ymm8", "vmovntdq [{at} + 256 + 32*\\i], ymm8"],
    "sfence",
    "vzeroupper"
);
stream_loop!(
    write_nt_sse2,
    "movq xmm8, {word}; punpcklqdq xmm8, xmm8",
    [
        "movntdq [{at} + 16*\\i], xmm8",
        "movntdq [{at} + 128 + 16*\\i], xmm8",
        "movntdq [{at} + 256 + 16*\\i], xmm8",
        "movntdq [{at} + 384 + 16*\\i], xmm8"
    ],
    "sfence",
    ""
);

stream_loop!(
    read_write_avx512,
    "vpbroadcastq zmm8, {word}",
    ["vpaddq zmm\\i, zmm8, [{at} + 64*\\i]", "vmovdqa64 [{at} + 64*\\i], zmm\\i"],
    "",
    "vzeroupper"
);
stream_loop!(
    read_write_avx2,
    "vmovq xmm8, {word}; vpbroadcastq ymm8, xmm8",
    [
        "vpaddq ymm\\i, ymm8, [{at} + 32*\\i]",
        "vmovdqa [{at} + 32*\\i], ymm\\i",
        "vpaddq ymm\\i, ymm8, [{at} + 256 + 32*\\i]",
        "vmovdqa [{at} + 256 + 32*\\i], ymm\\i"
    ],
    "",
    "vzeroupper"
);
stream_loop!(
    read_write_sse2,
    "movq xmm8, {word}; punpcklqdq xmm8, xmm8",
    [
        "movdqa xmm\\i, [{at} + 16*\\i]",
        "paddq xmm\\i, xmm8",
        "movdqa [{at} + 16*\\i], xmm\\i",
        "movdqa xmm\\i, [{at} + 128 + 16*\\i]",
        "paddq xmm\\i, xmm8",
        "movdqa [{at} + 128 + 16*\\i], xmm\\i",
        "movdqa xmm\\i, [{at} + 256 + 16*\\i]",
        "paddq xmm\\i, xmm8",
        "movdqa [{at} + 256 + 16*\\i], xmm\\i",
        "movdqa xmm\\i, [{at} + 384 + 16*\\i]",
        "paddq xmm\\i, xmm8",
        "movdqa [{at} + 384 + 16*\\i], xmm\\i"
    ],
    "",
    ""
);

// A copy's turn is short, because prefetchers identify streams by their load instruction: with
// eight loads per turn a copy from memory was 6 % slower on the development host.
stream_loop!(
    copy_avx512,
    128,
    "0,1",
    "",
    ["vmovdqa64 zmm\\i, [{at} + {b} + 64*\\i]", "vmovdqa64 [{at} + 64*\\i], zmm\\i"],
    "",
    "vzeroupper"
);
stream_loop!(
    copy_avx2,
    128,
    "0,1,2,3",
    "",
    ["vmovdqa ymm\\i, [{at} + {b} + 32*\\i]", "vmovdqa [{at} + 32*\\i], ymm\\i"],
    "",
    "vzeroupper"
);
stream_loop!(
    copy_sse2,
    128,
    "0,1,2,3,4,5,6,7",
    "",
    ["movdqa xmm\\i, [{at} + {b} + 16*\\i]", "movdqa [{at} + 16*\\i], xmm\\i"],
    "",
    ""
);
stream_loop!(
    copy_nt_avx512,
    128,
    "0,1",
    "",
    ["vmovdqa64 zmm\\i, [{at} + {b} + 64*\\i]", "vmovntdq [{at} + 64*\\i], zmm\\i"],
    "sfence",
    "vzeroupper"
);
stream_loop!(
    copy_nt_avx2,
    128,
    "0,1,2,3",
    "",
    ["vmovdqa ymm\\i, [{at} + {b} + 32*\\i]", "vmovntdq [{at} + 32*\\i], ymm\\i"],
    "sfence",
    "vzeroupper"
);
stream_loop!(
    copy_nt_sse2,
    128,
    "0,1,2,3,4,5,6,7",
    "",
    ["movdqa xmm\\i, [{at} + {b} + 16*\\i]", "movntdq [{at} + 16*\\i], xmm\\i"],
    "sfence",
    ""
);

/// Pages that a non-temporal copy walks side by side, and their size, bytes.
const PAGES: usize = 4;
const PAGE_BYTES: usize = 4096;

// Non-temporal copy of four pages in parallel, two vectors of each per turn: prefetchers follow
// each page separately and stop at its end, so four have more lines in flight than one (a third
// faster on the development host; the C library's large copies do the same). The rest is copied
// line by line.
macro_rules! copy_nt_pages {
    ($name:ident, $linear:ident, $load:literal, $store:literal, $vector:literal, $width:literal, $end:literal) => {
        /// # Safety
        /// As [`Loop`] says; the CPU must have the instructions.
        unsafe fn $name(a: *mut u8, b: *const u8, c: *const u8, blocks: usize, passes: u64, word: u64) -> u64 {
            let chunks = blocks * crate::BLOCK_BYTES / (PAGES * PAGE_BYTES);
            let done = chunks * PAGES * PAGE_BYTES;
            let left_over = blocks - done / crate::BLOCK_BYTES;
            for _ in 0..passes {
                if chunks > 0 {
                    // SAFETY: touches exactly `chunks` times four pages in each array.
                    unsafe {
                        asm!(
                            "2:",
                            "mov {left}, {turns}",
                            ".p2align 5",
                            "3:",
                            concat!($load, " ", $vector, "0, [{at} + {b}]"),
                            concat!($load, " ", $vector, "1, [{at} + {b}", " + ", $width, "]"),
                            concat!($load, " ", $vector, "2, [{at} + {b} + 4096]"),
                            concat!($load, " ", $vector, "3, [{at} + {b} + 4096", " + ", $width, "]"),
                            concat!($load, " ", $vector, "4, [{at} + {b} + 8192]"),
                            concat!($load, " ", $vector, "5, [{at} + {b} + 8192", " + ", $width, "]"),
                            concat!($load, " ", $vector, "6, [{at} + {b} + 12288]"),
                            concat!($load, " ", $vector, "7, [{at} + {b} + 12288", " + ", $width, "]"),
                            concat!($store, " [{at}], ", $vector, "0"),
                            concat!($store, " [{at}", " + ", $width, "], ", $vector, "1"),
                            concat!($store, " [{at} + 4096], ", $vector, "2"),
                            concat!($store, " [{at} + 4096", " + ", $width, "], ", $vector, "3"),
                            concat!($store, " [{at} + 8192], ", $vector, "4"),
                            concat!($store, " [{at} + 8192", " + ", $width, "], ", $vector, "5"),
                            concat!($store, " [{at} + 12288], ", $vector, "6"),
                            concat!($store, " [{at} + 12288", " + ", $width, "], ", $vector, "7"),
                            concat!("add {at}, 2 * ", $width),
                            "dec {left}",
                            "jnz 3b",
                            "add {at}, 3 * 4096",
                            "dec {chunks}",
                            "jnz 2b",
                            "sfence",
                            $end,
                            at = inout(reg) a => _,
                            b = in(reg) b as usize - a as usize,
                            turns = const PAGE_BYTES / (2 * $width),
                            chunks = inout(reg) chunks => _,
                            left = out(reg) _,
                            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                            options(nostack),
                        );
                    }
                }
                if left_over > 0 {
                    // SAFETY: what lies behind the pages, to the arrays' ends.
                    unsafe { $linear(a.add(done), b.add(done), c, left_over, 1, word) };
                }
            }
            0
        }
    };
}

copy_nt_pages!(copy_nt_pages_avx512, copy_nt_avx512, "vmovdqa64", "vmovntdq", "zmm", 64, "vzeroupper");
copy_nt_pages!(copy_nt_pages_avx2, copy_nt_avx2, "vmovdqa", "vmovntdq", "ymm", 32, "vzeroupper");
copy_nt_pages!(copy_nt_pages_sse2, copy_nt_sse2, "movdqa", "movntdq", "xmm", 16, "");

stream_loop!(
    triad_avx512,
    "vpbroadcastq zmm8, {word}",
    [
        "vmovapd zmm\\i, [{at} + {c} + 64*\\i]",
        "vfmadd213pd zmm\\i, zmm8, [{at} + {b} + 64*\\i]",
        "vmovapd [{at} + 64*\\i], zmm\\i"
    ],
    "",
    "vzeroupper"
);
stream_loop!(
    triad_avx2,
    "vmovq xmm8, {word}; vpbroadcastq ymm8, xmm8",
    [
        "vmovapd ymm\\i, [{at} + {c} + 32*\\i]",
        "vfmadd213pd ymm\\i, ymm8, [{at} + {b} + 32*\\i]",
        "vmovapd [{at} + 32*\\i], ymm\\i",
        "vmovapd ymm\\i, [{at} + {c} + 256 + 32*\\i]",
        "vfmadd213pd ymm\\i, ymm8, [{at} + {b} + 256 + 32*\\i]",
        "vmovapd [{at} + 256 + 32*\\i], ymm\\i"
    ],
    "",
    "vzeroupper"
);
stream_loop!(
    triad_sse2,
    "movq xmm8, {word}; punpcklqdq xmm8, xmm8",
    [
        "movapd xmm\\i, [{at} + {c} + 16*\\i]",
        "mulpd xmm\\i, xmm8",
        "addpd xmm\\i, [{at} + {b} + 16*\\i]",
        "movapd [{at} + 16*\\i], xmm\\i",
        "movapd xmm\\i, [{at} + {c} + 128 + 16*\\i]",
        "mulpd xmm\\i, xmm8",
        "addpd xmm\\i, [{at} + {b} + 128 + 16*\\i]",
        "movapd [{at} + 128 + 16*\\i], xmm\\i",
        "movapd xmm\\i, [{at} + {c} + 256 + 16*\\i]",
        "mulpd xmm\\i, xmm8",
        "addpd xmm\\i, [{at} + {b} + 256 + 16*\\i]",
        "movapd [{at} + 256 + 16*\\i], xmm\\i",
        "movapd xmm\\i, [{at} + {c} + 384 + 16*\\i]",
        "mulpd xmm\\i, xmm8",
        "addpd xmm\\i, [{at} + {b} + 384 + 16*\\i]",
        "movapd [{at} + 384 + 16*\\i], xmm\\i"
    ],
    "",
    ""
);

/// Copies by the CPU's string instruction, as memcpy of the C library does for medium sizes.
///
/// # Safety
/// As [`Loop`] says.
unsafe fn copy_rep_movsb(a: *mut u8, b: *const u8, _: *const u8, blocks: usize, passes: u64, _: u64) -> u64 {
    for _ in 0..passes {
        // SAFETY: loads and stores exactly `blocks` blocks of 512 bytes upwards from `b` and `a`;
        // the direction flag is clear by the ABI.
        unsafe {
            asm!(
                "rep movsb",
                inout("rcx") blocks * crate::BLOCK_BYTES => _,
                inout("rdi") a => _,
                inout("rsi") b => _,
                options(nostack, preserves_flags),
            );
        }
    }
    0
}

/// Clears by the CPU's string instruction, whose microcode stores whole lines without fetching
/// them.
///
/// # Safety
/// As [`Loop`] says.
unsafe fn fill_rep_stosb(a: *mut u8, _: *const u8, _: *const u8, blocks: usize, passes: u64, _: u64) -> u64 {
    for _ in 0..passes {
        // SAFETY: stores exactly `blocks` blocks of 512 bytes upwards from `a`; the direction flag
        // is clear by the ABI.
        unsafe {
            asm!(
                "rep stosb",
                inout("rcx") blocks * crate::BLOCK_BYTES => _,
                inout("rdi") a => _,
                in("al") 0u8,
                options(nostack, preserves_flags),
            );
        }
    }
    0
}
