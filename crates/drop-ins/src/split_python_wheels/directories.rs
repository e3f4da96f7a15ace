//! Wheels whose files lie in directories.

use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::Path;

use gpu_packages::{NewZip, Storing, Zip};
use tempfile::{NamedTempFile, TempDir};
use tool_edits::WheelParts;
use tool_kit::failure::Failure;
use tool_kit::opened::open_regular;
use tool_kit::output::Outputs;
use tool_kit::permissions::NewPermissions;
use tool_kit::{input, report};

/// Packs the files below a directory, as they are, into a temporary wheel. Links are followed, as wheels have none.
pub(super) fn pack(directory: &Path) -> Result<NamedTempFile, Failure> {
    let mut made = NamedTempFile::new()?;
    let mut zip = NewZip::new(made.as_file_mut()).map_err(io::Error::from)?;
    let mut files = Vec::new();
    find(directory, "", &mut files)?;
    files.sort();
    for name in files {
        let named = |error: io::Error| -> Failure {
            let path = directory.join(&name);
            format!("{}: {}", input::display(&path), report::reason(&error)).into()
        };
        let file = open_regular(&directory.join(&name)).map_err(named)?;
        let metadata = file.metadata().map_err(named)?;
        let added = zip.add(
            &name,
            mode(&metadata),
            &file,
            metadata.len(),
            Storing::Plain,
            NonZeroUsize::MIN,
        );
        added.map_err(|error| named(error.into()))?;
    }
    zip.finish().map_err(io::Error::from)?.flush()?;
    Ok(made)
}

/// Finds all files, with `/` in their names.
fn find(directory: &Path, prefix: &str, files: &mut Vec<String>) -> Result<(), Failure> {
    let named = |error: io::Error| format!("{}: {error}", input::display(directory));
    for entry in fs::read_dir(directory).map_err(named)? {
        let entry = entry.map_err(named)?;
        let path = entry.path();
        let name = entry.file_name().into_string().map_err(|_| {
            format!("{}: expected a name in UTF-8, as wheels have it", input::display(&path))
        })?;
        let name = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(named)?;
        if kind.is_dir() {
            find(&path, &format!("{name}/"), files)?;
        } else if kind.is_symlink() && path.is_dir() {
            return Err(format!("{}: a link to a directory", input::display(&path)).into());
        } else {
            files.push(name);
        }
    }
    Ok(())
}

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> u16 {
    use std::os::unix::fs::PermissionsExt;
    u16::try_from(metadata.permissions().mode() & 0o777).unwrap_or(0o644)
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> u16 {
    0o644
}

/// Makes a directory for wheels that are unpacked.
pub(super) fn scratch() -> io::Result<TempDir> {
    tempfile::tempdir()
}

/// Unpacks the wheels into directories with their names below the output, and notes these. All files appear together.
pub(super) fn unpack(parts: &mut WheelParts, output: &Path) -> Result<(), Failure> {
    let mut outputs = Outputs::default();
    let devices = parts.devices.iter_mut().map(|device| &mut device.path);
    for path in [&mut parts.host].into_iter().chain(devices) {
        let to = output.join(path.file_stem().unwrap_or(path.as_os_str()));
        if to.exists() {
            let name = input::display(&to);
            return Err(format!("{name}: expected no directory of this name").into());
        }
        unpack_one(path, &to, &mut outputs)?;
        *path = to;
    }
    Ok(outputs.commit()?)
}

fn unpack_one(wheel: &Path, to: &Path, outputs: &mut Outputs) -> Result<(), Failure> {
    let file = File::open(wheel)?;
    let zip = Zip::read(&file).map_err(io::Error::from)?;
    for (index, member) in zip.members().iter().enumerate() {
        let name = String::from_utf8_lossy(member.name()).into_owned();
        let is_unsafe = gpu_packages::unsafe_name(member.name()).is_some();
        if is_unsafe {
            return Err(Failure::refused(format!(
                "{name}: a name that leads out of the directory"
            )));
        }
        if member.is_directory() {
            continue;
        }
        let path = to.join(&name);
        let parent = path.parent().unwrap_or(to);
        let directory = outputs.make_directory(parent)?;
        let mut contents = zip.open(index, &file).map_err(io::Error::from)?;
        let name = directory.file(path.file_name().unwrap_or(path.as_os_str()));
        let mode = NewPermissions::PLAIN.with_execute(member.unix_mode().unwrap_or(0));
        outputs.write(&name, mode.into(), |out| io::copy(&mut contents, out))?;
    }
    Ok(())
}
