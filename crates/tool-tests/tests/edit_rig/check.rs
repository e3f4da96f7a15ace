//! Checks edited files against the unedited ones, whatever containers hold their device code.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::broken::Breaker;
use super::messages::{self, Messages};
use super::observe::{self, Seen};
use super::survive::{self, Survival};
use super::zoo::{self, Linked, PerFile, Shape, World};
use super::{Complaints, each, memory};
use crate::common;

/// A container that is registered with a runtime: a bundle, or a fatbinary.
pub trait Container: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The units of the files that have such containers.
    type Units: zoo::Units;

    /// Takes apart the bytes that a runtime found. `with_peer` asks another's tool to agree.
    fn decode(dump: &[u8], with_peer: bool) -> Result<Self, String>;

    /// Returns the complaints about this container, which should be another.
    fn compare(&self, expected: &Self) -> Complaints;

    /// Returns the complaints about a whole file that should hold these containers, by another's tool.
    fn check_file(_file: &Path, _expected: &[Self]) -> Complaints {
        Complaints::new()
    }
}

/// Describes the difference between two byte strings, if there is one.
pub fn difference(name: &str, found: &[u8], expected: &[u8]) -> Option<String> {
    let same = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
    (found != expected).then(|| {
        format!(
            "{name}: {} bytes, not {}; different from byte {same} on",
            found.len(),
            expected.len()
        )
    })
}

/// The containers of what was seen.
pub fn containers<C: Container>(seen: &Seen) -> Result<Vec<C>, String> {
    let decode = |(index, dump): (usize, &Vec<u8>)| {
        // Starting another's tool takes long. Where there are many containers it sees some.
        let with_peer = index % 10 == 0 || seen.containers.len() <= 10;
        C::decode(dump, with_peer).map_err(|error| format!("container {index}: {error}"))
    };
    seen.containers.iter().enumerate().map(decode).collect()
}

/// Returns the complaints about the behaviour of an edited file. `before` is the behaviour of the unedited one.
fn compare<C: Container>(before: &Seen, after: &Seen, expected: &[C]) -> Complaints {
    let mut complaints = observe::compare_host(before, after);
    let found = match containers::<C>(after) {
        Ok(found) => found,
        Err(error) => {
            complaints.push(error);
            return complaints;
        }
    };
    if found.len() != expected.len() {
        complaints.push(format!("{} containers, not {}", found.len(), expected.len()));
    }
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        complaints.extend(of(&format!("container {index}"), found.compare(expected)));
    }
    complaints
}

/// Complaints about something with a name.
pub fn of(name: &str, complaints: Complaints) -> Complaints {
    complaints.into_iter().map(|complaint| format!("{name}: {complaint}")).collect()
}

/// Behaviour of an unedited file.
pub struct Before<C> {
    pub seen: Seen,
    pub containers: Vec<C>,
}

impl<C: Container> Before<C> {
    /// Looks at a file.
    pub fn of(file: &Linked) -> Result<Self, String> {
        let seen = observe::observe(file, &file.path)?;
        let containers = containers(&seen)?;
        Ok(Before { seen, containers })
    }
}

/// Depth of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Its behaviour, its contents and its size.
    Itself,
    /// In addition, the messages of tools about it.
    Messages,
    /// In addition, the results of further tools.
    Survival,
}

/// A file that came out of `offload`.
pub struct Edited {
    place: tempfile::TempDir,
    name: &'static str,
    /// Other output of `offload`.
    pub said: String,
}

impl Edited {
    pub fn path(&self) -> PathBuf {
        self.place.path().join(self.name)
    }

    pub fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }
}

/// Edits a file that is, or came out of, `file`: `offload WORD FILE WORDS... -o OUT`.
pub fn edit(file: &Linked, input: &Path, words: &[&str]) -> Result<Edited, String> {
    let edited =
        Edited { place: tempfile::tempdir().unwrap(), name: file.name, said: String::new() };
    let out = edited.path();
    let mut arguments = vec![words[0].as_ref(), input.as_os_str()];
    arguments.extend(words[1..].iter().map(AsRef::<OsStr>::as_ref));
    arguments.extend(["-o".as_ref(), out.as_os_str()]);
    let output = common::offload(&arguments);
    let said = common::stderr(&output);
    if !output.status.success() || said.contains("panicked") {
        return Err(format!("offload {}: {}: {said}", words.join(" "), output.status));
    }
    Ok(Edited { said, ..edited })
}

/// Checks that a further edit does nothing.
pub fn does_nothing(file: &Linked, edited: &Edited, words: &[&str]) -> Result<Complaints, String> {
    let again = edit(file, &edited.path(), words)?;
    let mut complaints = Complaints::new();
    if again.bytes() != edited.bytes() {
        complaints.push("the second time it changes something".into());
    }
    if !again.said.contains("nothing to do") {
        complaints.push(format!("the second time it says {:?}", again.said));
    }
    Ok(complaints)
}

/// Checks that a thinned file is smaller, or that the reason is told.
pub fn is_smaller(file: &Linked, edited: &Edited) -> Complaints {
    let is_smaller = edited.bytes().len() < fs::read(&file.path).unwrap().len();
    if is_smaller != edited.said.contains("could not be removed from the file") {
        return Complaints::new();
    }
    vec![format!("is it smaller? {is_smaller}; said {:?}", edited.said)]
}

/// Checks that a thinned file, thinned further, is what it would have become at once.
pub fn narrows(file: &Linked, edited: &Edited, narrower: &[&str]) -> Result<Complaints, String> {
    let twice = edit(file, &edited.path(), narrower)?.bytes();
    let once = edit(file, &file.path, narrower)?.bytes();
    Ok(if twice == once { vec![] } else { vec!["thinned twice it is something else".into()] })
}

/// Checks that a compressed file, decompressed, is what it was.
pub fn comes_back(file: &Linked, edited: &Edited) -> Result<Complaints, String> {
    let back = edit(file, &edited.path(), &["decompress"])?.bytes();
    let is_same = back == fs::read(&file.path).unwrap();
    Ok(if is_same { vec![] } else { vec!["decompressed it is not what it was".into()] })
}

/// Returns the complaints if an edit of a file with these bytes is not refused for a reason, or the file is not left alone.
pub fn is_refused(bytes: &[u8], words: &[&str], reason: &str) -> Complaints {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    fs::write(&path, bytes).unwrap();
    let mut arguments = vec![words[0], path.to_str().unwrap()];
    arguments.extend(&words[1..]);
    arguments.push("--in-place");
    let output = common::offload(&arguments);
    let said = common::stderr(&output);
    let is_whole = fs::read(&path).unwrap() == bytes;
    if output.status.code() == Some(1) && said.contains(reason) && is_whole {
        return Complaints::new();
    }
    vec![format!("{words:?}: {reason:?}: {}, untouched: {is_whole}: {said}", output.status)]
}

/// Returns whether a container cannot move because something may refer to it.
pub fn is_pinned(said: &str) -> bool {
    said.contains("must move, but") && said.contains("may refer to it")
}

/// Returns the size of a file.
pub fn size(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

/// Returns the behaviour of an edited file that should hold these containers, and the complaints about it.
pub fn check_itself<C: Container>(
    file: &Linked,
    before: &Before<C>,
    edited: &Path,
    expected: &[C],
) -> Result<(Seen, Complaints), String> {
    let seen = observe::observe(file, edited)?;
    let mut complaints = compare(&before.seen, &seen, expected);
    complaints.extend(C::check_file(edited, expected));
    let (bytes, bytes_edited) = (fs::read(&file.path).unwrap(), fs::read(edited).unwrap());
    complaints.extend(memory::compare(&bytes, &bytes_edited));
    let sizes = (bytes.len() as u64, bytes_edited.len() as u64);
    complaints.extend(check_size(file, &before.seen, &seen, sizes.0, sizes.1));
    Ok((seen, complaints))
}

/// The bytes that left the containers left the file, as [`Rig::check_size`] has it.
fn check_size(
    file: &Linked,
    before: &Seen,
    seen: &Seen,
    size: u64,
    size_edited: u64,
) -> Complaints {
    let total = |seen: &Seen| seen.containers.iter().map(Vec::len).sum::<usize>() as u64;
    let (device, device_edited) = (total(before), total(seen));
    let slack = 0x1000 * (file.containers as u64 + 1) + file.page() * 2;
    let mut most = (size + device_edited + slack).saturating_sub(device);
    match file.shape {
        // Nothing after the program headers can move, so a further one may have no room. `offload` reports this.
        Shape::Static => most = most.max(size),
        // Little can: what containers leave that get a new place may stay.
        Shape::StaticPie if device_edited > device => most += device,
        _ if device_edited > device => most += file.page().max(file.alignment()) * 4,
        _ => {}
    }
    if size_edited <= most {
        return Complaints::new();
    }
    vec![format!(
        "{size_edited} bytes, of {size}; the device code has {device_edited} bytes, of {device}"
    )]
}

/// All files with one kind of containers, and what they are like before edits.
pub struct Rig<C: Container> {
    files: OnceLock<Vec<Linked>>,
    before: PerFile<Before<C>>,
    messages: PerFile<Messages>,
    survival: PerFile<Survival>,
}

impl<C: Container> Rig<C> {
    pub fn new() -> Self {
        Rig {
            files: OnceLock::new(),
            before: PerFile::new::<C::Units>(),
            messages: PerFile::new::<C::Units>(),
            survival: PerFile::new::<C::Units>(),
        }
    }

    /// All files, made once for each run of the tests.
    fn files(&self) -> &[Linked] {
        self.files.get_or_init(zoo::make::<C::Units>)
    }

    /// The files whose names contain one of the words in `RIG_FILES`, for work on the editor: all without it.
    pub fn chosen(&self) -> Vec<&Linked> {
        let words = std::env::var("RIG_FILES").unwrap_or_default();
        let is_chosen = |file: &&Linked| words.split(',').any(|word| file.name.contains(word));
        let chosen: Vec<_> = self.files().iter().filter(is_chosen).collect();
        assert!(!chosen.is_empty(), "no file has one of {words} in its name");
        chosen
    }

    /// The file of this name.
    pub fn file(&self, name: &str) -> &Linked {
        let found = self.files().iter().find(|file| file.name == name);
        found.unwrap_or_else(|| panic!("no file is called {name}"))
    }

    /// Behaviour of a file before edits.
    pub fn before(&self, file: &Linked) -> &Before<C> {
        let before = || Before::of(file).unwrap_or_else(|error| panic!("{}: {error}", file.name));
        self.before.get(file, before)
    }

    pub fn messages_before(&self, file: &Linked) -> &Messages {
        self.messages.get(file, || messages::messages(file, &file.path))
    }

    pub fn survival_before(&self, file: &Linked) -> &Survival {
        self.survival.get(file, || survive::survival(file, &file.path))
    }

    /// Returns the complaints about tools that ruin unedited files, except tools that are known to do so.
    pub fn unknown_ruins(&self) -> Complaints {
        each(&self.chosen(), |file| {
            let mut expected = Vec::new();
            if file.world != World::Musl && file.name.contains("static-bfd") {
                // Its relocations name a section as symbol table that is not one.
                expected.extend(["llvm-objcopy", "llvm-strip"]);
            }
            if matches!(file.shape, Shape::Static | Shape::StaticPie) {
                // The first has no dynamic section, the second finds its dynamic section by constants in its code.
                expected.extend(["patchelf --add-needed", "patchelf --set-rpath"]);
            }
            let survival = self.survival_before(file);
            let ruined: Vec<_> = survival
                .iter()
                .filter(|(_, outcome)| outcome.is_err())
                .map(|(tool, _)| *tool)
                .collect();
            if ruined == expected { vec![] } else { vec![format!("{}: {ruined:?}", file.name)] }
        })
    }

    /// Returns the complaints about an edited file that should hold these containers.
    pub fn check(&self, file: &Linked, edited: &Path, expected: &[C], depth: Depth) -> Complaints {
        let (seen, mut complaints) = match check_itself(file, self.before(file), edited, expected) {
            Ok(found) => found,
            Err(error) => return vec![error],
        };
        if depth >= Depth::Messages {
            complaints.extend(messages::compare(
                self.messages_before(file),
                &messages::messages(file, edited),
            ));
        }
        if depth >= Depth::Survival {
            let survival = survive::survival(file, edited);
            complaints.extend(survive::compare(
                file,
                self.survival_before(file),
                &seen,
                &survival,
                (size(edited) as i64).wrapping_sub(size(&file.path) as i64),
            ));
        }
        complaints
    }

    /// The bytes that left the containers left the file, except parts of pages: at both ends of the device code, and
    /// each container's last one. As many are new in a file that grows, if there is room for its program headers.
    pub fn check_size(
        &self,
        file: &Linked,
        seen: &Seen,
        size: u64,
        size_edited: u64,
    ) -> Complaints {
        check_size(file, &self.before(file).seen, seen, size, size_edited)
    }

    /// Edits a file, and says what is wrong with what comes out.
    pub fn edit_and_check(
        &self,
        file: &Linked,
        words: &[&str],
        expected: &[C],
        depth: Depth,
        then: impl FnOnce(&Edited) -> Result<Complaints, String>,
    ) -> Complaints {
        let complaints = match edit(file, &file.path, words) {
            Err(error) => vec![error],
            Ok(edited) => {
                let mut complaints = self.check(file, &edited.path(), expected, depth);
                complaints.extend(then(&edited).unwrap_or_else(|error| vec![error]));
                complaints
            }
        };
        of(&format!("{}: {}", file.name, words.join(" ")), complaints)
    }

    /// Returns the complaints about the host code of an unedited file, and about a copy, which is a right edit.
    pub fn unedited(&self, file: &Linked, is_referred: bool) -> Complaints {
        let Before { seen, containers } = self.before(file);
        let is_cxx = file.world == World::Glibc;
        let mut complaints = Complaints::new();
        for (answer, is_given) in [
            ("tls 43 3000\n", true),
            ("data 3\n", true),
            ("constructor 17\n", true),
            ("relocated three\n", true),
            ("build ID ", true),
            ("table 2\nsquare 4\ncaught a circle has none\n", is_cxx),
            ("is it a container? 1\n", is_referred),
        ] {
            if seen.answers.contains(answer) != is_given {
                complaints.push(format!("{}: {}", file.name, seen.answers));
            }
        }
        let copy = tempfile::tempdir().unwrap();
        let path = copy.path().join(file.name);
        fs::copy(&file.path, &path).unwrap();
        complaints.extend(of(file.name, self.check(file, &path, containers, Depth::Survival)));
        complaints
    }

    /// Asserts that a broken layout of a file is seen, and why.
    #[track_caller]
    pub fn layout_is_rejected(
        &self,
        name: &str,
        complaint: &str,
        break_it: impl Fn(Breaker) -> Breaker,
    ) {
        let file = self.file(name);
        let broken = break_it(Breaker::new(file)).finish();
        let complaints = memory::compare(&fs::read(&file.path).unwrap(), &broken).join("\n");
        assert!(
            complaints.contains(complaint),
            "{complaint:?} is not among the complaints:\n{complaints}"
        );
    }

    /// Returns the complaints about a file with these bytes in the place of `file`.
    pub fn against(&self, file: &Linked, bytes: &[u8], depth: Depth) -> String {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(file.name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self.check(file, &path, &self.before(file).containers, depth).join("\n")
    }

    /// Asserts that a broken file is not taken for a right one, and why.
    #[track_caller]
    pub fn is_rejected(
        &self,
        name: &str,
        depth: Depth,
        complaint: &str,
        break_it: impl Fn(Breaker) -> Breaker,
    ) {
        let file = self.file(name);
        let complaints = self.against(file, &break_it(Breaker::new(file)).finish(), depth);
        assert!(
            complaints.contains(complaint),
            "{name}: {complaint:?} is not among the complaints:\n{complaints}"
        );
    }
}
