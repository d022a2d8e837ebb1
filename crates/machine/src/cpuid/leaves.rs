//! One CPU's answers to the CPUID instruction, as text.

use crate::topology::Numbers;

/// The answers of one CPU.
pub(super) struct Leaves(Vec<Line>);

struct Line {
    mask: u32,
    input: [u32; 4],
    /// eax, ebx, ecx, edx.
    output: [u32; 4],
}

/// No CPU has more leaves than this; a hostile dump may.
const MAX_LINES: usize = 4096;

impl Leaves {
    pub fn parse(text: &str) -> Leaves {
        Leaves(text.lines().take(MAX_LINES).filter_map(line).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// eax, ebx, ecx, edx for a leaf and subleaf.
    pub fn get(&self, leaf: u32, subleaf: u32) -> Option<[u32; 4]> {
        let asked = [leaf, 0, subleaf, 0];
        let matches = |line: &&Line| (0..4).all(|at| line.mask & 1 << at == 0 || line.input[at] == asked[at]);
        self.0.iter().find(matches).map(|line| line.output)
    }

    /// Whether the processor has a leaf: those above its own highest answer with something else's
    /// values.
    pub fn has(&self, leaf: u32) -> bool {
        let base = leaf & 0xffff_0000;
        self.get(base, 0).is_some_and(|[highest, ..]| highest >= leaf && highest & 0xffff_0000 == base)
    }

    pub fn vendor(&self) -> Option<String> {
        let [_, ebx, ecx, edx] = self.get(0, 0)?;
        text(&[ebx, edx, ecx])
    }

    pub fn brand(&self) -> Option<String> {
        let mut registers = Vec::new();
        for leaf in 0x8000_0002..=0x8000_0004u32 {
            registers.extend(self.get(leaf, 0).filter(|_| self.has(leaf))?);
        }
        text(&registers)
    }

    /// What quirks and names go by.
    pub fn signature(&self) -> Option<Numbers> {
        let [eax, ..] = self.get(1, 0)?;
        let family = eax >> 8 & 0xf;
        let model = eax >> 4 & 0xf;
        let wide_model = matches!(family, 6 | 7 | 15);
        Some(Numbers {
            stepping: eax & 0xf,
            family: if family == 15 { family + (eax >> 20 & 0xff) } else { family },
            model: if wide_model { model | (eax >> 12 & 0xf0) } else { model },
        })
    }

    pub fn hypervisor_bit(&self) -> Option<bool> {
        self.get(1, 0).map(|[_, _, ecx, _]| ecx >> 31 != 0)
    }

    /// APIC id and the number of ids that a package takes, from leaf 1: good for 8-bit ids only.
    pub fn legacy_ids(&self) -> Option<(u32, u32)> {
        let [_, ebx, _, edx] = self.get(1, 0)?;
        let many = edx & 1 << 28 != 0;
        Some((ebx >> 24, if many { (ebx >> 16 & 0xff).max(1) } else { 1 }))
    }

    /// The levels of an extended topology leaf (0xB, 0x1F, 0x80000026): APIC id, then (type, shift)
    /// from the innermost; `None` where the leaf is absent or empty.
    pub fn topology(&self, leaf: u32) -> Option<(u32, Vec<(u32, u32)>)> {
        if !self.has(leaf) {
            return None;
        }
        let mut levels = Vec::new();
        let mut id = 0;
        for subleaf in 0..8 {
            let Some([eax, ebx, ecx, edx]) = self.get(leaf, subleaf) else { break };
            let kind = ecx >> 8 & 0xff;
            if kind == 0 || ebx & 0xffff == 0 {
                break;
            }
            id = edx;
            levels.push((kind, eax & 0x1f));
        }
        (!levels.is_empty()).then_some((id, levels))
    }
}

fn line(line: &str) -> Option<Line> {
    let (asked, answered) = line.trim().split_once("=>")?;
    let asked = numbers(asked)?;
    let answered = numbers(answered)?;
    match (asked.as_slice(), answered.as_slice()) {
        ([mask, a, b, c, d], [e, f, g, h]) => {
            Some(Line { mask: *mask, input: [*a, *b, *c, *d], output: [*e, *f, *g, *h] })
        }
        _ => None,
    }
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split_whitespace().map(|word| u32::from_str_radix(word.trim_start_matches("0x"), 16).ok()).collect()
}

/// The text in registers, without padding.
fn text(registers: &[u32]) -> Option<String> {
    let bytes: Vec<u8> = registers.iter().flat_map(|register| register.to_le_bytes()).collect();
    let text = String::from_utf8_lossy(&bytes);
    let text = text.split('\0').next().unwrap_or("").trim().to_string();
    (!text.is_empty()).then_some(text)
}

/// The shift that separates ids which come in groups of `count`: the power of two that holds them.
pub(super) fn order(count: u32) -> u32 {
    count.max(1).next_power_of_two().trailing_zeros()
}

/// An id without its lowest `shift` bits.
pub(super) fn without(id: u32, shift: u32) -> u32 {
    id.checked_shr(shift).unwrap_or(0)
}
