//! (channel, slot) of slots 1, 2, ... of a processor, or of a board, as makers' boards count them.

/// A slot of each channel after the other, then the second slots, and so on.
const fn rounds<const CHANNELS: usize, const SLOTS: usize>(channels: [u32; CHANNELS]) -> [(u32, u32); SLOTS] {
    let (mut all, mut at) = ([(0, 0); SLOTS], 0);
    while at < SLOTS {
        all[at] = (channels[at % CHANNELS], (at / CHANNELS) as u32);
        at += 1;
    }
    all
}

/// Two slots of each channel, counted across the board: behind the processor, from the middle on,
/// the second slot comes first.
const fn across<const CHANNELS: usize, const SLOTS: usize>(channels: [u32; CHANNELS]) -> [(u32, u32); SLOTS] {
    let (mut all, mut at) = ([(0, 0); SLOTS], 0);
    while at < SLOTS {
        let is_second = (at % 2 == 1) != (at >= CHANNELS);
        all[at] = (channels[at / 2], is_second as u32);
        at += 1;
    }
    all
}

/// Slots of the first processor, then those of the second one, whose half of the board is turned
/// round.
const fn and_turned<const HALF: usize, const SLOTS: usize>(own: &[(u32, u32)]) -> [(u32, u32); SLOTS] {
    let (mut all, mut at) = ([(0, 0); SLOTS], 0);
    while at < HALF {
        all[at] = own[at];
        all[SLOTS - 1 - at] = own[at];
        at += 1;
    }
    all
}

/// A1, A2, ... on Dell's boards with ten slots for the first of two Skylake-SP.
pub(super) const DELL_TEN: &[(u32, u32)] =
    &[(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (0, 1), (1, 1), (3, 1), (4, 1)];
pub(super) const DELL_SIX: &[(u32, u32)] = &rounds::<6, 6>([0, 1, 2, 3, 4, 5]);
pub(super) const DELL_TWELVE: &[(u32, u32)] = &rounds::<6, 12>([0, 1, 2, 3, 4, 5]);

/// Nodes and blades: the first channel of each controller has two.
pub(super) const DELL_SKYLAKE_EIGHT: &[(u32, u32)] =
    &[(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (0, 1), (3, 1)];

/// Channels A to H of slots 1 to 8 of Dell's Ice Lake boards; 9 to 16 are their second slots.
pub(super) const DELL_SIXTEEN: &[(u32, u32)] = &rounds::<8, 16>([0, 4, 2, 6, 1, 5, 3, 7]);
pub(super) const DELL_EIGHT: &[(u32, u32)] = &rounds::<8, 8>([0, 4, 2, 6, 1, 5, 3, 7]);

/// Channels A to F have odd slots, G to L even ones.
pub(super) const DELL_EPYC_TWELVE: &[(u32, u32)] = &rounds::<12, 12>([0, 6, 2, 8, 1, 7, 4, 10, 3, 9, 5, 11]);

/// HPE counts across the board: 7 to 12 belong to the first controller, 1 to 6 to the second one.
pub(super) const HPE_TWELVE: &[(u32, u32)] = &across::<6, 12>([5, 4, 3, 0, 1, 2]);

/// Lenovo counts across the board as well: 1 to 6 belong to the first controller.
pub(super) const LENOVO_TWELVE: &[(u32, u32)] = &across::<6, 12>([2, 1, 0, 3, 4, 5]);

/// Boards of the same maker with eight slots per processor: the first channel of each controller
/// has two.
pub(super) const LENOVO_EIGHT: &[(u32, u32)] =
    &[(2, 0), (1, 0), (0, 0), (0, 1), (3, 1), (3, 0), (4, 0), (5, 0)];

/// Channels 3 to 0 of two slots each, then 4 to 7; of four controllers 1 to 8 belong to the first
/// two.
pub(super) const LENOVO_SIXTEEN: &[(u32, u32)] = &across::<8, 16>([3, 2, 1, 0, 4, 5, 6, 7]);

/// Channels L to H, then G, then A to F.
pub(super) const LENOVO_EPYC_TWELVE: &[(u32, u32)] =
    &rounds::<12, 12>([11, 10, 9, 8, 7, 6, 0, 1, 2, 3, 4, 5]);

/// Nodes with a slot a channel: the second processor is turned round.
pub(super) const LENOVO_NODE: &[(u32, u32)] = &and_turned::<8, 16>(LENOVO_WORKSTATION_EIGHT);

/// Channels of the four controllers as on LENOVO_SIXTEEN, from the other end.
pub(super) const LENOVO_SIXTEEN_BACK: &[(u32, u32)] = &across::<8, 16>([7, 6, 5, 4, 0, 1, 2, 3]);

/// Channels F to A, then G to L.
pub(super) const LENOVO_EPYC_NODE: &[(u32, u32)] = &rounds::<12, 12>([5, 4, 3, 2, 1, 0, 6, 7, 8, 9, 10, 11]);

/// Three channels of two or three slots, of which the last is filled first: the letters behind the
/// numbers give the order.
pub(super) const HP_SIX: &[(u32, u32)] = &[(0, 1), (0, 0), (1, 1), (1, 0), (2, 1), (2, 0)];
pub(super) const HP_NINE: &[(u32, u32)] =
    &[(0, 2), (0, 1), (0, 0), (1, 2), (1, 1), (1, 0), (2, 2), (2, 1), (2, 0)];

/// Three channels of two slots, of which the lower number is filled first.
pub(super) const HP_SIX_UP: &[(u32, u32)] = &[(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)];

/// Channels A to H of four controllers: 1 to 8 are of A to D, 9 to 16 of E to H.
pub(super) const LENOVO_SIXTEEN_V2: &[(u32, u32)] = &across::<8, 16>([1, 0, 3, 2, 6, 7, 4, 5]);

/// The same of nodes with a slot a channel: the second processor is turned round.
pub(super) const LENOVO_NODE_V2: &[(u32, u32)] =
    &and_turned::<8, 16>(&rounds::<8, 8>([1, 0, 3, 2, 6, 7, 4, 5]));

/// Channels D, B, A, E, F, H of EPYC 8004, which has no others.
pub(super) const LENOVO_SIENA: &[(u32, u32)] = &rounds::<6, 6>([2, 1, 0, 3, 4, 5]);

/// Channels 0 to 2 of either controller are 3, 5, 1 and 4, 6, 2; between 3, 4 and their processor
/// stand the second slots.
pub(super) const LENOVO_WORKSTATION: &[(u32, u32)] =
    &[(2, 0), (5, 0), (0, 0), (3, 0), (1, 0), (4, 0), (0, 1), (3, 1)];

/// Four channels of fully buffered modules.
pub(super) const DELL_BUFFERED: &[(u32, u32)] = &rounds::<4, 8>([0, 1, 2, 3]);

pub(super) const LENOVO_FOUR: &[(u32, u32)] = &[(1, 0), (1, 1), (0, 0), (0, 1)];

/// The eight channels of Ice Lake from the other end: 1 to 8 are of E to H, 9 to 16 of A to D.
pub(super) const ICE_LAKE_TURNED: &[(u32, u32)] = &across::<8, 16>([5, 4, 7, 6, 2, 3, 0, 1]);

/// A slot a channel: 1 to 3 belong to the first controller.
pub(super) const LENOVO_SIX: &[(u32, u32)] = &rounds::<6, 6>([2, 1, 0, 3, 4, 5]);

/// LENOVO_WORKSTATION without second slots.
pub(super) const LENOVO_WORKSTATION_SIX: &[(u32, u32)] = &rounds::<6, 6>([2, 5, 0, 3, 1, 4]);

/// Channels D to A, then E to H.
pub(super) const LENOVO_WORKSTATION_EIGHT: &[(u32, u32)] = &rounds::<8, 8>([3, 2, 1, 0, 4, 5, 6, 7]);

pub(super) const ROWS_TWELVE: &[(u32, u32)] =
    &[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (3, 2)];

/// HP_NINE without the third channel's third slot.
pub(super) const IBM_EIGHT: &[(u32, u32)] = &[(0, 2), (0, 1), (0, 0), (1, 2), (1, 1), (1, 0), (2, 1), (2, 0)];

pub(super) const TWO: &[(u32, u32)] = &rounds::<2, 2>([0, 1]);

/// HPE_TWELVE, and the second processor turned round.
pub(super) const HPE_BLADE: &[(u32, u32)] = &and_turned::<12, 24>(HPE_TWELVE);

/// LENOVO_TWELVE, and the second processor turned round.
pub(super) const LENOVO_BLADE: &[(u32, u32)] = &and_turned::<12, 24>(LENOVO_TWELVE);

/// Pairs of fully buffered modules: 1 and 3 are the first one.
pub(super) const PAIRS_EIGHT: &[(u32, u32)] =
    &[(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)];

/// Two cards of eight slots, two memory interfaces each: pairs on both are 1 and 8, 3 and 6, 2 and
/// 7, 4 and 5.
pub(super) const BUFFERED_SIXTEEN: &[(u32, u32)] = &[
    (0, 0),
    (0, 2),
    (0, 1),
    (0, 3),
    (1, 3),
    (1, 1),
    (1, 2),
    (1, 0),
    (2, 0),
    (2, 2),
    (2, 1),
    (2, 3),
    (3, 3),
    (3, 1),
    (3, 2),
    (3, 0),
];
