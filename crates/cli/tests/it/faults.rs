//! What goes wrong around a measurement, each planted for real: a fault costs what it touches and
//! nothing else.

mod children;
mod cut;
mod disk;
mod ends;
mod files;
mod large;
mod limits;
mod many;
mod place;
mod refused;
mod sealed;
mod streams;
mod system;
mod told;
