//! `rays`: a path caster over spheres and a plane.
//!
//! Follows light backwards through 3000 spheres (matt, mirror and glass) to the sky: J.
//! Kajiya, "The rendering equation", 1986, with the refraction of T. Whitted, "An improved
//! illumination model for shaded display", 1980, and the reflectance of C. Schlick, "An inexpensive
//! BRDF model for physically-based rendering", 1994. What a ray hits first is found in a hierarchy
//! of boxes (T. Kay & J. Kajiya, "Ray tracing complex scenes", 1986). In character SPEC CPU2017's
//! 511.povray and 526.blender: floating point between branches that depend on it, square roots and
//! divisions, a tree that fits the caches.
use super::{Character, Checksum, Component, Rng, Work, ids};
use crate::vectors::with_widest_vectors;
use anyhow::{Result, ensure};
use sys::block::Arena;

pub(super) const COMPONENT: Component = Component {
    id: ids::RAYS,
    title: "Path caster over spheres",
    about: "Casts sixteen paths a pixel through 3000 spheres in a hierarchy of boxes, with matt, mirror and glass \
            surfaces.",
    reading: "Million paths a second; more is better. The work is scalar floating point with square roots, divisions \
              and dependent branches. Clock, branch prediction, L1 and L2 decide.",
    method: "The outline of a sphere must have its geometric area, and no pixel may be brighter than the sky. One \
             pixel in 199 is cast again without the hierarchy and must have the same bits. The checksum covers every \
             bit of the picture. It uses 1.1 MB at any footprint.",
    source: file!(),
    character: Character::FloatingPoint,
    units: "paths",
    reference: 1.39,
    expected_checksum: 0x7652e3958a0f5274,
    make,
};

const SIDE: usize = 176;
const SAMPLES: usize = 16;
const SPHERES: usize = 3000;
const DEPTH: usize = 8;
/// Maximum number of spheres in a leaf.
const LEAF: usize = 3;
const SEED: u64 = 0x4a75_0000_0000_0005;
/// Pixels whose index is a multiple of this are cast again without the hierarchy.
const AGAIN: usize = 199;
/// Half the side of the picture, a square at distance 1 from the eye along z.
const HALF: f64 = 0.6;
const EYE: Vector = [0.0, 2.0, -6.0];
/// The sphere on the axis, with nothing in front of it.
const BIG: Sphere = Sphere { middle: [0.0, 2.0, 0.0], radius: 1.2, matter: Matter::Glass, colour: [0.95; 3] };
const GLASS: f64 = 1.5;
const NEAR: f64 = 1e-7;

type Vector = [f64; 3];

#[inline(always)]
fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// a + factor * b.
#[inline(always)]
fn along(a: Vector, b: Vector, factor: f64) -> Vector {
    [a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]]
}

#[inline(always)]
fn unit(a: Vector) -> Vector {
    let scale = 1.0 / dot(a, a).sqrt();
    a.map(|value| value * scale)
}

#[derive(Clone, Copy, PartialEq)]
enum Matter {
    Matt,
    Mirror,
    Glass,
}

#[derive(Clone, Copy)]
struct Sphere {
    middle: Vector,
    radius: f64,
    matter: Matter,
    colour: Vector,
}

#[derive(Clone, Copy)]
struct Ray {
    from: Vector,
    to: Vector,
}

/// The first hit of a ray: distance and sphere.
#[derive(Clone, Copy)]
struct Hit {
    far: f64,
    sphere: usize,
}

impl Sphere {
    /// Replaces `hit` if this sphere is hit nearer.
    #[inline(always)]
    fn hit(&self, ray: &Ray, index: usize, hit: &mut Hit) {
        let apart = along(ray.from, self.middle, -1.0);
        let half = dot(apart, ray.to);
        let square = half * half - (dot(apart, apart) - self.radius * self.radius);
        if square > 0.0 {
            let root = square.sqrt();
            let far = if -half - root > NEAR { -half - root } else { root - half };
            if far > NEAR && (far < hit.far || (far == hit.far && index < hit.sphere)) {
                *hit = Hit { far, sphere: index };
            }
        }
    }
}

/// A box with its content: `count` spheres from `first` on, or two nodes (the next one and
/// `first`), separated along `axis`.
#[derive(Clone, Copy)]
struct Node {
    low: Vector,
    high: Vector,
    first: u32,
    count: u16,
    axis: u16,
}

impl Node {
    /// Whether the ray enters the box nearer than `far`.
    #[inline(always)]
    fn met(&self, from: Vector, inverse: Vector, far: f64) -> bool {
        let (mut enter, mut leave) = (0.0, far);
        for axis in 0..3 {
            let low = (self.low[axis] - from[axis]) * inverse[axis];
            let high = (self.high[axis] - from[axis]) * inverse[axis];
            let (near, distant) = if low < high { (low, high) } else { (high, low) };
            enter = if near > enter { near } else { enter };
            leave = if distant < leave { distant } else { leave };
        }
        enter <= leave
    }
}

/// Builds the hierarchy: halves the spheres along the axis of their largest extent.
fn build(spheres: &mut [Sphere], first: usize, nodes: &mut Vec<Node>) {
    let (mut low, mut high) = ([f64::MAX; 3], [f64::MIN; 3]);
    let (mut least, mut most) = (low, high);
    for sphere in spheres.iter() {
        for axis in 0..3 {
            // Slightly larger than the sphere, to allow for rounding.
            low[axis] = low[axis].min(sphere.middle[axis] - sphere.radius - 1e-9);
            high[axis] = high[axis].max(sphere.middle[axis] + sphere.radius + 1e-9);
            least[axis] = least[axis].min(sphere.middle[axis]);
            most[axis] = most[axis].max(sphere.middle[axis]);
        }
    }
    let own = nodes.len();
    nodes.push(Node { low, high, first: first as u32, count: spheres.len() as u16, axis: 0 });
    if spheres.len() <= LEAF {
        return;
    }
    let spread = [0, 1, 2].map(|axis: usize| most[axis] - least[axis]);
    let axis = (0..3).fold(0, |best, axis| if spread[axis] > spread[best] { axis } else { best });
    spheres.sort_by(|a, b| a.middle[axis].total_cmp(&b.middle[axis]));
    let (left, right) = spheres.split_at_mut(spheres.len() / 2);
    build(left, first, nodes);
    (nodes[own].first, nodes[own].count, nodes[own].axis) = (nodes.len() as u32, 0, axis as u16);
    build(right, first + left.len(), nodes);
}

struct Scene {
    spheres: Vec<Sphere>,
    nodes: Vec<Node>,
    /// Index of the big sphere after sorting.
    big: usize,
    /// Brightness of the sky and reflectance of the ground; 1 in a test.
    white: bool,
}

impl Scene {
    fn new() -> Scene {
        let mut rng = Rng(SEED);
        let mut spheres = vec![BIG];
        while spheres.len() < SPHERES {
            let middle = [16.0 * rng.unit() - 8.0, 0.1 + 5.0 * rng.unit(), 21.0 * rng.unit() - 1.0];
            let radius = 0.05 + 0.2 * rng.unit() * rng.unit();
            let colour = [0; 3].map(|_| 0.4 + 0.5 * rng.unit());
            let matter = [Matter::Matt, Matter::Matt, Matter::Mirror, Matter::Glass][rng.below(4) as usize];
            let aside = middle[0] * middle[0] + (middle[1] - 2.0) * (middle[1] - 2.0);
            if middle[2] > 1.5 || aside > 2.25 {
                spheres.push(Sphere { middle, radius, matter, colour });
            }
        }
        let mut nodes = Vec::new();
        build(&mut spheres, 0, &mut nodes);
        let big = spheres.iter().position(|sphere| sphere.radius == BIG.radius).unwrap_or(0);
        Scene { spheres, nodes, big, white: false }
    }

    /// The first hit: a sphere, the ground (index SPHERES), or none.
    #[inline(always)]
    fn first<const BOXES: bool>(&self, ray: &Ray) -> Option<Hit> {
        let mut hit = Hit { far: f64::INFINITY, sphere: usize::MAX };
        let ground = -ray.from[1] / ray.to[1];
        if ground > NEAR {
            hit = Hit { far: ground, sphere: SPHERES };
        }
        if !BOXES {
            self.spheres.iter().enumerate().for_each(|(index, sphere)| sphere.hit(ray, index, &mut hit));
            return (hit.sphere <= SPHERES).then_some(hit);
        }
        let inverse = ray.to.map(|value| 1.0 / value);
        let mut stack = [0; 32];
        let mut depth = 1;
        while depth > 0 {
            depth -= 1;
            let index = stack[depth];
            let node = &self.nodes[index as usize];
            if !node.met(ray.from, inverse, hit.far) {
                continue;
            }
            if node.count > 0 {
                let first = node.first as usize;
                for (sphere, index) in
                    self.spheres[first..first + usize::from(node.count)].iter().zip(first..)
                {
                    sphere.hit(ray, index, &mut hit);
                }
                continue;
            }
            let ahead = ray.to[usize::from(node.axis)] > 0.0;
            let (near, far) = if ahead { (index + 1, node.first) } else { (node.first, index + 1) };
            stack[depth] = far;
            stack[depth + 1] = near;
            depth += 2;
        }
        (hit.sphere <= SPHERES).then_some(hit)
    }

    #[inline(always)]
    fn sky(&self, to: Vector) -> Vector {
        if self.white {
            return [1.0; 3];
        }
        let sun = dot(to, [0.48, 0.6, -0.64]) > 0.97;
        let up = if to[1] > 0.0 { to[1] } else { 0.0 };
        if sun { [1.0; 3] } else { [0.6 - 0.4 * up, 0.6 - 0.2 * up, 0.6 + 0.2 * up] }
    }

    /// The light that a path brings to the eye, and the sphere that it hits first.
    #[inline(always)]
    fn path<const BOXES: bool>(&self, mut ray: Ray, rng: &mut Rng) -> (Vector, usize) {
        let mut light = [1.0; 3];
        let mut seen = usize::MAX;
        for depth in 0..DEPTH {
            let Some(hit) = self.first::<BOXES>(&ray) else {
                let sky = self.sky(ray.to);
                return ([light[0] * sky[0], light[1] * sky[1], light[2] * sky[2]], seen);
            };
            if depth == 0 {
                seen = hit.sphere;
            }
            let at = along(ray.from, ray.to, hit.far);
            let (mut normal, matter, mut colour) = match self.spheres.get(hit.sphere) {
                Some(sphere) => {
                    let normal = along(at, sphere.middle, -1.0).map(|value| value * (1.0 / sphere.radius));
                    (normal, sphere.matter, sphere.colour)
                }
                None => {
                    let even = ((at[0].floor() + at[2].floor()) * 0.5).fract() == 0.0;
                    ([0.0, 1.0, 0.0], Matter::Matt, [if even { 0.8 } else { 0.3 }; 3])
                }
            };
            if self.white {
                colour = [1.0; 3];
            }
            (0..3).for_each(|channel| light[channel] *= colour[channel]);
            let mut slant = -dot(ray.to, normal);
            let inside = slant < 0.0;
            if inside {
                (normal, slant) = (normal.map(|value| -value), -slant);
            }
            let mirrored = along(ray.to, normal, 2.0 * slant);
            let to = match matter {
                Matter::Mirror => mirrored,
                Matter::Matt => along(normal, anywhere(rng), 1.0),
                Matter::Glass => {
                    let ratio = if inside { GLASS } else { 1.0 / GLASS };
                    let square = 1.0 - ratio * ratio * (1.0 - slant * slant);
                    let base = (GLASS - 1.0) / (GLASS + 1.0) * ((GLASS - 1.0) / (GLASS + 1.0));
                    // Schlick's formula needs the angle outside of the sphere.
                    let outer = if inside { square.max(0.0).sqrt() } else { slant };
                    let rest = 1.0 - outer;
                    let reflected = base + (1.0 - base) * (rest * rest) * (rest * rest) * rest;
                    if square <= 0.0 || rng.unit() < reflected {
                        mirrored
                    } else {
                        along(ray.to.map(|value| value * ratio), normal, ratio * slant - square.sqrt())
                    }
                }
            };
            ray = Ray { from: at, to: unit(to) };
        }
        ([0.0; 3], seen)
    }

    /// The light of a pixel, and the number of its paths that hit the big sphere first.
    #[inline(always)]
    fn pixel<const BOXES: bool>(&self, index: usize) -> (Vector, u32) {
        let mut rng = Rng(SEED ^ (index as u64).wrapping_mul(0xd134_2543_de82_ef95));
        let (mut sum, mut big) = ([0.0; 3], 0);
        for _ in 0..SAMPLES {
            let mut place = |at: usize| ((at as f64 + rng.unit()) / SIDE as f64 * 2.0 - 1.0) * HALF;
            let (x, y) = (place(index % SIDE), place(index / SIDE));
            let (light, seen) = self.path::<BOXES>(Ray { from: EYE, to: unit([x, -y, 1.0]) }, &mut rng);
            sum = along(sum, light, 1.0 / SAMPLES as f64);
            big += u32::from(seen == self.big);
        }
        (sum, big)
    }
}

/// A unit vector in a random direction, by von Neumann's rejection.
#[inline(always)]
fn anywhere(rng: &mut Rng) -> Vector {
    loop {
        let at = [0; 3].map(|_| 2.0 * rng.unit() - 1.0);
        let square = dot(at, at);
        if square < 1.0 && square > 1e-4 {
            return at.map(|value| value * (0.999_999 / square.sqrt()));
        }
    }
}

struct Rays {
    scene: Scene,
    picture: Vec<Vector>,
    /// Number of paths that hit the big sphere first.
    big: u32,
}

fn make(arena: &mut Arena) -> Result<Box<dyn Work>> {
    let made = Rays { scene: Scene::new(), picture: vec![[0.0; 3]; SIDE * SIDE], big: 0 };
    ensure!(made.bytes() <= arena.bytes, "rays needs {} bytes; the arena has {}", made.bytes(), arena.bytes);
    Ok(Box::new(made))
}

impl Rays {
    #[inline(always)]
    fn cast(&mut self) {
        let Rays { scene, picture, big } = self;
        *big = 0;
        for (index, pixel) in picture.iter_mut().enumerate() {
            let (light, seen) = scene.pixel::<true>(index);
            *pixel = light;
            *big += seen;
        }
    }
}

impl Work for Rays {
    fn iterate(&mut self) {
        with_widest_vectors(
            #[inline(always)]
            || self.cast(),
        );
    }
    fn units(&self) -> u64 {
        (SIDE * SIDE * SAMPLES) as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        // The cone that touches the sphere has sin = radius / distance, and cuts a disc of radius
        // tan from the picture.
        let distance = BIG.middle[2] - EYE[2];
        let tan2 = BIG.radius * BIG.radius / (distance * distance - BIG.radius * BIG.radius);
        let (area, found) = (
            std::f64::consts::PI * tan2 / (4.0 * HALF * HALF),
            f64::from(self.big) / (SIDE * SIDE * SAMPLES) as f64,
        );
        if (found / area - 1.0).abs() > 0.01 {
            return Err(format!("the sphere covers {found} of the picture, not {area}"));
        }
        if !self.picture.iter().flatten().all(|value| (0.0..=1.0).contains(value)) {
            return Err("a pixel is brighter than the sky, or negative".to_string());
        }
        for index in (0..SIDE * SIDE).step_by(AGAIN) {
            let again = self.scene.pixel::<false>(index).0;
            if again.map(f64::to_bits) != self.picture[index].map(f64::to_bits) {
                return Err(format!(
                    "pixel {index} is {:?} with boxes, but {again:?} without",
                    self.picture[index]
                ));
            }
        }
        let mut sum = Checksum::new();
        self.picture.iter().for_each(|pixel| sum.f64s(pixel));
        sum.word(u64::from(self.big));
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        let Scene { spheres, nodes, .. } = &self.scene;
        (size_of_val(&spheres[..]) + size_of_val(&nodes[..]) + size_of_val(&self.picture[..])) as u64
    }
}

#[cfg(test)]
mod tests;
