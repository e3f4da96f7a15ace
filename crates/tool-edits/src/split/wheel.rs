//! The split of a wheel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use device_select::{PackageGroup, few};
use fat_edit::PackGroup;
use gpu_packages::{
    NewContents, PackageEdit, PackageForm, PackageKind, WheelMetadata, Zip, variant_json,
};
use tool_inputs::package::Package;
use tool_kit::failure::Failure;
use tool_kit::output::Outputs;
use tool_kit::positioned::Positioned;
use tool_kit::stamp::Stamp;

use super::contents::{Candidate, Contents, below};
use super::device::{Device, Shared};
use super::library::Code;
use super::options::{DeviceWheel, SplitMember, WheelParts, WheelSplit};
use super::packs::{DIRECTORY, Pack, Packs, plan};
use super::texts::{device_name, host_lines};
use crate::paths::Paths;
use crate::unpacked::{Spool, Unpacked};
use crate::words::{NO_WAY_BACK, allow_if, by_reason, of_member, of_package};

/// A wheel that is being split.
struct Splitting<'s, 'z> {
    options: &'s WheelSplit<'s>,
    zip: &'z Zip,
    reader: Positioned<'s>,
    edit: PackageEdit<'z>,
    packs: Packs,
    members: Vec<SplitMember>,
    findings: Vec<String>,
    notes: Vec<String>,
    /// The new members.
    spool: Spool,
}

impl WheelSplit<'_> {
    /// Splits a wheel: all new wheels appear together.
    ///
    /// # Errors
    ///
    /// The file is not a wheel, has findings, or has no device code for HIP; a library cannot be split; errors of reading and
    /// writing.
    pub fn run(&self, package: &Package) -> Result<WheelParts, Failure> {
        let PackageForm::Zip(zip) = &package.form else { return Err(not_a_wheel()) };
        if zip.kind() != PackageKind::Wheel {
            return Err(not_a_wheel());
        }
        if variant_json(zip).is_some() {
            let text = "a variant of a wheel, by its variant.json: split the wheel before variants are made of it";
            return Err(Failure::refused(text));
        }
        self.check_requires()?;
        let opened = &package.opened;
        let reader = opened.reader();
        let mut edit = PackageEdit::new(zip, reader).map_err(of_package)?;
        let findings = allow_if(self.allow_findings, edit.findings())?;
        let metadata = WheelMetadata::read(zip, reader).map_err(of_package)?;
        let prefix = self.prefix(&metadata)?;
        let which = (self.overlay_root, self.readers, self.limits);
        let contents = Contents::of(zip, &mut edit, reader, which)?;
        let group = metadata.name().to_lowercase().replace('-', "_");
        let packs = Packs::new(PackGroup::new(&group, DIRECTORY, self.scheme), self.level);
        let (members, options) = (Vec::new(), self);
        let (notes, spool) = (Vec::new(), Spool::new()?);
        let mut splitting =
            Splitting { options, zip, reader, edit, packs, members, findings, notes, spool };
        splitting.libraries(&contents)?;
        splitting.check_moved(&contents)?;
        let Splitting { mut edit, packs, members, findings, mut notes, spool, .. } = splitting;
        let targets = targets(&members, &contents);
        let packs = packs.finish(members.iter().map(|member| &member.split))?;
        check_paths(zip, &contents, &packs)?;
        let devices = devices(packs, &contents)?;
        if devices.is_empty() {
            return Err(Failure::NoCode);
        }
        contents.device_files.iter().for_each(|(index, _)| edit.remove(*index));
        let groups = groups(&devices);
        let lines = host_lines(&prefix, metadata.version(), &groups);
        if let Some(member) = zip.members().get(metadata.index()) {
            let (text, threads) = (metadata.with_lines(&lines), self.limits.threads.count());
            let new = NewContents::like(member, &*text, None, threads, u64::MAX);
            edit.replace(metadata.index(), new.map_err(of_package)?);
        }
        let rewrite = edit.plan(reader, None, self.drop_signature).map_err(of_package)?;
        let unlisted: Vec<_> =
            rewrite.unlisted().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        if !unlisted.is_empty() {
            notes.push(format!("RECORD does not list {}", few(unlisted)));
        }
        let shared = Shared {
            zip,
            reader,
            host: &metadata,
            contents: &contents,
            prefix: &prefix,
            requires: self.device_requires,
            scheme: self.scheme,
            generator: self.generator,
            threads: self.limits.threads.count(),
        };
        let path = |name: &str| self.output.join(metadata.file_name(name));
        let host = path(metadata.name());
        let of_device = |device: &Device| path(&device_name(&prefix, &device.group));
        let of_devices = devices.values().map(of_device);
        check_outputs(of_devices.chain([host.clone()]), opened.stamp())?;
        let mut outputs = Outputs::default();
        let directory = outputs.make_directory(self.output)?;
        let how = opened.permissions();
        let name = |path: &Path| directory.file(path.file_name().unwrap_or(path.as_os_str()));
        outputs.write(&name(&host), how.into(), |out| {
            rewrite.write_with(reader, spool.whole(), &mut *out)?;
            opened.check()
        })?;
        let mut wheels = Vec::new();
        for device in devices.into_values() {
            let path = of_device(&device);
            let size = outputs.write(&name(&path), how.into(), |out| {
                device.write(&shared, out).map_err(io::Error::from)?;
                Ok(out.metadata()?.len())
            })?;
            let Device { group, packs, files } = device;
            let images = packs.iter().map(Pack::images).sum();
            let (packs, files) = (packs.len(), files.len());
            wheels.push(DeviceWheel { group, path, size, packs, images, files });
        }
        opened.check()?;
        outputs.commit()?;
        let host_size = rewrite.size();
        Ok(WheelParts { host, host_size, devices: wheels, members, targets, findings, notes })
    }
}

impl WheelSplit<'_> {
    /// Returns the start of the names of device packages.
    fn prefix(&self, host: &WheelMetadata) -> Result<String, Failure> {
        let prefix =
            self.device_prefix.map_or_else(|| format!("{}-device", host.name()), str::to_owned);
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if prefix.starts_with(|c: char| c.is_ascii_alphanumeric()) && prefix.chars().all(is_part) {
            return Ok(prefix);
        }
        let text = "expected a prefix of letters, digits, '.', '_' and '-' for the names of device packages";
        Err(format!("{text}, found '{prefix}'").into())
    }

    /// Fails for a requirement that would add other fields to `METADATA`.
    fn check_requires(&self) -> Result<(), Failure> {
        let has_control = |text: &&String| text.contains(char::is_control);
        self.device_requires.iter().find(has_control).map_or(Ok(()), |text| {
            let text = text.escape_debug();
            Err(format!("expected a requirement without control characters, found '{text}'").into())
        })
    }
}

impl Splitting<'_, '_> {
    /// Splits all libraries below the root. None is left half done: the first ones that cannot be split are named together.
    fn libraries(&mut self, contents: &Contents) -> Result<(), Failure> {
        let (mut faults, mut others) = (Vec::new(), Vec::new());
        for candidate in &contents.candidates {
            let name = below(&candidate.path, &contents.root).unwrap_or(&candidate.path);
            match self.library(candidate, name) {
                Ok(true) => {}
                Ok(false) => others.push(&*candidate.path),
                Err(failure) => {
                    let all = failure.complaints()?;
                    faults.extend(all.iter().map(|text| format!(":{}: {text}", candidate.path)));
                }
            }
        }
        if !faults.is_empty() {
            return Err(Failure::Refused(faults));
        }
        let mut elsewhere = Vec::new();
        for candidate in &contents.elsewhere {
            let path = &*candidate.path;
            let code = self.unpack(candidate).and_then(|it| Code::of(&it, self.options.limits));
            match code.map_err(|failure| of_member(path, failure))? {
                Code::None | Code::Unknown(_) => {}
                Code::Damaged(why) => self.notes.push(stays(path, &why)),
                _ => elsewhere.push(path),
            }
        }
        for (names, why) in [
            (others, "device code that is not HIP's, or to which no wrapper leads"),
            (elsewhere, "device code outside of the directory that is split"),
        ] {
            if !names.is_empty() {
                self.notes.push(format!("the host wheel keeps {why}: {}", few(names)));
            }
        }
        let lost = self.members.iter();
        let lost = lost.filter_map(|member| Some((member.split.no_way_back()?, &*member.path)));
        let lost = by_reason(lost).map(|text| format!("{NO_WAY_BACK}: {text}"));
        self.notes.extend(lost);
        Ok(())
    }

    fn unpack(&mut self, candidate: &Candidate) -> Result<Unpacked, Failure> {
        let read = |contents: &mut dyn Read| candidate.unpack(contents);
        self.read(candidate.index, &candidate.path, read)
    }

    /// Reads a member to its end, and compares it with `RECORD`.
    fn read<T>(
        &mut self,
        index: usize,
        path: &str,
        read: impl FnOnce(&mut dyn Read) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut contents = self.edit.open(index, self.reader).map_err(of_package)?;
        let value = read(&mut contents)?;
        let faults = self.edit.faults(index, &contents.finish());
        let allowed = allow_if(self.options.allow_findings, &faults)?;
        self.findings.extend(allowed.iter().map(|text| format!("{path}: {text}")));
        Ok(value)
    }

    /// Checks the files that move, whose rows of `RECORD` are new ones.
    fn check_moved(&mut self, contents: &Contents) -> Result<(), Failure> {
        for (index, _) in &contents.device_files {
            let Some(member) = self.zip.members().get(*index) else { continue };
            let path = String::from_utf8_lossy(member.name()).into_owned();
            let skip =
                |contents: &mut dyn Read| Ok(io::copy(contents, &mut io::sink()).map(|_| ())?);
            self.read(*index, &path, skip).map_err(|failure| of_member(&path, failure))?;
        }
        Ok(())
    }

    /// Splits a library, which has this name in packs. `false` if it has other device code.
    fn library(&mut self, candidate: &Candidate, name: &str) -> Result<bool, Failure> {
        let WheelSplit { limits, drop_signature, .. } = *self.options;
        let unpacked = self.unpack(candidate)?;
        match Code::of(&unpacked, limits)? {
            Code::Wrapped => {}
            Code::MovedOut => {
                return Err(Failure::refused("its device code is in kernel packs already"));
            }
            Code::Other => return Ok(false),
            Code::None => return Ok(true),
            Code::Unknown(why) => {
                self.notes.push(stays(&candidate.path, &why));
                return Ok(true);
            }
            Code::Damaged(why) => return Err(Failure::refused(why)),
        }
        let (file, size) = unpacked.subject();
        let split = plan((file, size), &self.packs.marker(name), limits, drop_signature)?;
        if split.targets().next().is_none() {
            let path = &candidate.path;
            self.notes
                .push(format!("{path}: its bundles have no code for GPUs: it stays as it is"));
            return Ok(true);
        }
        self.packs.add(&split, (file, size), limits).map_err(|error| error.to_string())?;
        let host = Unpacked::rewritten(|out| split.plan().write(file, out).map(|_| ()))?;
        if let Some(member) = self.zip.members().get(candidate.index) {
            let threads = limits.threads.count();
            let algorithms = self.edit.algorithms(candidate.index);
            let new = self.spool.add_new(|file, at| {
                NewContents::like_in(member, host, threads, &algorithms, (file, at))
            })?;
            self.edit.replace(candidate.index, new);
        }
        self.members.push(SplitMember { path: candidate.path.clone(), size, split });
        Ok(true)
    }
}

/// Returns the note about a damaged file.
fn stays(path: &str, why: &str) -> String {
    format!("{path}: it stays as it is, as it is damaged: {why}")
}

/// Fails for packs that cannot be installed beside the files of the wheel.
fn check_paths(zip: &Zip, contents: &Contents, packs: &[Pack]) -> Result<(), Failure> {
    let mut paths = Paths::default();
    for member in zip.members().iter().filter(|member| !member.is_directory()) {
        // Files of the wheel among themselves are as they were.
        let _ = paths.add(&String::from_utf8_lossy(member.name()), "");
    }
    for pack in packs {
        let path = contents.path_of(pack);
        if let Some((file, _)) = paths.add(&path, "") {
            let text = format!("the kernel pack {path} has no place beside the file {file}");
            return Err(Failure::refused(text));
        }
    }
    Ok(())
}

/// Fails for new wheels with one name, and for one that would replace the wheel that is split.
fn check_outputs(paths: impl Iterator<Item = PathBuf>, input: Stamp) -> Result<(), Failure> {
    let mut names = BTreeSet::new();
    for path in paths {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        if fs::metadata(&path).is_ok_and(|there| Stamp::new(&there) == input) {
            let text = format!("the new wheel {name} would replace the wheel that is split");
            return Err(Failure::refused(text));
        }
        // Some file systems do not tell cases apart.
        if !names.insert(name.to_lowercase()) {
            let text = "expected another prefix of the names of device packages";
            return Err(format!("two new wheels would have the name {name}: {text}").into());
        }
    }
    Ok(())
}

fn not_a_wheel() -> Failure {
    Failure::refused("expected a wheel, a zip file with one .dist-info directory")
}

/// Sorts packs and files by the groups whose device wheels they are for.
fn devices(packs: Vec<Pack>, contents: &Contents) -> Result<BTreeMap<String, Device>, Failure> {
    let mut devices: BTreeMap<String, Device> = BTreeMap::new();
    let mut faults = Vec::new();
    for pack in packs {
        match PackageGroup::of(pack.target()) {
            Some(group) => Device::of(&mut devices, group).packs.push(pack),
            None => faults.push(format!("no device package is for {}", pack.target())),
        }
    }
    for (index, file) in &contents.device_files {
        Device::of(&mut devices, file.group().clone()).files.push(*index);
    }
    if faults.is_empty() { Ok(devices) } else { Err(Failure::Refused(faults)) }
}

fn groups(devices: &BTreeMap<String, Device>) -> BTreeMap<String, PackageGroup> {
    devices.iter().map(|(key, device)| (key.clone(), device.group.clone())).collect()
}

fn targets(members: &[SplitMember], contents: &Contents) -> Vec<String> {
    let of_packs = members.iter().flat_map(|member| member.split.targets());
    let of_files = contents.device_files.iter().map(|(_, file)| file.target());
    let all: BTreeSet<&str> = of_packs.chain(of_files).collect();
    all.into_iter().map(str::to_owned).collect()
}
