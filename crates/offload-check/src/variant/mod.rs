//! Variants of wheels (PEP 825, a draft): declarations against code, and against each other.

mod answers;
mod code;
mod declaration;
mod parts;
mod set;

pub use answers::{VariantAnswer, VariantAnswers};
pub use code::{JustifiedValue, VariantCode};
pub use declaration::{INDEX_END, VariantDeclaration};
pub use parts::{VariantLevel, VariantPart, declared};
pub use set::VariantSet;
