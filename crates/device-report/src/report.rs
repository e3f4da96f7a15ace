//! The data of a report, from accounts.

use std::collections::BTreeMap;
use std::io::{self, Write};

use device_account::Kind;
use serde::Serialize;

use crate::data::{Gpu, Node, NodeKind, Note, Thin};
use crate::file::File;
use crate::fold::{self, MOST_ROWS};
use crate::page;
use crate::quote::quoted;
use crate::thin;
use crate::tree::{Gpus, of_gpus, tree};

/// The version of the data: it grows when a reader of the last one would be wrong.
const VERSION: u32 = 1;

/// The data of a page.
#[derive(Debug, Serialize)]
pub struct Report {
    version: u32,
    tool: String,
    most_rows: usize,
    /// Bytes that nothing describes, or that are damaged.
    not_understood: Amounts,
    /// `true` if bytes of compressed data were apportioned to what is in it.
    is_apportioned: bool,
    gpus: Vec<Gpu>,
    notes: Vec<Note>,
    files: Vec<Node>,
}

/// An amount as the data has it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Amounts {
    stored: u64,
    plain: u64,
}

impl Report {
    /// Makes the data of files, with notes about them.
    #[must_use]
    pub fn new(files: &[File<'_>], notes: Vec<Note>) -> Self {
        let mut gpus = Gpus::default();
        let mut trees: Vec<Node> = files.iter().map(|file| tree(file, &mut gpus)).collect();
        let names = gpus.largest(&trees);
        let wanted: BTreeMap<usize, _> =
            names.iter().filter_map(|&at| Some((at, thin::wanted(gpus.names.get(at)?)?))).collect();
        for (file, tree) in files.iter().zip(&mut trees) {
            let parts: Vec<_> = file
                .parts()
                .map(|(_, account, stored)| (account, thin::images(account), stored))
                .collect();
            for gpu in of_gpus(tree).into_keys() {
                let Some(wanted) = wanted.get(&gpu) else { continue };
                let mut thin = Thin { gpu, ..Thin::default() };
                for (account, images, stored) in &parts {
                    thin::add(&mut thin, wanted, (account, images), *stored, &gpus.by_name);
                }
                tree.thin.push(thin);
            }
        }
        let mut not_understood = Amounts::default();
        trees.iter().for_each(|tree| add_not_understood(tree, &mut not_understood));
        let is_apportioned = files
            .iter()
            .flat_map(File::parts)
            .any(|(_, account, stored)| account.is_apportioned() || stored != account.size());
        let is_askable = |at: &usize| wanted.contains_key(at);
        let gpus = gpus.names.into_iter().enumerate().map(|(at, name)| Gpu {
            argument: Some(quoted(name.as_bytes())).filter(|_| is_askable(&at)),
            name: fold::shortened(name),
        });
        Report {
            version: VERSION,
            tool: format!("offload {}", env!("CARGO_PKG_VERSION")),
            most_rows: MOST_ROWS,
            not_understood,
            is_apportioned,
            gpus: gpus.collect(),
            notes,
            files: fold::fold(trees),
        }
    }

    /// Returns the rows of the files: all that they consist of.
    #[must_use]
    pub fn files(&self) -> &[Node] {
        &self.files
    }

    /// Returns the GPUs.
    #[must_use]
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// Writes the page.
    ///
    /// # Errors
    ///
    /// An error of writing.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        page::write(out, &serde_json::to_string(self)?)
    }

    /// Writes the data alone, as JSON.
    ///
    /// # Errors
    ///
    /// An error of writing.
    pub fn write_data(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(out, self).map_err(io::Error::from)
    }
}

/// Adds the bytes of a tree that are not understood.
fn add_not_understood(node: &Node, sum: &mut Amounts) {
    if node.kind == NodeKind::Kind && node.name == Kind::NotUnderstood.as_str() {
        sum.stored = sum.stored.saturating_add(node.stored);
        sum.plain = sum.plain.saturating_add(node.plain);
    }
    node.children.iter().for_each(|child| add_not_understood(child, sum));
}
