//! The flow that `bwaves` is linearised about, and its derivatives.
use super::{Grid, VARS};

pub(super) const CONDUCTION: f64 = 0.07;
pub(super) const VISCOSITY: f64 = 0.05;
pub(super) const GAMMA: f64 = 1.4;

pub(super) type Square = [[f64; VARS]; VARS];

/// Density, velocity and pressure at a cell of the blast.
pub(super) struct Flow {
    pub(super) density: f64,
    pub(super) velocity: [f64; 3],
    pub(super) pressure: f64,
}

impl Flow {
    pub(super) fn at(grid: Grid, cell: [usize; 3]) -> Flow {
        let place = |index: usize, count: usize| (index as f64 + 0.5) / count as f64 - 0.5;
        let from = [place(cell[0], grid.nx), place(cell[1], grid.ny), place(cell[2], grid.nz)];
        let radius2 = from[0] * from[0] + from[1] * from[1] + from[2] * from[2];
        let ratio2 = radius2 / 0.0625 * (radius2 / 0.0625);
        let inside = 1.0 / (1.0 + ratio2 * ratio2);
        let push = 6.0 * inside * (1.0 - inside) / (radius2.sqrt() + 0.05);
        Flow { density: 1.0 + 1.5 * inside, velocity: from.map(|v| v * push), pressure: 1.0 + 9.0 * inside }
    }
    pub(super) fn speed2(&self) -> f64 {
        let [u, v, w] = self.velocity;
        u * u + v * v + w * w
    }
    /// How the flux along an axis changes with the conservative variables.
    pub(super) fn jacobian(&self, axis: usize) -> Square {
        let (velocity, along) = (self.velocity, self.velocity[axis]);
        let half = 0.5 * (GAMMA - 1.0) * self.speed2();
        let enthalpy = GAMMA / (GAMMA - 1.0) * self.pressure / self.density + 0.5 * self.speed2();
        let mut a = [[0.0; VARS]; VARS];
        a[0][1 + axis] = 1.0;
        for row in 0..3 {
            a[1 + row][0] = -velocity[row] * along;
            a[1 + row][1 + axis] += velocity[row];
            a[1 + row][1 + row] += along;
            a[4][1 + row] = -(GAMMA - 1.0) * velocity[row] * along;
            a[1 + axis][1 + row] -= (GAMMA - 1.0) * velocity[row];
        }
        a[1 + axis][0] += half;
        a[1 + axis][4] = GAMMA - 1.0;
        a[4][0] = along * (half - enthalpy);
        a[4][1 + axis] += enthalpy;
        a[4][4] = GAMMA * along;
        a
    }
    /// How fast the fastest wave along an axis is.
    pub(super) fn fastest(&self, axis: usize) -> f64 {
        self.velocity[axis].abs() + (GAMMA * self.pressure / self.density).sqrt()
    }
    /// What diffuses, velocity and heat, by the conservative variables.
    pub(super) fn diffusion(&self) -> Square {
        let mut m = [[0.0; VARS]; VARS];
        let (velocity, inverse, heat) = (self.velocity, 1.0 / self.density, CONDUCTION * (GAMMA - 1.0));
        for row in 0..3 {
            m[1 + row][0] = -VISCOSITY * velocity[row] * inverse;
            m[1 + row][1 + row] = VISCOSITY * inverse;
            m[4][1 + row] = (VISCOSITY - heat) * velocity[row] * inverse;
        }
        let warm = heat * 0.5 * self.speed2() - CONDUCTION * self.pressure / self.density;
        m[4][0] = (warm - VISCOSITY * self.speed2()) * inverse;
        m[4][4] = heat * inverse;
        m
    }
}
