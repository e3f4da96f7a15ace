//! Host wheels and device wheels joined to one wheel.

mod library;
mod packs;
mod wheel;

pub use wheel::{JoinedWheel, WheelJoin};
