//! Streams for 64-bit ARM: NEON, which is part of the architecture.

use std::arch::asm;

use crate::streams::{Loop, Op};

/// The loops of an operation that this CPU can run, the widest first.
pub fn loops(op: Op) -> Vec<(&'static str, Loop)> {
    let neon: Loop = match op {
        Op::Read => read_neon,
        Op::Load => load_neon,
        Op::Write => write_neon,
        Op::WriteNt => write_nt_neon,
        Op::ReadWrite => read_write_neon,
        Op::Copy => copy_neon,
        Op::CopyNt => copy_nt_neon,
        Op::CopyRep => return Vec::new(),
        Op::Fill if zva_bytes().is_some() => return vec![("dc-zva", fill_zva)],
        Op::Fill => clear_neon,
        Op::Triad => triad_neon,
    };
    vec![("neon", neon)]
}

// As the loops for x86-64, whose reasons hold here: a block of 512 bytes a turn, in pairs of
// 16-byte registers. v0 to v7 accumulate, v8 holds the word, v16 to v31 the data.
macro_rules! stream_loop {
    ($name:ident, $start:literal, [$($quarter:literal),+], $pass_end:literal, $end:literal) => {
        /// # Safety
        /// As [`Loop`] says.
        unsafe fn $name(a: *mut u8, b: *const u8, c: *const u8, blocks: usize, passes: u64, word: u64) -> u64 {
            let mut lanes = [0u64; 16];
            // SAFETY: touches exactly `blocks` blocks of 512 bytes in each array that the operation
            // has, and writes at most eight 16-byte registers to `lanes`.
            unsafe {
                asm!(
                    "/* {word} {lanes} */",
                    $start,
                    "2:",
                    "mov {at}, {a}",
                    "mov {b_at}, {b}",
                    "mov {c_at}, {c}",
                    "mov {left}, {blocks}",
                    "3:",
                    ".rept 4",
                    $($quarter,)+
                    "add {at}, {at}, #128",
                    "add {b_at}, {b_at}, #128",
                    "add {c_at}, {c_at}, #128",
                    ".endr",
                    "subs {left}, {left}, #1",
                    "b.ne 3b",
                    $pass_end,
                    "subs {passes}, {passes}, #1",
                    "b.ne 2b",
                    $end,
                    a = in(reg) a,
                    b = in(reg) b,
                    c = in(reg) c,
                    blocks = in(reg) blocks,
                    passes = inout(reg) passes => _,
                    word = in(reg) word,
                    lanes = in(reg) lanes.as_mut_ptr(),
                    at = out(reg) _,
                    b_at = out(reg) _,
                    c_at = out(reg) _,
                    left = out(reg) _,
                    out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                    out("v4") _, out("v5") _, out("v6") _, out("v7") _, out("v8") _,
                    out("v16") _, out("v17") _, out("v18") _, out("v19") _,
                    out("v20") _, out("v21") _, out("v22") _, out("v23") _,
                    out("v24") _, out("v25") _, out("v26") _, out("v27") _,
                    out("v28") _, out("v29") _, out("v30") _, out("v31") _,
                    options(nostack),
                );
            }
            lanes.iter().fold(0, |sum: u64, lane| sum.wrapping_add(*lane))
        }
    };
}

stream_loop!(
    read_neon,
    ".irp i,0,1,2,3,4,5,6,7; movi v\\i\\().2d, #0; .endr",
    [
        "ldp q16, q17, [{at}]",
        "ldp q18, q19, [{at}, #32]",
        "ldp q20, q21, [{at}, #64]",
        "ldp q22, q23, [{at}, #96]",
        "add v0.2d, v0.2d, v16.2d",
        "add v1.2d, v1.2d, v17.2d",
        "add v2.2d, v2.2d, v18.2d",
        "add v3.2d, v3.2d, v19.2d",
        "add v4.2d, v4.2d, v20.2d",
        "add v5.2d, v5.2d, v21.2d",
        "add v6.2d, v6.2d, v22.2d",
        "add v7.2d, v7.2d, v23.2d"
    ],
    "",
    ".irp i,0,1,2,3,4,5,6,7; str q\\i, [{lanes}, #16*\\i]; .endr"
);
stream_loop!(
    load_neon,
    "",
    [
        "ldp q16, q17, [{at}]",
        "ldp q18, q19, [{at}, #32]",
        "ldp q20, q21, [{at}, #64]",
        "ldp q22, q23, [{at}, #96]"
    ],
    "",
    "stp q16, q17, [{lanes}]; stp q18, q19, [{lanes}, #32]; stp q20, q21, [{lanes}, #64]; stp q22, q23, [{lanes}, #96]"
);
stream_loop!(
    write_neon,
    "dup v8.2d, {word}",
    ["stp q8, q8, [{at}]", "stp q8, q8, [{at}, #32]", "stp q8, q8, [{at}, #64]", "stp q8, q8, [{at}, #96]"],
    "",
    ""
);
stream_loop!(
    clear_neon,
    "movi v8.2d, #0",
    ["stp q8, q8, [{at}]", "stp q8, q8, [{at}, #32]", "stp q8, q8, [{at}, #64]", "stp q8, q8, [{at}, #96]"],
    "",
    ""
);
// Non-temporal pairs are a hint on ARM: cores may treat them as plain ones.
stream_loop!(
    write_nt_neon,
    "dup v8.2d, {word}",
    [
        "stnp q8, q8, [{at}]",
        "stnp q8, q8, [{at}, #32]",
        "stnp q8, q8, [{at}, #64]",
        "stnp q8, q8, [{at}, #96]"
    ],
    "dmb ishst",
    ""
);
stream_loop!(
    read_write_neon,
    "dup v8.2d, {word}",
    [
        "ldp q16, q17, [{at}]",
        "ldp q18, q19, [{at}, #32]",
        "ldp q20, q21, [{at}, #64]",
        "ldp q22, q23, [{at}, #96]",
        "add v16.2d, v16.2d, v8.2d",
        "add v17.2d, v17.2d, v8.2d",
        "add v18.2d, v18.2d, v8.2d",
        "add v19.2d, v19.2d, v8.2d",
        "add v20.2d, v20.2d, v8.2d",
        "add v21.2d, v21.2d, v8.2d",
        "add v22.2d, v22.2d, v8.2d",
        "add v23.2d, v23.2d, v8.2d",
        "stp q16, q17, [{at}]",
        "stp q18, q19, [{at}, #32]",
        "stp q20, q21, [{at}, #64]",
        "stp q22, q23, [{at}, #96]"
    ],
    "",
    ""
);
stream_loop!(
    copy_neon,
    "",
    [
        "ldp q16, q17, [{b_at}]",
        "ldp q18, q19, [{b_at}, #32]",
        "ldp q20, q21, [{b_at}, #64]",
        "ldp q22, q23, [{b_at}, #96]",
        "stp q16, q17, [{at}]",
        "stp q18, q19, [{at}, #32]",
        "stp q20, q21, [{at}, #64]",
        "stp q22, q23, [{at}, #96]"
    ],
    "",
    ""
);
stream_loop!(
    copy_nt_neon,
    "",
    [
        "ldp q16, q17, [{b_at}]",
        "ldp q18, q19, [{b_at}, #32]",
        "ldp q20, q21, [{b_at}, #64]",
        "ldp q22, q23, [{b_at}, #96]",
        "stnp q16, q17, [{at}]",
        "stnp q18, q19, [{at}, #32]",
        "stnp q20, q21, [{at}, #64]",
        "stnp q22, q23, [{at}, #96]"
    ],
    "dmb ishst",
    ""
);
stream_loop!(
    triad_neon,
    "dup v8.2d, {word}",
    [
        "ldp q16, q17, [{b_at}]",
        "ldp q18, q19, [{b_at}, #32]",
        "ldp q20, q21, [{b_at}, #64]",
        "ldp q22, q23, [{b_at}, #96]",
        "ldp q24, q25, [{c_at}]",
        "ldp q26, q27, [{c_at}, #32]",
        "ldp q28, q29, [{c_at}, #64]",
        "ldp q30, q31, [{c_at}, #96]",
        "fmla v16.2d, v24.2d, v8.2d",
        "fmla v17.2d, v25.2d, v8.2d",
        "fmla v18.2d, v26.2d, v8.2d",
        "fmla v19.2d, v27.2d, v8.2d",
        "fmla v20.2d, v28.2d, v8.2d",
        "fmla v21.2d, v29.2d, v8.2d",
        "fmla v22.2d, v30.2d, v8.2d",
        "fmla v23.2d, v31.2d, v8.2d",
        "stp q16, q17, [{at}]",
        "stp q18, q19, [{at}, #32]",
        "stp q20, q21, [{at}, #64]",
        "stp q22, q23, [{at}, #96]"
    ],
    "",
    ""
);

/// Bytes that one `dc zva` clears, where it is allowed and divides a block.
fn zva_bytes() -> Option<usize> {
    let id: u64;
    // SAFETY: reading this register is allowed to every program and changes nothing.
    unsafe { asm!("mrs {id}, dczid_el0", id = out(reg) id, options(nomem, nostack, pure)) };
    let (prohibited, bytes) = (id >> 4 & 1 == 1, 4usize << (id & 15));
    // Arrays are aligned to 64 bytes: larger units would clear beyond their ends.
    (!prohibited && bytes <= 64).then_some(bytes)
}

/// Clears line by line without fetching what was there.
///
/// # Safety
/// As [`Loop`] says; `dc zva` must be allowed.
unsafe fn fill_zva(a: *mut u8, _: *const u8, _: *const u8, blocks: usize, passes: u64, _: u64) -> u64 {
    let step = zva_bytes().unwrap_or(64);
    for _ in 0..passes {
        // SAFETY: clears exactly `blocks` blocks of 512 bytes from `a`, in steps that divide a
        // block.
        unsafe {
            asm!(
                "2:",
                "dc zva, {at}",
                "add {at}, {at}, {step}",
                "cmp {at}, {end}",
                "b.ne 2b",
                at = inout(reg) a => _,
                end = in(reg) a.add(blocks * crate::BLOCK_BYTES),
                step = in(reg) step,
                options(nostack),
            );
        }
    }
    0
}
