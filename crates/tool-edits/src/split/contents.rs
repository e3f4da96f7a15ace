//! The members of a wheel: what is split, and what moves to device wheels.

use std::collections::BTreeMap;
use std::io::Read;

use device_select::{DeviceFile, FileReader, few};
use fat_object::FileFormat;
use gpu_packages::{PackageEdit, Zip};
use tool_inputs::limits::Limits;
use tool_inputs::package::HEAD;
use tool_kit::failure::Failure;
use tool_kit::positioned::Positioned;

use super::library::Code;
use super::packs::{DIRECTORY, Pack};
use crate::unpacked::Unpacked;
use crate::words::{of_member, of_package};

/// Members of a wheel, by their indices.
pub(super) struct Contents {
    /// The directory of `.kpack`, without a slash at its end; empty for the root of the wheel.
    pub(super) root: String,
    /// Linked files below it, which may have device code.
    pub(super) candidates: Vec<Candidate>,
    /// Linked files elsewhere.
    pub(super) elsewhere: Vec<Candidate>,
    /// Files for some GPUs.
    pub(super) device_files: Vec<(usize, DeviceFile)>,
}

/// A linked file.
pub(super) struct Candidate {
    pub(super) index: usize,
    /// The path in the wheel.
    pub(super) path: String,
    size: u64,
    /// The most bytes that are read of it.
    most: u64,
}

impl Contents {
    /// Sorts the members. Without a root it is the one top directory that has code to be split.
    pub(super) fn of(
        zip: &Zip,
        edit: &mut PackageEdit<'_>,
        reader: Positioned<'_>,
        (root, readers, limits): (Option<&str>, &[FileReader], &Limits),
    ) -> Result<Self, Failure> {
        let mut linked = Vec::new();
        let mut others = Vec::new();
        for (index, member) in zip.members().iter().enumerate() {
            let Ok(path) = std::str::from_utf8(member.name()) else { continue };
            if member.is_directory() || member.is_symlink() || member.size() == 0 {
                continue;
            }
            let path = path.to_owned();
            let mut head = Vec::new();
            let contents = zip.open(index, reader).map_err(of_package)?;
            let read = contents.take(HEAD as u64).read_to_end(&mut head);
            read.map_err(|error| of_member(&path, error.into()))?;
            let is_linked =
                matches!(FileFormat::sniff(&head), FileFormat::Elf { .. } | FileFormat::Pe);
            // A member that is not deflated takes no more room than in the wheel.
            let most = limits.held_of(zip.file_len()).max(member.stored_size());
            let member = Candidate { index, path, size: member.size(), most };
            if is_linked { linked.push(member) } else { others.push(member) }
        }
        let root = match root {
            Some(root) => root.trim_matches('/').trim_start_matches("./").to_owned(),
            None => Self::find_root(&linked, edit, reader, limits)?,
        };
        let root = if root == "." { String::new() } else { root };
        if root.split('/').next().is_some_and(|top| top.ends_with(".data")) {
            let text = "its libraries lie in a directory that installers move, so that device wheels have no place beside them";
            return Err(Failure::refused(format!("{root}: {text}")));
        }
        let all = linked.iter().chain(&others);
        if !all.into_iter().any(|member| below(&member.path, &root).is_some()) {
            return Err(Failure::refused(format!("the wheel has no files below {root}")));
        }
        let device_file = |member: &Candidate| {
            let file = DeviceFile::at(below(&member.path, &root)?)?;
            readers.contains(&file.reader()).then_some((member.index, file))
        };
        let mut device_files: Vec<_> =
            linked.iter().chain(&others).filter_map(device_file).collect();
        device_files.sort_by_key(|(index, _)| *index);
        linked.retain(|member| device_file(member).is_none());
        let (candidates, elsewhere) =
            linked.into_iter().partition(|member| below(&member.path, &root).is_some());
        Ok(Contents { root, candidates, elsewhere, device_files })
    }

    /// Returns the path of a pack in its device wheel.
    pub(super) fn path_of(&self, pack: &Pack) -> String {
        let slash = if self.root.is_empty() { "" } else { "/" };
        format!("{}{slash}{DIRECTORY}/{}", self.root, pack.file_name())
    }

    fn find_root(
        linked: &[Candidate],
        edit: &mut PackageEdit<'_>,
        reader: Positioned<'_>,
        limits: &Limits,
    ) -> Result<String, Failure> {
        let mut tops: BTreeMap<&str, Vec<&Candidate>> = BTreeMap::new();
        for member in linked {
            let top = member.path.split_once('/').map_or(".", |(top, _)| top);
            tops.entry(top).or_default().push(member);
        }
        let size = |members: &[&Candidate]| {
            members.iter().map(|member| u128::from(member.size)).sum::<u128>()
        };
        let largest = tops.iter().max_by_key(|(_, members)| size(members)).map(|(top, _)| *top);
        let largest = largest.ok_or(Failure::NoCode)?;
        // Small ones are read first: the rest is read once.
        let mut with_code = Vec::new();
        let mut is_wrapped = |members: &[&Candidate]| -> Result<bool, Failure> {
            for member in members {
                let mut contents = edit.open(member.index, reader).map_err(of_package)?;
                let code = member.unpack(&mut contents).and_then(|file| Code::of(&file, limits));
                if let Code::Wrapped = code.map_err(|failure| of_member(&member.path, failure))? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        for (top, members) in tops.iter().filter(|(top, _)| **top != largest) {
            if is_wrapped(members)? {
                with_code.push(*top);
            }
        }
        if !with_code.is_empty()
            && let Some(members) = tops.get(largest)
            && is_wrapped(members)?
        {
            with_code.push(largest);
        }
        match with_code[..] {
            [] => Ok(largest.to_owned()),
            [one] => Ok(one.to_owned()),
            _ => Err(Failure::refused(format!(
                "libraries with device code lie in several directories ({}): --overlay-root says which ones to split",
                few(with_code)
            ))),
        }
    }
}

impl Candidate {
    /// Reads it into a temporary file.
    pub(super) fn unpack(&self, contents: &mut dyn Read) -> Result<Unpacked, Failure> {
        Unpacked::read(contents, self.most)
    }
}

/// Returns a path from this directory; `None` if it does not lie there.
pub(super) fn below<'p>(path: &'p str, root: &str) -> Option<&'p str> {
    if root.is_empty() {
        return Some(path);
    }
    path.strip_prefix(root)?.strip_prefix('/')
}
