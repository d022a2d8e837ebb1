//! `molecules`: molecular dynamics of a Lennard-Jones liquid.
//!
//! Atoms in a periodic box under the potential of J. E. Lennard-Jones, "On the determination of
//! molecular fields", 1924, smoothly brought to zero at a cutoff, moved by velocity Verlet (W. C.
//! Swope and others, "A computer simulation method for the calculation of equilibrium constants for
//! the formation of physical clusters of molecules", 1982). A list (L. Verlet, "Computer
//! 'experiments' on classical fluids", 1967) contains neighbours, not pairs of atoms but pairs of
//! clusters, which suit vectors: S. Pall & B. Hess, "A flexible algorithm for
//! calculating pair interactions on SIMD architectures", 2013. In character the inner loops of SPEC
//! CPU2017's 508.namd and 544.nab: multiplications, a division and a mask for each pair, from the
//! second-level cache.
use super::{Character, Checksum, Component, Rng, Work, ids};
use crate::vectors::with_widest_vectors;
use anyhow::{Result, ensure};
use sys::block::Arena;

pub(super) const COMPONENT: Component = Component {
    id: ids::MOLECULES,
    title: "Molecular dynamics of a Lennard-Jones liquid",
    about: "Simulates 4000 atoms of a liquid by velocity Verlet, with cluster pair lists that are rebuilt every ten \
            steps.",
    reading: "Million atom steps a second; more is better. The work is vector floating point with divisions and \
              masks, from L2. The clock under load and the width of the vector units decide.",
    method: "Energy and momentum must be conserved, and the final forces must equal a sum over all pairs. The \
             checksum covers all positions and velocities. The motion is chaotic, so one wrong bit changes it. It \
             uses 1.3 MB at any footprint.",
    source: file!(),
    character: Character::FloatingPoint,
    units: "atom steps",
    reference: 5.97,
    expected_checksum: 0x316f805a0994a0da,
    make: |arena| Ok(Box::new(Molecules::new(arena)?)),
};

/// Atoms per cluster: the lanes of a vector.
const LANES: usize = 8;
/// Cubes of the initial lattice along each side, with four atoms each.
const CUBES: usize = 10;
const ATOMS: usize = 4 * CUBES * CUBES * CUBES;
const CLUSTERS: usize = ATOMS / LANES;
/// Side of a cube of four atoms: the liquid of density 0.8442 at its triple point.
const CUBE: f64 = 1.679_6;
const SIDE: f64 = CUBES as f64 * CUBE;
const CUTOFF2: f64 = 6.25;
/// Range of the list: the cutoff plus the distance that two atoms can approach each other before
/// the list is rebuilt.
const REACH2: f64 = 2.8 * 2.8;
const STEP: f64 = 0.004;
const BUILDS: usize = 50;
const STEPS_A_LIST: usize = 10;
/// Columns of the box along x and y; atoms are sorted by column to make compact clusters.
const COLUMNS: usize = 8;
const SEED: u64 = 0x301e_c01e_5000_0003;
/// Limits: energy relative to its kinetic part; momentum relative to an atom's; a force relative to
/// all pairs' sum.
const DRIFT: f64 = 1e-3;
const MOMENTUM: f64 = 1e-12;
const FORCE: f64 = 1e-9;

type Lanes = [f64; LANES];
/// A vector in space for each atom of a cluster.
type Cluster = [Lanes; 3];

/// 4 (s^-6 - s^-3) + SLOPE s + LEVEL in the square distance s: zero with its derivative at the
/// cutoff.
const SLOPE: f64 = 24.0 / (CUBED * CUBED * CUTOFF2) - 12.0 / (CUBED * CUTOFF2);
const LEVEL: f64 = 4.0 / CUBED - 4.0 / (CUBED * CUBED) - SLOPE * CUTOFF2;
const CUBED: f64 = CUTOFF2 * CUTOFF2 * CUTOFF2;

/// Forces between atom `at` and a cluster; `more` is added to their square distances.
#[inline(always)]
fn interact(at: [f64; 3], more: &Lanes, x: &Cluster, f: &mut Cluster, own: &mut Cluster) {
    let (mut apart, mut square, mut force) = ([[0.0; LANES]; 3], *more, [0.0; LANES]);
    for axis in 0..3 {
        for lane in 0..LANES {
            apart[axis][lane] = at[axis] - x[axis][lane];
            square[lane] += apart[axis][lane] * apart[axis][lane];
        }
    }
    for lane in 0..LANES {
        let inverse = 1.0 / square[lane];
        let cubed = inverse * inverse * inverse;
        let value = 24.0 * (inverse * cubed) * (2.0 * cubed - 1.0) - 2.0 * SLOPE;
        force[lane] = if square[lane] < CUTOFF2 { value } else { 0.0 };
    }
    for axis in 0..3 {
        for lane in 0..LANES {
            let push = force[lane] * apart[axis][lane];
            own[axis][lane] += push;
            f[axis][lane] -= push;
        }
    }
}

/// The shift of an atom at `from` to its image nearest to `to`.
#[inline(always)]
fn image(from: f64, to: f64) -> f64 {
    let apart = from - to;
    f64::from(i8::from(apart < -0.5 * SIDE) - i8::from(apart > 0.5 * SIDE))
}

/// A cluster as seen from an atom.
#[derive(Clone, Copy, Default)]
struct Seen {
    cluster: u16,
    /// The image of the atom, in sides of the box.
    shift: [i8; 3],
    /// The lanes that are left out: index in `skips`.
    skip: u8,
}

struct Molecules {
    start: [Vec<Cluster>; 2],
    x: Vec<Cluster>,
    v: Vec<Cluster>,
    f: Vec<Cluster>,
    keys: Vec<u64>,
    sorted: [Vec<Cluster>; 2],
    /// The centre of every cluster and the largest distance of its atoms from it along each axis.
    boxes: Vec<[[f64; 3]; 2]>,
    /// The clusters seen by every atom, and the end of each atom's part in that list.
    seen: Vec<Seen>,
    ends: Vec<u32>,
    /// Added to the square distances of a cluster's lanes: 0, or, for the atom in lane i of the
    /// same cluster, a number that moves lanes 0 to i out of range.
    skips: [Lanes; LANES + 1],
    energy: f64,
}

impl Molecules {
    fn new(arena: &Arena) -> Result<Molecules> {
        let zero = vec![[[0.0; LANES]; 3]; CLUSTERS];
        let mut made = Molecules {
            start: [zero.clone(), zero.clone()],
            x: zero.clone(),
            v: zero.clone(),
            f: zero.clone(),
            keys: vec![0; ATOMS],
            sorted: [zero.clone(), zero],
            boxes: vec![[[0.0; 3]; 2]; CLUSTERS],
            seen: Vec::with_capacity(ATOMS * 24),
            ends: vec![0; ATOMS],
            skips: [[0.0; LANES]; LANES + 1],
            energy: 0.0,
        };
        ensure!(
            made.bytes() <= arena.bytes,
            "molecules needs {} bytes; the arena has {}",
            made.bytes(),
            arena.bytes
        );
        for lane in 0..LANES {
            made.skips[lane + 1][..=lane].fill(1e9);
        }
        let [x, v] = &mut made.start;
        let mut rng = Rng(SEED);
        let corners = [[0.25, 0.25, 0.25], [0.75, 0.75, 0.25], [0.75, 0.25, 0.75], [0.25, 0.75, 0.75]];
        for atom in 0..ATOMS {
            let cube = atom / 4;
            let cubes = [cube % CUBES, cube / CUBES % CUBES, cube / CUBES / CUBES];
            for axis in 0..3 {
                x[atom / LANES][axis][atom % LANES] = (cubes[axis] as f64 + corners[atom % 4][axis]) * CUBE;
                v[atom / LANES][axis][atom % LANES] = rng.unit() + rng.unit() + rng.unit() - 1.5;
            }
        }
        let mean = momentum(v).map(|sum| sum / ATOMS as f64);
        v.iter_mut().for_each(|v| (0..3).for_each(|axis| v[axis] = v[axis].map(|v| v - mean[axis])));
        let scale = (1.5 * 1.44 * ATOMS as f64 / kinetic(v)).sqrt();
        v.iter_mut().flatten().flatten().for_each(|v| *v *= scale);
        made.energy = kinetic(v) + all_pairs(x).0;
        Ok(made)
    }

    /// Sorts the atoms by columns, alternately up and down, and lists the clusters that each of
    /// them sees.
    #[inline(always)]
    fn build(&mut self) {
        let Molecules { x, v, keys, sorted, boxes, seen, ends, .. } = self;
        for (cluster, x) in x.iter_mut().enumerate() {
            for axis in x.iter_mut() {
                for value in axis {
                    *value += if *value < 0.0 { SIDE } else { 0.0 } - if *value >= SIDE { SIDE } else { 0.0 };
                }
            }
            for lane in 0..LANES {
                let column =
                    |axis: usize| ((x[axis][lane] / SIDE * COLUMNS as f64) as u64).min(COLUMNS as u64 - 1);
                let (row, mut column) = (column(1), column(0));
                column = if row % 2 == 0 { column } else { COLUMNS as u64 - 1 - column };
                let up = (x[2][lane] * 1e6) as u64;
                let along = if column % 2 == 0 { up } else { (1 << 30) - up };
                keys[cluster * LANES + lane] =
                    ((row * COLUMNS as u64 + column) << 44) | (along << 13) | (cluster * LANES + lane) as u64;
            }
        }
        keys.sort_unstable();
        for (to, key) in keys.iter().enumerate() {
            let from = (key & 0x1fff) as usize;
            for axis in 0..3 {
                sorted[0][to / LANES][axis][to % LANES] = x[from / LANES][axis][from % LANES];
                sorted[1][to / LANES][axis][to % LANES] = v[from / LANES][axis][from % LANES];
            }
        }
        x.copy_from_slice(&sorted[0]);
        v.copy_from_slice(&sorted[1]);
        for ([middle, half], x) in boxes.iter_mut().zip(x.iter()) {
            for axis in 0..3 {
                let least = x[axis].iter().copied().fold(SIDE, f64::min);
                let most = x[axis].iter().copied().fold(0.0, f64::max);
                (middle[axis], half[axis]) = (0.5 * (least + most), 0.5 * (most - least));
            }
        }
        seen.clear();
        for (own, atoms) in x.iter().enumerate() {
            let mut near = [0u16; CLUSTERS];
            let mut count = 0;
            for other in own..CLUSTERS {
                let (a, b) = (boxes[own], boxes[other]);
                let mut square = 0.0;
                for axis in 0..3 {
                    let apart = (a[0][axis] - b[0][axis]).abs();
                    let apart = f64::min(apart, SIDE - apart) - a[1][axis] - b[1][axis];
                    square += if apart > 0.0 { apart * apart } else { 0.0 };
                }
                near[count] = other as u16;
                count += usize::from(square < REACH2);
            }
            for lane in 0..LANES {
                for &other in &near[..count] {
                    let x = &x[usize::from(other)];
                    let images =
                        [0, 1, 2].map(|axis| image(atoms[axis][lane], boxes[usize::from(other)][0][axis]));
                    let mut squares = [0.0; LANES];
                    for axis in 0..3 {
                        let at = atoms[axis][lane] + images[axis] * SIDE;
                        for (square, x) in squares.iter_mut().zip(&x[axis]) {
                            *square += (at - x) * (at - x);
                        }
                    }
                    if squares.iter().any(|square| *square < REACH2) {
                        let skip = if usize::from(other) == own { lane as u8 + 1 } else { 0 };
                        seen.push(Seen { cluster: other, shift: images.map(|image| image as i8), skip });
                    }
                }
                ends[own * LANES + lane] = seen.len() as u32;
            }
        }
    }

    #[inline(always)]
    fn forces(&mut self) {
        let Molecules { x, f, seen, ends, skips, .. } = self;
        f.fill([[0.0; LANES]; 3]);
        let mut begin = 0;
        for (atom, end) in ends.iter().enumerate() {
            let (cluster, lane) = (atom / LANES, atom % LANES);
            let at = x[cluster].map(|axis| axis[lane]);
            let mut own = [[0.0; LANES]; 3];
            for seen in &seen[begin..*end as usize] {
                let other = usize::from(seen.cluster);
                let mut at = at;
                at.iter_mut().zip(seen.shift).for_each(|(at, shift)| *at += f64::from(shift) * SIDE);
                interact(at, &skips[usize::from(seen.skip)], &x[other], &mut f[other], &mut own);
            }
            // Through memory, because the compiler would otherwise arrange the lanes above for this
            // sum, which is slower.
            let own = std::hint::black_box(own);
            for axis in 0..3 {
                f[cluster][axis][lane] += own[axis].iter().sum::<f64>();
            }
            begin = *end as usize;
        }
    }

    #[inline(always)]
    fn kick(&mut self) {
        for (v, f) in self.v.iter_mut().flatten().zip(self.f.iter().flatten()) {
            for (v, f) in v.iter_mut().zip(f) {
                *v += 0.5 * STEP * f;
            }
        }
    }

    #[inline(always)]
    fn run(&mut self, builds: usize) {
        self.x.copy_from_slice(&self.start[0]);
        self.v.copy_from_slice(&self.start[1]);
        for _ in 0..builds {
            self.build();
            self.forces();
            for _ in 0..STEPS_A_LIST {
                self.kick();
                for (x, v) in self.x.iter_mut().flatten().zip(self.v.iter().flatten()) {
                    for (x, v) in x.iter_mut().zip(v) {
                        *x += STEP * v;
                    }
                }
                self.forces();
                self.kick();
            }
        }
    }
}

fn kinetic(v: &[Cluster]) -> f64 {
    v.iter().flatten().flatten().map(|v| 0.5 * v * v).sum()
}

fn momentum(v: &[Cluster]) -> [f64; 3] {
    [0, 1, 2].map(|axis| v.iter().flat_map(|v| &v[axis]).sum())
}

/// The potential energy and the forces from all pairs of atoms, one by one.
fn all_pairs(x: &[Cluster]) -> (f64, Vec<[f64; 3]>) {
    let at: Vec<[f64; 3]> =
        x.iter().flat_map(|x| (0..LANES).map(|lane| [x[0][lane], x[1][lane], x[2][lane]])).collect();
    let (mut energy, mut forces) = (0.0, vec![[0.0; 3]; at.len()]);
    for (i, a) in at.iter().enumerate() {
        for (j, b) in at.iter().enumerate().skip(i + 1) {
            let apart = [0, 1, 2].map(|axis| a[axis] - b[axis] + image(a[axis], b[axis]) * SIDE);
            let s: f64 = apart.iter().map(|d| d * d).sum();
            if s < CUTOFF2 {
                energy += 4.0 * (1.0 / (s * s * s) - 1.0) / (s * s * s) + SLOPE * s + LEVEL;
                let force = 24.0 * (2.0 / (s * s * s) - 1.0) / (s * s * s * s) - 2.0 * SLOPE;
                for axis in 0..3 {
                    forces[i][axis] += force * apart[axis];
                    forces[j][axis] -= force * apart[axis];
                }
            }
        }
    }
    (energy, forces)
}

impl Work for Molecules {
    fn iterate(&mut self) {
        with_widest_vectors(
            #[inline(always)]
            || self.run(BUILDS),
        );
    }
    fn units(&self) -> u64 {
        (ATOMS * BUILDS * STEPS_A_LIST) as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        let (potential, forces) = all_pairs(&self.x);
        let energy = kinetic(&self.v);
        let drift = ((energy + potential - self.energy) / energy).abs();
        let momentum =
            momentum(&self.v).map(|sum| (sum / ATOMS as f64).abs()).into_iter().fold(0.0, f64::max);
        let mut wrong = 0.0;
        for (atom, force) in forces.iter().enumerate() {
            for axis in 0..3 {
                let found = self.f[atom / LANES][axis][atom % LANES];
                let scale = 1.0 + force.iter().map(|f| f.abs()).sum::<f64>();
                wrong = f64::max(wrong, (found - force[axis]).abs() / scale);
            }
        }
        if !(drift < DRIFT && momentum < MOMENTUM && wrong < FORCE) {
            return Err(format!(
                "energy drifts by {drift:e} (below {DRIFT:e}), momentum is {momentum:e} (below {MOMENTUM:e}), forces \
                 differ by {wrong:e} (below {FORCE:e})"
            ));
        }
        let mut sum = Checksum::new();
        self.x.iter().chain(&self.v).flatten().for_each(|values| sum.f64s(values));
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        let atoms = (7 * size_of::<Cluster>() * CLUSTERS + ATOMS * 12) as u64;
        atoms + (self.seen.capacity() * size_of::<Seen>()) as u64
    }
}

#[cfg(test)]
mod tests;
