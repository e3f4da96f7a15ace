//! The data of a report, from accounts.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::mem;

use device_account::Kind;
use serde::Serialize;

use crate::data::{Gpu, Node, NodeKind, Note, Thin};
use crate::file::File;
use crate::fold::{self, MOST_ROWS};
use crate::page;
use crate::quote::Shell;
use crate::thin::{self, MOST_CHOICES};
use crate::tree::{Gpus, MOST_GPUS, of_gpus, tree};

/// The version of the data: it grows when a reader of the last one would be wrong.
const VERSION: u32 = 1;

/// The most notes of a page, errors first.
pub const MOST_NOTES: usize = 200;

/// The data of a page.
#[derive(Debug, Serialize)]
pub struct Report {
    version: u32,
    tool: String,
    most_rows: usize,
    most_gpus: usize,
    /// Bytes that nothing describes, or that are damaged.
    not_understood: Amounts,
    /// `true` if bytes of compressed data were apportioned to what is in it.
    is_apportioned: bool,
    /// The shell that command lines are for.
    shell: Shell,
    gpus: Vec<Gpu>,
    /// The numbers of all notes.
    errors: usize,
    warnings: usize,
    /// The first of them, errors before warnings.
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
    /// Makes the data of files, with notes about them. Command lines are for this shell.
    #[must_use]
    pub fn new(files: &[File<'_>], mut notes: Vec<Note>, shell: Shell) -> Self {
        let mut gpus = Gpus::default();
        let mut trees: Vec<Node> = files.iter().map(|file| tree(file, shell, &mut gpus)).collect();
        let gpus = gpus.ranked(&mut trees);
        let choices = gpus.names.iter().take(MOST_CHOICES).enumerate();
        let wanted: BTreeMap<usize, _> =
            choices.filter_map(|(at, name)| Some((at, thin::wanted(name)?))).collect();
        for (file, tree) in files.iter().zip(&mut trees) {
            let parts: Vec<_> =
                file.parts().map(|part| (part, thin::images(part.account))).collect();
            for gpu in of_gpus(tree).into_keys() {
                let (Some(wanted), Some(name)) = (wanted.get(&gpu), gpus.names.get(gpu)) else {
                    continue;
                };
                // The sizes of members are not those in the package.
                let saved = Some(0).filter(|_| file.share.is_none());
                let mut thin = Thin { gpu, saved, ..Thin::default() };
                for (part, images) in &parts {
                    thin::add(&mut thin, (wanted, name), (part, images), &gpus.by_name);
                }
                tree.thin.push(thin);
            }
        }
        let mut not_understood = Amounts::default();
        trees.iter().for_each(|tree| add_not_understood(tree, &mut not_understood));
        let is_apportioned = files
            .iter()
            .flat_map(File::parts)
            .any(|part| part.account.is_apportioned() || part.stored != part.account.size());
        let is_askable = |at: &usize| wanted.contains_key(at);
        let gpus = gpus.names.into_iter().enumerate().map(|(at, name)| Gpu {
            argument: shell.quoted(name.as_bytes()).filter(|_| is_askable(&at)),
            name: fold::shortened(name),
        });
        let errors = notes.iter().filter(|note| note.is_error).count();
        let warnings = notes.len() - errors;
        notes.sort_by_key(|note| !note.is_error);
        notes.truncate(MOST_NOTES);
        for note in &mut notes {
            note.file = fold::shortened(mem::take(&mut note.file));
            note.message = fold::shortened(mem::take(&mut note.message));
        }
        Report {
            version: VERSION,
            tool: format!("offload {}", env!("CARGO_PKG_VERSION")),
            most_rows: MOST_ROWS,
            most_gpus: MOST_GPUS,
            not_understood,
            is_apportioned,
            shell,
            gpus: gpus.collect(),
            errors,
            warnings,
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
