//! From files to one bundle.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use bundle_format::text::{Leader, TextBundle};
use bundle_format::{EntryId, ErrorKind, text};
use byte_parts::Layout;
use fat_edit::{HOST_PLACEHOLDER, object_bundle};
use fat_object::FileFormat;

use super::commands;
use super::job::{BundleJob, EntryRange, FileType, Notes};
use super::verbose::{self, Measured};
use tool_kit::failure::Failure;
use tool_kit::output::Outputs;
use tool_kit::payload::{Payload, Payloads};
use tool_kit::permissions::NewPermissions;

/// First bytes of an input, enough to recognise an object.
const HEAD: u64 = 64;

/// An entry of the bundle.
struct Entry<'j> {
    id: &'j str,
    payload: Payload,
    /// By its first bytes.
    format: FileFormat,
}

/// Makes a bundle. Opens and reads every input before it opens the output.
pub fn bundle(job: &BundleJob, outputs: &mut Outputs, notes: &mut Notes) -> Result<(), Failure> {
    let mut entries = open(job)?;
    match job.file_type {
        FileType::Archive => {
            Err("Archive files are only supported for unbundling".to_owned().into())
        }
        FileType::Text(leader) => as_text(job, leader, &mut entries, outputs, notes),
        FileType::Object => match host_object(&entries) {
            Some(host) => as_sections(job, host, &mut entries, outputs, notes),
            None => as_binary(job, &mut entries, outputs, notes),
        },
        FileType::Binary => as_binary(job, &mut entries, outputs, notes),
    }
}

fn open(job: &BundleJob) -> Result<Vec<Entry<'_>>, Failure> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (id, path) in &job.entries {
        if path.as_os_str() == "-" && entries.iter().any(|e| e.payload.path() == path) {
            return Err("standard input can be one input only".to_owned().into());
        }
        let (payload, head) = Payload::open(path, job.max_input, HEAD)?;
        entries.push(Entry { id, payload, format: FileFormat::sniff(&head) });
    }
    Ok(entries)
}

/// Returns the index of the host object to which sections can be added. `None` without a host, whatever the device
/// images are.
fn host_object(entries: &[Entry<'_>]) -> Option<usize> {
    entries.iter().position(|entry| {
        let is_host = EntryId::parse(entry.id).is_ok_and(|id| id.is_host());
        let is_object = matches!(
            entry.format,
            FileFormat::Elf { .. }
                | FileFormat::Coff
                | FileFormat::Pe
                | FileFormat::MachO
                | FileFormat::Wasm
        );
        is_host && is_object
    })
}

fn as_text(
    job: &BundleJob,
    leader: Leader,
    entries: &mut [Entry<'_>],
    outputs: &mut Outputs,
    notes: &mut Notes,
) -> Result<(), Failure> {
    let mut contents = Vec::new();
    for entry in entries.iter_mut() {
        contents.push((entry.id, entry.payload.read()?));
    }
    let contents: Vec<(&str, &[u8])> =
        contents.iter().map(|(id, content)| (*id, &content[..])).collect();
    let bytes = text::to_vec(leader, &contents).map_err(|error| {
        let entry = match error.kind() {
            ErrorKind::MarkerInPayload => error.entry(),
            _ => None,
        };
        match entry.and_then(|entry| entries.get(usize::try_from(entry).ok()?)) {
            Some(entry) => format!("'{}': {error}", entry.payload.path().display()),
            None => error.to_string(),
        }
    })?;
    if let Ok(bundle) = TextBundle::parse_with(&bytes, leader) {
        notes.places.extend(
            bundle
                .entries()
                .map(|entry| EntryRange { offset: Some(entry.offset()), size: entry.size() }),
        );
    }
    write(job, entries, &bytes, outputs, notes)
}

/// Returns the permissions for a bundle of these entries.
fn permissions(entries: &[Entry<'_>]) -> NewPermissions {
    NewPermissions::of_all(entries.iter().map(|entry| entry.payload.permissions()))
}

fn as_binary(
    job: &BundleJob,
    entries: &mut [Entry<'_>],
    outputs: &mut Outputs,
    notes: &mut Notes,
) -> Result<(), Failure> {
    let sizes = entries.iter().map(|entry| (entry.id, entry.payload.size()));
    let layout = bundle_format::layout(sizes, job.align).map_err(|error| error.to_string())?;
    notes.places.extend(entries.iter().enumerate().map(|(index, entry)| EntryRange {
        offset: layout.offset(index),
        size: entry.payload.size(),
    }));
    if job.compression.is_some() {
        let mut bytes = Vec::new();
        let size = usize::try_from(layout.size());
        if !size.is_ok_and(|size| bytes.try_reserve_exact(size).is_ok()) {
            let error = byte_parts::Error::OutOfMemory { size: layout.size() };
            let error = bundle_format::Error::from(error);
            return Err(error.to_string().into());
        }
        write_binary(&layout, entries, &mut bytes)?;
        return write(job, entries, &bytes, outputs, notes);
    }
    if !job.dry_run {
        let how = permissions(entries);
        outputs.write_or_print(&job.output, how, |file| write_binary(&layout, entries, file))?;
    }
    Ok(())
}

/// Inputs go from file to file; where the output is one, the kernel copies.
fn write_binary<W: Write>(
    layout: &Layout,
    entries: &mut [Entry<'_>],
    out: &mut W,
) -> io::Result<()> {
    let payloads = entries.iter_mut().map(|entry| &mut entry.payload).collect();
    layout.parts().write_to(&mut Payloads(payloads), out)
}

/// Writes a bundle of these entries that is in memory, compressed if the job demands it.
fn write(
    job: &BundleJob,
    entries: &[Entry<'_>],
    bundle: &[u8],
    outputs: &mut Outputs,
    notes: &mut Notes,
) -> Result<(), Failure> {
    let mut bytes = bundle;
    let compressed;
    if let Some(options) = &job.compression {
        let start = Instant::now();
        compressed = ccob::compress(bundle, options).map_err(|error| error.to_string())?;
        let time = start.elapsed();
        let stored = compressed.len() as u64;
        if let Ok(header) = ccob::Header::parse(&compressed, stored) {
            let uncompressed = bundle.len() as u64;
            let measured = Measured { header: &header, stored, uncompressed, time };
            notes.verbose.extend(verbose::written(&measured, options.level()));
        }
        bytes = &compressed;
    }
    if !job.dry_run {
        outputs.write_or_print(&job.output, permissions(entries), |file| file.write_all(bytes))?;
    }
    Ok(())
}

/// Returns whether a file is of a format that has no object form.
fn is_of_other_format(error: &object_edit::Error) -> bool {
    error.kind() == object_edit::ErrorKind::Format
}

fn as_sections(
    job: &BundleJob,
    host: usize,
    entries: &mut [Entry<'_>],
    outputs: &mut Outputs,
    notes: &mut Notes,
) -> Result<(), Failure> {
    let (object, host_path) = match entries.get_mut(host) {
        Some(host) => (host.payload.read()?, host.payload.path().to_owned()),
        None => return Ok(()),
    };
    let sizes: Vec<_> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            if index == host {
                (entry.id, HOST_PLACEHOLDER.len() as u64)
            } else {
                (entry.id, entry.payload.size())
            }
        })
        .collect();
    let bundle = match object_bundle(&object, &sizes) {
        Ok(bundle) => bundle,
        // A universal Mach-O file, several objects in one.
        Err(error) if error.host().is_some_and(is_of_other_format) => {
            return as_binary(job, entries, outputs, notes);
        }
        Err(error) => return Err(format!("'{}': {error}", host_path.display()).into()),
    };
    let sizes = entries.iter().map(|entry| entry.payload.size());
    notes.places.extend(sizes.map(|size| EntryRange { offset: None, size }));
    if job.dry_run {
        let sections = entries.iter().enumerate().map(|(index, entry)| {
            if index == host {
                (entry.id, Path::new("<one zero byte>"))
            } else {
                (entry.id, entry.payload.path())
            }
        });
        notes.commands.push(commands::adding(sections, &host_path, &job.output));
        return Ok(());
    }
    let how = permissions(entries);
    // Inputs go from file to file.
    let mut fill = |index: usize, out: &mut File| match entries.get_mut(index) {
        Some(entry) if index != host => {
            let size = entry.payload.size();
            entry.payload.copy_to(0..size, out)?;
            Ok(size)
        }
        _ => {
            out.write_all(HOST_PLACEHOLDER)?;
            Ok(HOST_PLACEHOLDER.len() as u64)
        }
    };
    outputs.write_or_print(&job.output, how, |file| bundle.write_with(file, &mut fill))?;
    Ok(())
}
