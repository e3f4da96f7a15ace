//! The account of a file, and its rows.

use fat_object::{ContainerKind, Finding, ImageInfo, PathStep};

use crate::kind::{Amount, Kind};
use crate::rest::Rest;
use crate::rows::{Row, Rows};

/// An image, and the bytes that it has in the file.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImageShare {
    /// The image.
    pub info: ImageInfo,
    /// Its bytes by their kinds. The header of its entry in a fatbinary is of the kind [`Container`](Kind::Container).
    pub kinds: Vec<(Kind, Amount)>,
    /// Its functions, each with its part of these bytes, if they were asked for.
    pub functions: Vec<FunctionShare>,
    /// The bytes that belong to no function, by their kinds.
    pub rest: Vec<(Kind, Amount)>,
    /// A hash of its bytes, not compressed: XXH3 of 128 bits. `None` if it was not asked for, or if they could not be read.
    pub hash: Option<u128>,
}

/// A kernel or another function, and the bytes that it has in the file.
#[derive(Debug)]
#[non_exhaustive]
pub struct FunctionShare {
    /// The name as stored, mangled.
    pub name: String,
    /// Its bytes: code, constants, symbols and what describes it.
    pub amount: Amount,
    /// A hash of its machine code and constants, if it was asked for; `None` if it has none, or if relocations change their sections: what they
    /// refer to is not compared.
    pub hash: Option<u128>,
}

impl ImageShare {
    /// Returns all its bytes.
    #[must_use]
    pub fn amount(&self) -> Amount {
        self.kinds.iter().map(|(_, amount)| *amount).sum()
    }

    /// Returns the name of its target.
    #[must_use]
    pub fn target(&self) -> String {
        self.info.total_name()
    }
}

/// The account of a file: each of its bytes once.
#[derive(Debug)]
pub struct Account {
    pub(crate) size: u64,
    pub(crate) images: Vec<ImageShare>,
    pub(crate) rest: Vec<Rest>,
    pub(crate) shared: u64,
    pub(crate) is_apportioned: bool,
    pub(crate) findings: Vec<Finding>,
}

/// The grouping of rows.
///
/// Exhaustive: a caller names the group that it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The GPU, and the kind of bytes.
    TargetAndKind,
    /// The GPU.
    Target,
    /// The kind of bytes.
    Kind,
    /// The GPU, and the kernel or function.
    Function,
    /// The innermost container.
    Container,
    /// The section of the host file.
    Section,
}

impl Account {
    /// Returns the size of the file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the images, in file order.
    #[must_use]
    pub fn images(&self) -> &[ImageShare] {
        &self.images
    }

    /// Returns how many bytes two containers, images or sections claim: the first one has them.
    #[must_use]
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// Returns whether bytes of compressed data were apportioned to what is in it.
    #[must_use]
    pub fn is_apportioned(&self) -> bool {
        self.is_apportioned
    }

    /// Returns what the walk found wrong, and images that could not be read.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the sum of all rows: [`size`](Self::size) bytes are stored.
    #[must_use]
    pub fn total(&self) -> Amount {
        let images = self.images.iter().map(ImageShare::amount);
        images.chain(self.rest.iter().map(|rest| rest.amount)).sum()
    }

    /// Returns the rows of bytes that belong to no image, by kind: of `host`, and of no target.
    #[must_use]
    pub fn rest(&self) -> Vec<Row> {
        let mut rows = Rows::default();
        for rest in &self.rest {
            rows.add(rest.target(), rest.kind.as_str(), rest.amount);
        }
        rows.into_all()
    }

    /// Returns the rows in groups, in file order. They add up to the [total](Self::total).
    #[must_use]
    pub fn rows(&self, by: By) -> Vec<Row> {
        let mut rows = Rows::default();
        for image in &self.images {
            let target = image.target();
            match by {
                By::TargetAndKind => image.kinds.iter().for_each(|(kind, amount)| {
                    rows.add(&target, kind.as_str(), *amount);
                }),
                By::Kind => image.kinds.iter().for_each(|(kind, amount)| {
                    rows.add("", kind.as_str(), *amount);
                }),
                By::Target => rows.add(&target, "", image.amount()),
                By::Function => {
                    let mut left = image.amount();
                    for function in &image.functions {
                        rows.add(&target, &function.name, function.amount);
                        left = left.without(function.amount);
                    }
                    rows.add(&target, "", left);
                }
                By::Container => rows.add("", &path(image.info.path()), image.amount()),
                By::Section => rows.add("", &section(image.info.path(), ""), image.amount()),
            }
        }
        for rest in &self.rest {
            let target = rest.target();
            let kind = rest.kind.as_str();
            match by {
                By::TargetAndKind | By::Function => rows.add(target, kind, rest.amount),
                By::Kind => rows.add("", kind, rest.amount),
                By::Target => rows.add(target, "", rest.amount),
                By::Container => rows.add("", &path(&rest.path), rest.amount),
                By::Section => rows.add("", &section(&rest.path, &rest.section), rest.amount),
            }
        }
        rows.into_all()
    }
}

/// Returns a path as text.
fn path(path: &[PathStep]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
}

/// Returns the place of the section that leads to something, or that it is; empty outside of sections.
fn section(path: &[PathStep], own: &str) -> String {
    let files = path.iter().filter(|step| step.kind() == ContainerKind::Member);
    let sections = path.iter().filter(|step| step.kind() == ContainerKind::Section);
    let mut names: Vec<_> = files.map(PathStep::name).collect();
    let first = sections.map(PathStep::name).next();
    // The scan names a section and an offset.
    let first = first.map(|name| name.split_once(" at 0x").map_or(name, |(name, _)| name));
    names.extend(first.or(Some(own)).filter(|name| !name.is_empty()));
    names.join(":")
}
