//! Images of containers: OCI layouts, OCI archives and archives of `docker save`, whose layers change.

mod archive;
mod document;
mod images;
mod json;
mod layer;
mod records;
mod rewritten;
mod view;
mod visible;

pub use archive::{ImageArchive, NewFile};
pub use images::{ImageFiles, ImageLayer, Images};
pub use layer::LayerMembers;
pub use records::{ChangedLists, FileChange};
pub use rewritten::{ChangedImages, NewLayer};
pub use view::{ImageView, LayerFile};
pub use visible::VisibleMembers;
