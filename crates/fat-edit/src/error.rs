//! Errors of editing device code in a file.

use std::{fmt, io};

use fat_object::{Disagreement, FileFormat, Finding, Location, PathStep};
use target_id::Target;

/// Error of a survey, a plan or of writing.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs. Until a plan is written, nothing is.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Problem>);

/// The inside of an [`Error`], as functions of this crate return it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Problem {
    pub(crate) kind: ErrorKind,
    /// The containers around it, from outside in.
    pub(crate) path: Vec<PathStep>,
    /// `true` if the request is at fault, not the file.
    is_of_wish: bool,
    pub(crate) inside: Option<Inside>,
    message: String,
}

/// An error of another crate that a getter gives. Its text is in the message.
#[derive(Debug)]
pub(crate) enum Inside {
    /// Damage in the container that starts there.
    Damage(Location, fat_object::Error),
    Host(Box<object_edit::Error>),
    Io(io::Error),
    Mismatch(Box<(usize, Target, Disagreement)>),
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An input cannot be read.
    Read,
    /// The new file cannot be written.
    Write,
    /// The file is not the one that was surveyed.
    InputChanged,
    /// The file holds no device code.
    NoDeviceCode,
    /// The file holds device code, but no bundle, offload binary or fatbinary that could be compressed or decompressed.
    NoBundle,
    /// A part of the file is damaged, or a compressed bundle holds something else than a bundle that could take its place.
    Damaged,
    /// This crate does not edit containers of this kind, or in this place.
    Unsupported,
    /// The host file does not allow it, or is damaged: [`Error::host`].
    Host,
    /// The edit names an image or a container that is missing.
    Missing,
    /// Several images or containers have the name.
    Ambiguous,
    /// The edit would leave no image in a container, or removes the host's entry of a bundle, which
    /// [`EditOptions::with_allow_empty`](crate::EditOptions::with_allow_empty) and
    /// [`EditOptions::with_remove_host`](crate::EditOptions::with_remove_host) allow; or an entry cannot be added, or a new image
    /// is for another target than its entry ([`Error::mismatch`]), or the compressed file could not be decompressed again,
    /// or the new file would not hold exactly the expected images.
    Refused,
}

impl Error {
    /// Returns the kind of the error, also of an error in a member of an archive.
    ///
    /// ```
    /// use std::io::Cursor;
    /// use fat_edit::{Edit, ErrorKind, survey};
    /// use fat_object::Options;
    ///
    /// let mut file = Cursor::new(b"no device code here");
    /// let surveyed = survey(&mut file, &Options::default())?;
    /// let error = surveyed.plan(&mut file, &Edit::default()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NoDeviceCode);
    /// # Ok::<(), fat_edit::Error>(())
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the place of the fault: the containers around it, from outside in. Empty for the file itself.
    #[must_use]
    pub fn path(&self) -> &[PathStep] {
        &self.0.path
    }

    /// Returns the damage, as a walk finds it.
    #[must_use]
    pub fn damage(&self) -> Option<&fat_object::Error> {
        if let Some(Inside::Damage(_, error)) = &self.0.inside { Some(error) } else { None }
    }

    /// Returns the reason why the [host file](ErrorKind::Host) cannot be edited.
    #[must_use]
    pub fn host(&self) -> Option<&object_edit::Error> {
        if let Some(Inside::Host(error)) = &self.0.inside { Some(error) } else { None }
    }

    /// Returns the error of the stream that cannot be [read](ErrorKind::Read) or [written](ErrorKind::Write).
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        if let Some(Inside::Io(error)) = &self.0.inside { Some(error) } else { None }
    }

    /// Returns the number of a new image, the target that its entry names, and how the image disagrees with it.
    #[must_use]
    pub fn mismatch(&self) -> Option<(usize, &Target, &Disagreement)> {
        let Some(Inside::Mismatch(mismatch)) = &self.0.inside else { return None };
        let (number, target, disagreement) = &**mismatch;
        Some((*number, target, disagreement))
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error(Box::new(problem))
    }
}

impl Problem {
    /// Creates the error of the file itself.
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (path, message) = (Vec::new(), message.into());
        Problem { kind, path, is_of_wish: false, inside: None, message }
    }

    /// Creates the error of a place in the file.
    #[cold]
    pub(crate) fn at(kind: ErrorKind, path: &[PathStep], what: impl fmt::Display) -> Self {
        let message = format!("{}{what}", text_of(path, ": "));
        Problem { path: path.to_vec(), ..Self::new(kind, message) }
    }

    /// Creates the error of a wish that nothing in this place allows.
    #[cold]
    pub(crate) fn refused(path: &[PathStep], what: impl fmt::Display) -> Self {
        Problem { is_of_wish: true, ..Self::at(ErrorKind::Refused, path, what) }
    }

    /// Creates the error of a wish that names something that is missing.
    #[cold]
    pub(crate) fn missing(message: String) -> Self {
        Problem { is_of_wish: true, ..Self::new(ErrorKind::Missing, message) }
    }

    #[cold]
    pub(crate) fn no_new_image(number: usize, available: usize) -> Self {
        Self::missing(format!("no new image {number}: {available} given"))
    }

    #[cold]
    pub(crate) fn nothing_left(path: &[PathStep]) -> Self {
        Self::refused(path, "no image would be left")
    }

    #[cold]
    pub(crate) fn mismatch(number: usize, target: &Target, disagreement: Disagreement) -> Self {
        let what = format!("new image {number} is not for {target}: {disagreement}");
        let inside = Inside::Mismatch(Box::new((number, target.clone(), disagreement)));
        Problem { inside: Some(inside), ..Self::refused(&[], what) }
    }

    #[cold]
    pub(crate) fn write(error: io::Error) -> Self {
        let message = format!("cannot write: {error}");
        Problem { inside: Some(Inside::Io(error)), ..Self::new(ErrorKind::Write, message) }
    }

    #[cold]
    pub(crate) fn input_changed() -> Self {
        Self::new(ErrorKind::InputChanged, "the file was changed during the edit")
    }

    #[cold]
    pub(crate) fn no_device_code() -> Self {
        Self::new(ErrorKind::NoDeviceCode, "no device code found")
    }

    #[cold]
    pub(crate) fn no_bundle() -> Self {
        Self::new(ErrorKind::NoBundle, "no bundle, offload binary or fatbinary found")
    }

    /// Creates the error of damage that a walk would find in the container that starts there.
    #[cold]
    pub(crate) fn damaged(path: &[PathStep], location: Location, error: fat_object::Error) -> Self {
        let problem = Self::damaged_at(path, location, &error);
        Problem { inside: Some(Inside::Damage(location, error)), ..problem }
    }

    /// Creates the error of a fatbinary that starts there, with an entry that is damaged or cannot be made.
    #[cold]
    pub(crate) fn damaged_at(
        path: &[PathStep],
        location: Location,
        error: impl fmt::Display,
    ) -> Self {
        let message = format!("{}at {location}: {error}", text_of(path, " "));
        Problem { path: path.to_vec(), ..Self::new(ErrorKind::Damaged, message) }
    }

    /// Creates the error of a kernel pack, or of what would be made of its code objects.
    #[cold]
    pub(crate) fn of_pack(error: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Damaged, error.to_string())
    }

    /// Creates the error of a compressed bundle that holds something of another format.
    #[cold]
    pub(crate) fn holds_no_bundle(path: &[PathStep], format: FileFormat) -> Self {
        let what = format!("compressed bundle: expected a bundle inside, found {format}");
        Self::at(ErrorKind::Damaged, path, what)
    }

    /// Creates the error of parts, by their name in the plural.
    #[cold]
    pub(crate) fn unsupported(path: &[PathStep], parts: &str) -> Self {
        Self::at(ErrorKind::Unsupported, path, format!("{parts} cannot be edited"))
    }

    #[cold]
    pub(crate) fn thin_archive(path: &[PathStep]) -> Self {
        let what = "thin archives cannot be edited; edit the files they reference";
        Self::at(ErrorKind::Unsupported, path, what)
    }

    /// Creates the error of a text bundle, which ends with its file, so that nothing can follow it.
    #[cold]
    pub(crate) fn text_not_alone(path: &[PathStep]) -> Self {
        Self::at(ErrorKind::Damaged, path, "a text bundle can only stand alone")
    }

    #[cold]
    pub(crate) fn cannot_move_out(path: &[PathStep], why: &str) -> Self {
        let what = format!("device code cannot be moved out: {why}");
        Self::at(ErrorKind::Refused, path, what)
    }

    /// Creates the error of the new file, read before it is written, that lacks something, or has something too many.
    #[cold]
    pub(crate) fn not_as_expected(path: &[PathStep], what: &str) -> Self {
        Self::at(ErrorKind::Refused, path, format!("self-check failed: {what}"))
    }

    /// Returns the problem, of the file in this place.
    pub(crate) fn within(self, path: &[PathStep]) -> Self {
        // It says nothing about what is there.
        if path.is_empty() || matches!(self.kind, ErrorKind::Read | ErrorKind::Write) {
            return self;
        }
        Problem { inside: self.inside, ..Self::at(self.kind, path, self.message) }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        let message = format!("cannot be read: {error}");
        Problem { inside: Some(Inside::Io(error)), ..Self::new(ErrorKind::Read, message) }
    }
}

impl From<Finding> for Problem {
    fn from(finding: Finding) -> Self {
        Self::damaged(finding.path(), finding.location(), finding.error().clone())
    }
}

impl From<object_edit::Error> for Problem {
    fn from(error: object_edit::Error) -> Self {
        use object_edit::ErrorKind as Host;
        match (error.kind(), error.unsupported()) {
            (Host::Read, _) => io::Error::from(error).into(),
            (Host::Write, _) => Problem::write(error.into()),
            (Host::InputChanged, _) => Problem::input_changed(),
            (Host::NoDeviceCode, _) => Problem::no_device_code(),
            (Host::NothingLeft, _) => Problem::nothing_left(&[]),
            (_, Some(kind)) => Problem::unsupported(&[], kind),
            _ => {
                let problem = Problem::new(ErrorKind::Host, error.to_string());
                Problem { inside: Some(Inside::Host(Box::new(error))), ..problem }
            }
        }
    }
}

/// Errors of reading and writing come out as they are. Others are inside: as
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if the request is at fault, not the file, else as
/// [`InvalidData`](io::ErrorKind::InvalidData) or the kind of the [`object_edit::Error`].
impl From<Error> for io::Error {
    fn from(Error(problem): Error) -> Self {
        match *problem {
            Problem { inside: Some(Inside::Io(error)), .. } => error,
            Problem { inside: Some(Inside::Host(error)), path, .. } if path.is_empty() => {
                (*error).into()
            }
            problem if problem.is_of_wish => {
                io::Error::new(io::ErrorKind::InvalidInput, Error::from(problem))
            }
            problem => io::Error::new(io::ErrorKind::InvalidData, Error::from(problem)),
        }
    }
}

/// Returns a path like `section:.hip_fatbin/ccob:1`, and what follows it; nothing for the file itself.
pub(crate) fn text_of(path: &[PathStep], end: &str) -> String {
    let steps: Vec<_> = path.iter().map(PathStep::to_string).collect();
    if steps.is_empty() { String::new() } else { steps.join("/") + end }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]
mod tests {
    use super::*;
    use fat_object::{Options, list_slice};

    /// Returns the containers around an image.
    fn path_of_a_bundle() -> Vec<PathStep> {
        let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 1)], 1);
        let file = layout.unwrap().to_vec(&[b"x"]).unwrap();
        list_slice(&file, &Options::default()).unwrap().images()[0].path().to_vec()
    }

    #[test]
    fn messages_about_the_whole_file_start_with_the_problem() {
        let finding = bundle_format::composition(["x"]).remove(0);
        for error in [
            Problem::nothing_left(&[]),
            Problem::holds_no_bundle(&[], FileFormat::Unknown),
            Problem::text_not_alone(&[]),
            Problem::refused(&[], finding),
            Problem::refused(&[], "no image can be added"),
            Problem::cannot_move_out(&[], "it is not a bundle"),
            Problem::thin_archive(&[]),
            Problem::unsupported(&[], "files of this kind"),
        ] {
            let message = error.to_string();
            assert!(message.starts_with(char::is_alphabetic), "{message}");
        }
        let message = Problem::nothing_left(&path_of_a_bundle()).to_string();
        assert_eq!(message, "bundle:0: no image would be left");
    }

    #[test]
    fn read_errors_get_no_path() {
        let path = path_of_a_bundle();
        let error = Problem::from(io::Error::from(io::ErrorKind::HostUnreachable)).within(&path);
        assert!(matches!(error.inside, Some(Inside::Io(_))) && error.path.is_empty(), "{error}");
        let error = Problem::no_device_code().within(&path);
        assert_eq!((error.kind, &error.path), (ErrorKind::NoDeviceCode, &path), "{error}");
        assert_eq!(error.to_string(), "bundle:0: no device code found");
    }
}
