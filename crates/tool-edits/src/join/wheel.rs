//! The join of wheels.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::Path;

use device_select::few;
use fat_edit::EditOptions;
use gpu_packages::{
    NewWheel, PackageEdit, PackageForm, PackageKind, Storing, WheelMetadata, Zip, ZipMember,
    dist_info,
};
use tool_inputs::limits::Limits;
use tool_inputs::package::Package;
use tool_kit::failure::Failure;
use tool_kit::output::{Name, Outputs};
use tool_kit::permissions::NewPermissions;

use super::library::{Joined, join};
use super::packs::WheelPack;
use crate::paths::Paths;
use crate::split::{BOOTSTRAP, is_host_line};
use crate::unpacked::{Spool, Unpacked};
use crate::words::{allow_if, by_reason, of_member, of_package};

/// The level of published wheels.
const LEVEL: u32 = 6;

/// The list of members of a wheel, in its directory. The joined wheel has a new one.
const RECORD: &str = "RECORD";

/// Files that sign this list.
const SIGNATURES: [&str; 2] = ["RECORD.jws", "RECORD.p7s"];

/// A host wheel and its device wheels, which become one wheel.
#[derive(Debug)]
pub struct WheelJoin<'a> {
    /// The new wheel.
    pub output: &'a Path,
    /// Compress new bundles.
    pub compress: bool,
    /// Join wheels with findings of `offload verify`.
    pub allow_findings: bool,
    /// Join signed wheels, which lose their signatures.
    pub drop_signature: bool,
    /// Permitted changes of libraries that get new bundles.
    pub options: EditOptions,
    /// The most bytes of a library or a pack that are decompressed.
    pub limits: &'a Limits,
    /// The number of threads.
    pub threads: NonZeroUsize,
}

/// The result of a join.
#[derive(Debug)]
pub struct JoinedWheel {
    /// The size of the wheel in bytes.
    pub size: u64,
    /// The libraries, with whether each is the file that was split.
    pub libraries: Vec<(String, bool)>,
    /// The number of other files that came back.
    pub files: usize,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A wheel that is open.
struct Wheel<'p> {
    name: &'p str,
    package: &'p Package,
    zip: &'p Zip,
    edit: PackageEdit<'p>,
    metadata: WheelMetadata,
    /// The directory with its metadata.
    directory: String,
}

/// The number of a wheel, and the index of a member.
type Place = (usize, usize);

/// Contents of the new wheel.
struct Plan {
    /// Libraries of the host wheel, by their indices.
    libraries: BTreeMap<usize, Joined>,
    spool: Spool,
    /// Kernel packs that are no longer needed.
    left_out: BTreeSet<Place>,
    metadata: Vec<u8>,
}

impl<'p> Wheel<'p> {
    fn open((name, package): (&'p str, &'p Package)) -> Result<Self, Failure> {
        let zip = match &package.form {
            PackageForm::Zip(zip) if zip.kind() == PackageKind::Wheel => zip,
            _ => return Err(Failure::refused(format!("{name}: expected a wheel"))),
        };
        let named = |error| Failure::refused(format!("{name}: {error}"));
        let metadata = WheelMetadata::read(zip, package.opened.reader()).map_err(named)?;
        let edit = PackageEdit::new(zip, package.opened.reader()).map_err(named)?;
        let directory = String::from_utf8_lossy(dist_info(zip).unwrap_or(b"")).into_owned();
        Ok(Wheel { name, package, zip, edit, metadata, directory })
    }

    /// Returns the files, with their paths.
    fn files(&self) -> impl Iterator<Item = (usize, String)> + use<'p> {
        let files = self.zip.members().iter().enumerate();
        let files = files.filter(|(_, member)| !member.is_directory());
        files.map(|(index, member)| (index, name_of(member)))
    }

    /// Returns the path of a file in the directory with the metadata; `None` for others.
    fn own<'f>(&self, path: &'f str) -> Option<&'f str> {
        path.strip_prefix(&*self.directory)?.strip_prefix('/')
    }

    /// Returns findings that are allowed.
    fn check(&self, allow_findings: bool) -> Result<Vec<String>, Failure> {
        let findings = self.edit.findings().iter();
        let named = findings.map(|finding| format!("{}: {finding}", self.name));
        allow_if(allow_findings, &named.collect::<Vec<_>>())
    }

    /// Fails for a signed wheel, unless its signatures may be left out.
    fn check_signature(&self, drops_signature: bool) -> Result<(), Failure> {
        let signature = self.files().find_map(|(_, path)| {
            self.own(&path).filter(|own| SIGNATURES.contains(own)).map(str::to_owned)
        });
        match signature {
            Some(own) if !drops_signature => {
                let text = "the wheel is signed, and the new one would not be (--drop-signature drops the signature)";
                Err(Failure::refused(format!("{}:{}/{own}: {text}", self.name, self.directory)))
            }
            _ => Ok(()),
        }
    }

    /// Reads a file to its end, and compares it with `RECORD`. Adds findings that are allowed to these.
    fn read<T>(
        &mut self,
        (index, path): (usize, &str),
        (allow_findings, findings): (bool, &mut Vec<String>),
        read: impl FnOnce(&mut dyn Read) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let name = self.name;
        let named = |failure| Wheel::at(name, path, failure);
        let contents = self.edit.open(index, self.package.opened.reader());
        let mut contents = contents.map_err(of_package).map_err(named)?;
        let value = read(&mut contents).map_err(named)?;
        io::copy(&mut contents, &mut io::sink()).map_err(Failure::from).map_err(named)?;
        let faults = self.edit.faults(index, &contents.finish());
        let allowed = allow_if(allow_findings, &faults).map_err(named)?;
        findings.extend(allowed.iter().map(|text| format!("{name}:{path}: {text}")));
        Ok(value)
    }

    /// Returns the failure of a member, with the name of the wheel.
    fn at(name: &str, path: &str, failure: Failure) -> Failure {
        let named = |all: Vec<String>| all.iter().map(|text| format!("{name}{text}")).collect();
        match of_member(path, failure) {
            Failure::Complaints(all) => Failure::Complaints(named(all)),
            Failure::Refused(all) => Failure::Refused(named(all)),
            other => other,
        }
    }

    /// Fails unless it is a device wheel of the host wheel.
    fn check_device(&self, host: &Self) -> Result<(), Failure> {
        let (name, version) = (host.metadata.name(), host.metadata.version());
        let requirement = format!("Requires-Dist: {name} == {version}");
        let text = String::from_utf8_lossy(self.metadata.text());
        if text.lines().any(|line| line.trim_end() == requirement) {
            return Ok(());
        }
        let found = self.name;
        Err(Failure::refused(format!(
            "{found}: expected a device wheel of {name} {version}, with '{requirement}' in METADATA"
        )))
    }
}

impl WheelJoin<'_> {
    /// Joins the host wheel, which is the first, and its device wheels. Each has a name for messages.
    ///
    /// # Errors
    ///
    /// A file is not a wheel, or not a device wheel of the host wheel; libraries without code in the packs; files that are in two wheels;
    /// errors of reading and writing.
    pub fn run(&self, wheels: &[(&str, &Package)]) -> Result<JoinedWheel, Failure> {
        let mut wheels = wheels.iter().copied().map(Wheel::open).collect::<Result<Vec<_>, _>>()?;
        let [host, devices @ ..] = &mut wheels[..] else {
            return Err(Failure::refused("expected a host wheel"));
        };
        devices.iter().try_for_each(|device| device.check_device(host))?;
        let mut notes = Vec::new();
        for wheel in [&*host].into_iter().chain(&*devices) {
            wheel.check_signature(self.drop_signature)?;
            notes.extend(wheel.check(self.allow_findings)?);
        }
        check_paths([&*host].into_iter().chain(&*devices))?;
        let (mut packs, mut of_packs) = (Vec::new(), Spool::new()?);
        for (number, wheel) in [&mut *host].into_iter().chain(&mut *devices).enumerate() {
            self.packs((number, wheel), (&mut packs, &mut of_packs), &mut notes)?;
        }
        let mut spool = Spool::new()?;
        let libraries = self.libraries(host, (&packs, &of_packs), &mut spool, &mut notes)?;
        if libraries.is_empty() {
            let name = host.name;
            let text = "no file of it has its device code in kernel packs";
            return Err(Failure::refused(format!("{name}: {text}")));
        }
        let names: BTreeSet<String> =
            libraries.values().map(|library| library.name.clone()).collect();
        let (needed, left): (Vec<_>, Vec<_>) =
            packs.iter().partition(|(_, pack)| pack.has_others(&names));
        notes.extend(
            needed
                .iter()
                .map(|(_, pack)| format!("{}: stays, as it has code of other files", pack.path())),
        );
        let changed = libraries.values();
        let changed = changed.filter_map(|library| Some((library.changed?, &*library.name)));
        notes.extend(by_reason(changed).map(|text| format!("not as they were split: {text}")));
        let left_out = left.into_iter().map(|(place, _)| *place).collect();
        let metadata = metadata(host, devices, &mut notes);
        let path = |index: usize| host.zip.members().get(index).map_or(String::new(), name_of);
        let done = libraries.iter().map(|(index, library)| (path(*index), library.is_original));
        let done = done.collect();
        let plan = Plan { libraries, spool, left_out, metadata };
        let all = wheels.iter().map(|wheel| wheel.package.opened.permissions());
        let how = NewPermissions::of_all(all);
        let mut outputs = Outputs::default();
        let (size, files) =
            outputs.write(&Name::Typed(self.output.to_owned()), how.into(), |out| {
                let written = self.write(&wheels, &plan, out).map_err(io::Error::from)?;
                wheels.iter().try_for_each(|wheel| wheel.package.opened.check())?;
                Ok(written)
            })?;
        outputs.commit()?;
        Ok(JoinedWheel { size, libraries: done, files, notes })
    }

    /// Returns the most bytes that are decompressed of a member. One that is not deflated takes no more room than in the wheel.
    fn most(&self, zip: &Zip, index: usize) -> u64 {
        let stored = zip.members().get(index).map_or(0, ZipMember::stored_size);
        self.limits.held_of(zip.file_len()).max(stored)
    }

    /// Reads the kernel packs of a wheel with a number. Other files of device wheels are compared with `RECORD`.
    fn packs(
        &self,
        (number, wheel): (usize, &mut Wheel<'_>),
        (packs, spool): (&mut Vec<(Place, WheelPack)>, &mut Spool),
        findings: &mut Vec<String>,
    ) -> Result<(), Failure> {
        for (index, path) in wheel.files() {
            let (allowed, most) = (self.allow_findings, self.most(wheel.zip, index));
            if path.ends_with(".kpack") {
                let read = |contents: &mut dyn Read| Unpacked::read(contents, most);
                let unpacked = wheel.read((index, &path), (allowed, &mut *findings), read)?;
                let name = format!("{}:{path}", wheel.name);
                let pack = WheelPack::read((&path, name), &unpacked, spool)?;
                packs.push(((number, index), pack));
            } else if number > 0 {
                wheel.read((index, &path), (allowed, &mut *findings), |_| Ok(()))?;
            }
        }
        Ok(())
    }

    /// Joins the libraries of the host wheel; its other files are compared with `RECORD`.
    fn libraries(
        &self,
        host: &mut Wheel<'_>,
        (packs, of_packs): (&[(Place, WheelPack)], &Spool),
        spool: &mut Spool,
        findings: &mut Vec<String>,
    ) -> Result<BTreeMap<usize, Joined>, Failure> {
        /// The most faults that are named.
        const MOST: usize = 5;
        let (mut libraries, mut faults) = (BTreeMap::new(), Vec::new());
        for (index, path) in host.files().filter(|(_, path)| !path.ends_with(".kpack")) {
            let most = self.most(host.zip, index);
            let read = |contents: &mut dyn Read| Unpacked::read_linked(contents, most);
            let unpacked = host.read((index, &path), (self.allow_findings, findings), read)?;
            let Some(unpacked) = unpacked else { continue };
            let packs = packs.iter().map(|(_, pack)| pack);
            let max = self.limits.held_of(u64::MAX);
            let how = (self.compress, max, &self.options);
            match join((&path, &unpacked), (packs, of_packs), how, spool) {
                Ok(library) => libraries.extend(library.map(|library| (index, library))),
                Err(failure) => {
                    let all = failure.complaints()?;
                    faults.extend(all.iter().map(|text| format!("{}:{path}: {text}", host.name)));
                }
            }
            if faults.len() >= MOST {
                break;
            }
        }
        if faults.is_empty() { Ok(libraries) } else { Err(Failure::Refused(faults)) }
    }

    /// Writes the new wheel. Returns its size, and the number of files that came from device wheels.
    fn write(
        &self,
        wheels: &[Wheel<'_>],
        plan: &Plan,
        out: &mut File,
    ) -> Result<(u64, usize), gpu_packages::Error> {
        let directory = wheels.first().map_or("", |host| &*host.directory);
        let mut new = NewWheel::new(out, directory)?;
        let storing = Storing::Deflated(LEVEL);
        let mut files = 0;
        for (number, wheel) in wheels.iter().enumerate() {
            for (index, member) in wheel.zip.members().iter().enumerate() {
                let path = name_of(member);
                let is_left_out = match wheel.own(&path) {
                    Some(own) => number > 0 || own == RECORD || SIGNATURES.contains(&own),
                    None => plan.left_out.contains(&(number, index)),
                };
                if is_left_out || number > 0 && member.is_directory() {
                    continue;
                }
                let mode = member.unix_mode().and_then(|mode| u16::try_from(mode & 0o777).ok());
                let mode = mode.unwrap_or(0o644);
                let library = plan.libraries.get(&index).filter(|_| number == 0);
                if number == 0 && index == wheel.metadata.index() {
                    let size = plan.metadata.len() as u64;
                    new.add(&path, mode, &*plan.metadata, size, storing, self.threads)?;
                } else if let Some(Joined { place, .. }) = library {
                    let (contents, size) = (plan.spool.reader(place), place.end - place.start);
                    new.add(&path, mode, contents, size, storing, self.threads)?;
                } else {
                    new.copy(wheel.zip, index, wheel.package.opened.reader())?;
                    files += usize::from(number > 0);
                }
            }
        }
        Ok((new.finish()?.metadata()?.len(), files))
    }
}

fn name_of(member: &ZipMember) -> String {
    String::from_utf8_lossy(member.name()).into_owned()
}

/// Fails if two wheels have files with the same path, which are not those of their own metadata.
fn check_paths<'w, 'p: 'w>(wheels: impl Iterator<Item = &'w Wheel<'p>>) -> Result<(), Failure> {
    let mut paths = Paths::default();
    for wheel in wheels {
        for (_, path) in wheel.files().filter(|(_, path)| wheel.own(path).is_none()) {
            let Some((other, of)) = paths.add(&path, wheel.name) else { continue };
            let name = wheel.name;
            let text = if other == path {
                format!("{path} is in {of} and in {name}")
            } else {
                format!("{other} in {of} and {path} in {name}: a file and a directory")
            };
            return Err(Failure::refused(text));
        }
    }
    Ok(())
}

/// Returns `METADATA` of the host wheel without the extras of device wheels.
fn metadata(host: &Wheel<'_>, devices: &[Wheel<'_>], notes: &mut Vec<String>) -> Vec<u8> {
    let mut has_start = false;
    let mut missing = BTreeSet::new();
    let (text, _) = host.metadata.without_last_lines(|line| {
        let is_one = !has_start && is_host_line(line);
        has_start |= is_one && line == BOOTSTRAP;
        let required = line.strip_prefix("Requires-Dist: ").filter(|_| is_one);
        let name = required.and_then(|text| text.split_once(" == "));
        missing.extend(name.map(|(name, _)| name.to_owned()));
        is_one
    });
    if !has_start {
        notes.push("METADATA has no extras of device wheels at its end, and stays".to_owned());
        return host.metadata.text().to_vec();
    }
    devices.iter().for_each(|device| _ = missing.remove(device.metadata.name()));
    if !missing.is_empty() {
        let names = few(missing);
        notes.push(format!("device wheels are not given, whose code is missing then: {names}"));
    }
    text
}
