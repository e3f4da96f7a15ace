//! The data of a page.

use serde::Serialize;

/// A row of the tree: its bytes are the sum of the bytes of its children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Node {
    /// The name of a file, a GPU or a function, or of a kind of bytes.
    pub name: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: NodeKind,
    /// Bytes in the file.
    pub stored: u64,
    /// Bytes that are not compressed.
    pub plain: u64,
    /// The GPU, by its position in the list of the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<usize>,
    /// The number of images of a GPU, or of the rows that a sum has.
    #[serde(skip_serializing_if = "is_zero")]
    pub count: u64,
    /// The path of a file as a word of a command line; `None` for one without a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// The reason why `offload thin` cannot change a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uneditable: Option<String>,
    /// The results of `offload thin` for a GPU of a file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thin: Vec<Thin>,
    /// The rows that it consists of, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

/// Returns whether a number is not worth a field.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The kind of a [`Node`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum NodeKind {
    /// A file.
    #[default]
    File,
    /// A package of files.
    Package,
    /// A file of a package.
    Member,
    /// All images of a GPU.
    Gpu,
    /// A kernel, or another function.
    Function,
    /// Host code.
    Host,
    /// Bytes of one kind, by the name that `offload size` prints.
    Kind,
    /// The sum of smaller rows, which the page does not have.
    More,
}

/// A GPU, or another target of images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Gpu {
    /// The name.
    pub name: String,
    /// The name as a word of a command line; `None` if it cannot be asked for.
    pub argument: Option<String>,
}

/// The result of `offload thin --keep` for a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Thin {
    /// The GPU, by its position in the list of the report.
    pub gpu: usize,
    /// Bytes in the file that the removed images have; an estimate in packages.
    pub stored: u64,
    /// Their bytes that are not compressed.
    pub plain: u64,
    /// Other GPUs whose code is retained, all or in part, because this GPU could load it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<usize>,
    /// The number of containers that would lose all their images.
    #[serde(skip_serializing_if = "is_zero")]
    pub emptied: u64,
    /// Bytes by which the file gets smaller; `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<u64>,
    /// The reason why `offload thin` fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Something that a reader of the page must know, about a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Note {
    /// `true` if something is wrong with the file; `false` for a warning.
    pub is_error: bool,
    /// The file.
    pub file: String,
    /// One sentence.
    pub message: String,
}

impl Note {
    /// Creates an error.
    #[must_use]
    pub fn error(file: &str, message: impl Into<String>) -> Self {
        Note { is_error: true, file: file.to_owned(), message: message.into() }
    }

    /// Creates a warning.
    #[must_use]
    pub fn warning(file: &str, message: impl Into<String>) -> Self {
        Note { is_error: false, ..Note::error(file, message) }
    }
}
