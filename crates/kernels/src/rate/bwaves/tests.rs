//! Tests of `bwaves`.
use super::flow::{CONDUCTION, GAMMA, VISCOSITY};
use super::*;

fn flux(state: [f64; VARS], axis: usize) -> [f64; VARS] {
    let [density, u, v, w, energy] = state;
    let along = state[1 + axis] / density;
    let pressure = (GAMMA - 1.0) * (energy - 0.5 * (u * u + v * v + w * w) / density);
    let mut flux = state.map(|value| value * along);
    flux[1 + axis] += pressure;
    flux[4] += pressure * along;
    flux
}

fn diffusing(state: [f64; VARS]) -> [f64; VARS] {
    let [density, u, v, w, energy] = state;
    let velocity = [u / density, v / density, w / density];
    let pressure = (GAMMA - 1.0) * (energy - 0.5 * (u * u + v * v + w * w) / density);
    [0.0, velocity[0], velocity[1], velocity[2], CONDUCTION * pressure / density]
}

#[test]
fn blocks_are_the_derivatives() {
    let grid = Grid { nx: 8, ny: 7, nz: 6 };
    let flow = Flow::at(grid, [2, 4, 1]);
    let momentum = flow.velocity.map(|v| v * flow.density);
    let energy = flow.pressure / (GAMMA - 1.0) + 0.5 * flow.density * flow.speed2();
    let state = [flow.density, momentum[0], momentum[1], momentum[2], energy];
    let moved = |column: usize, by: f64| {
        let mut state = state;
        state[column] += by;
        state
    };
    for column in 0..VARS {
        let (more, less) = (moved(column, 1e-6), moved(column, -1e-6));
        for row in 0..VARS {
            for axis in 0..3 {
                let slope = (flux(more, axis)[row] - flux(less, axis)[row]) / 2e-6;
                assert!((slope - flow.jacobian(axis)[row][column]).abs() < 1e-6, "{axis} {row} {column}");
            }
        }
        // The work of the stress, u . d(velocity), belongs to the energy.
        let slope = |row: usize| (diffusing(more)[row] - diffusing(less)[row]) / 2e-6;
        let work: f64 = (0..3).map(|axis| VISCOSITY * flow.velocity[axis] * slope(1 + axis)).sum();
        let expected =
            [0.0, VISCOSITY * slope(1), VISCOSITY * slope(2), VISCOSITY * slope(3), work + slope(4)];
        for (row, expected) in expected.iter().enumerate() {
            assert!((expected - flow.diffusion()[row][column]).abs() < 1e-7, "{row} {column}");
        }
    }
}

#[test]
fn the_product_is_that_of_the_scheme() -> Result<()> {
    let made = Bwaves::new(&mut Arena::new(1 << 20))?;
    let grid = made.grid;
    let counts = [grid.nx, grid.ny, grid.nz];
    let index =
        |cell: [usize; 3], var: usize| (cell[2] * grid.ny + cell[1]) * grid.line() + var * grid.nx + cell[0];
    let mut x = vec![0.0; made.x.len()];
    known(grid, |row, line| x[row * line.len()..][..line.len()].copy_from_slice(line));
    for cell in [[0, 0, 0], [grid.nx - 1, grid.ny - 1, grid.nz - 1], [3, 5, 2], [5, 0, 4]] {
        for row in 0..VARS {
            let mut expected = RATE * x[index(cell, row)];
            for axis in 0..3 {
                let (mut before, mut after) = (cell, cell);
                before[axis] = (cell[axis] + counts[axis] - 1) % counts[axis];
                after[axis] = (cell[axis] + 1) % counts[axis];
                for (at, split, spread) in [(cell, 0.0, 2.0), (before, -0.5, -1.0), (after, 0.5, -1.0)] {
                    let flow = Flow::at(grid, at);
                    let (jacobian, diffusion) = (flow.jacobian(axis), flow.diffusion());
                    for column in 0..VARS {
                        let block = split * jacobian[row][column] + spread * diffusion[row][column];
                        expected += block * x[index(at, column)];
                    }
                    expected += spread * 0.5 * flow.fastest(axis) * x[index(at, row)];
                }
            }
            let found = made.right[index(cell, row)];
            assert!((found - expected).abs() < 1e-11 * expected.abs().max(1.0), "{cell:?} {row}");
        }
    }
    Ok(())
}

#[test]
fn a_flipped_bit_is_noticed() -> Result<()> {
    let mut made = Bwaves::new(&mut Arena::new(2 << 20))?;
    made.iterate();
    let good = made.verify().map_err(anyhow::Error::msg)?;
    for (at, bit) in [(0, 0), (made.x.len() - 1, 1), (1234, 51), (77, 62)] {
        let kept = made.x[at];
        made.x[at] = f64::from_bits(kept.to_bits() ^ (1 << bit));
        assert_ne!(made.verify(), Ok(good));
        assert!(bit < 50 || made.verify().is_err());
        made.x[at] = kept;
    }
    assert_eq!(made.verify(), Ok(good));
    made.solve();
    assert_eq!(made.verify(), Ok(good), "without the widest vectors");
    Ok(())
}

#[test]
fn arenas_are_filled() {
    for bytes in [16 << 20, (64 << 20) + 12_345, 1_000_000_007, 16 << 30] {
        let grid = Grid::within(bytes).map(|grid| grid.cells() as u64 * CELL_BYTES).unwrap_or(0);
        assert!(grid <= bytes && grid as f64 > 0.9 * bytes as f64, "{grid} of {bytes}");
    }
    assert!(Grid::within(100_000).is_err());
}
