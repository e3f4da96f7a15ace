//! Device links by programs: `clang`, or `ld.lld` and `ptxas`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process, thread};

use byte_parts::{Bounds, Parts, in_order, internal};
use target_id::Triple;

use crate::clang::{ClangOptions, LinkFiles, response_file};
use crate::error::{Error, ErrorKind};
use crate::images::DeviceLinker;
use crate::input::DeviceCode;
use crate::lld::LldOptions;
use crate::plan::Group;
use crate::ptxas::PtxasOptions;

/// Device linker that runs programs, several at a time.
///
/// Code and images are in memory: the inputs are those of [`Inputs::add`](crate::Inputs::add). Programs read and write files in a directory of
/// the run, which only this user can read, and which goes with the linker. Their messages go to the standard error of this process.
///
/// Images for GPUs of AMD are linked by `ld.lld`, and those for GPUs of NVIDIA made by `ptxas`, if these were named; all others
/// by `clang`.
///
/// Clang's driver gives the link of OpenMP's code for GPUs the device runtime, `-lompdevice`; here it is an argument of
/// [`ClangOptions::with_linker_arguments`] or [`LldOptions::with_argument`].
///
/// ```no_run
/// use offload_link::{CommandLinker, Inputs, LldOptions, Plan, PlanOptions, PtxasOptions};
///
/// let object = std::fs::read("kernels.o")?;
/// let mut inputs = Inputs::new();
/// inputs.add("kernels.o", &object)?;
/// let plan = Plan::new(&inputs, &PlanOptions::default())?;
/// let mut linker = CommandLinker::new()
///     .with_lld("rust-lld", LldOptions::new().with_flavor(true))
///     .with_ptxas("ptxas", PtxasOptions::new());
/// let images = plan.link(&mut linker)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CommandLinker {
    clang: (PathBuf, ClangOptions),
    lld: Option<(PathBuf, LldOptions)>,
    ptxas: Option<(PathBuf, PtxasOptions)>,
    jobs: NonZeroUsize,
    below: PathBuf,
}

impl Default for CommandLinker {
    fn default() -> Self {
        CommandLinker {
            clang: ("clang".into(), ClangOptions::new()),
            lld: None,
            ptxas: None,
            jobs: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            below: env::temp_dir(),
        }
    }
}

impl CommandLinker {
    /// Creates a linker that runs the `clang` in `PATH` for all targets, as many at a time as there are cores.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the `clang`, a path or a name in `PATH`, and its options.
    #[must_use]
    pub fn with_clang(mut self, program: impl Into<PathBuf>, options: ClangOptions) -> Self {
        self.clang = (program.into(), options);
        self
    }

    /// Links for GPUs of AMD by this `ld.lld`, a path or a name in `PATH`.
    #[must_use]
    pub fn with_lld(mut self, program: impl Into<PathBuf>, options: LldOptions) -> Self {
        self.lld = Some((program.into(), options));
        self
    }

    /// Makes images for GPUs of NVIDIA by this `ptxas`, a path or a name in `PATH`.
    #[must_use]
    pub fn with_ptxas(mut self, program: impl Into<PathBuf>, options: PtxasOptions) -> Self {
        self.ptxas = Some((program.into(), options));
        self
    }

    /// Sets the number of programs that run at a time.
    #[must_use]
    pub fn with_jobs(mut self, jobs: NonZeroUsize) -> Self {
        self.jobs = jobs;
        self
    }

    /// Makes the directory of the run in this one, in the place of the system's for temporary files.
    #[must_use]
    pub fn with_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.below = directory.into();
        self
    }

    /// Returns the program for an image, its arguments, and `true` if it reads `@FILE`.
    fn call(
        &self,
        group: &Group<'_>,
        files: LinkFiles<'_>,
    ) -> Result<(&Path, Vec<OsString>, bool), Error> {
        let is_nvptx = Triple::parse(group.target().triple()).is_nvptx();
        match (&self.lld, &self.ptxas) {
            (Some((lld, options)), _) if group.target().is_amdgpu() => {
                Ok((lld, options.arguments(group, files)?, true))
            }
            (_, Some((ptxas, options))) if is_nvptx => {
                Ok((ptxas, options.arguments(group, files)?, false))
            }
            _ => Ok((&self.clang.0, self.clang.1.arguments(group, files), true)),
        }
    }
}

impl DeviceLinker for CommandLinker {
    type Error = Error;

    fn link(&mut self, group: &Group<'_>) -> Result<Parts, Error> {
        let image = self.link_all(std::slice::from_ref(group))?.pop();
        image.ok_or_else(|| Error::new(ErrorKind::Device, internal!("a group without an image")))
    }

    fn link_all(&mut self, groups: &[Group<'_>]) -> Result<Vec<Parts>, Error> {
        let directory = Directory::new(&self.below)?;
        let mut written = BTreeMap::new();
        let mut links = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            let mut inputs = Vec::new();
            for input in group.inputs() {
                let code = input.code();
                let path = match written.get(&code.index()) {
                    Some(path) => path,
                    None => written.entry(code.index()).or_insert(directory.write(code)?),
                };
                inputs.push(path.clone());
            }
            let image = directory.0.join(format!("{number}.img"));
            let files = LinkFiles::new(&inputs, image.as_os_str());
            let (program, arguments, takes_files) = self.call(group, files)?;
            let response = directory.0.join(format!("{number}.rsp"));
            links.push(Link { group, program, arguments, takes_files, response, image });
        }
        thread::scope(|scope| {
            let bounds = Bounds::new(self.jobs);
            let links = links.iter().map(|link| (link, 0));
            in_order(scope, bounds, links, || |link: &Link<'_, '_>| link.run()).collect()
        })
    }
}

/// A link that is to be run.
struct Link<'l, 'i> {
    group: &'l Group<'i>,
    program: &'l Path,
    arguments: Vec<OsString>,
    /// `true` if the program reads `@FILE`.
    takes_files: bool,
    /// The file of arguments that are too long for the system.
    response: PathBuf,
    image: PathBuf,
}

impl Link<'_, '_> {
    /// Runs the program, and reads the image.
    fn run(&self) -> Result<Parts, Error> {
        let mut command = Command::new(self.program);
        let words = response_file(&self.arguments).filter(|_| self.takes_files);
        if let Some(words) = words {
            fs::write(&self.response, words).map_err(|error| of_file(&self.response, &error))?;
            let mut argument = OsString::from("@");
            argument.push(&self.response);
            command.arg(argument);
        } else {
            command.args(&self.arguments);
        }
        // The output of this process may be read by a program, such as cargo.
        let status = command
            .stdout(Stdio::from(io::stderr()))
            .status()
            .map_err(|error| of_file(self.program, &error))?;
        if !status.success() {
            let (program, target) = (self.program.display(), self.group.target());
            let text = format!("{program}: no image for {target}: {status}");
            return Err(Error::new(ErrorKind::Device, text));
        }
        let image = fs::read(&self.image).map_err(|error| of_file(&self.image, &error))?;
        Ok(image.into())
    }
}

/// A directory that goes when it is dropped.
#[derive(Debug)]
struct Directory(PathBuf);

impl Directory {
    fn new(below: &Path) -> Result<Self, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        #[cfg_attr(not(unix), expect(unused_mut))]
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = below.join(format!("offload-link-{}-{number}", process::id()));
            match builder.create(&path) {
                Ok(()) => return Ok(Directory(path)),
                // Another process had this number once, and left it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(of_file(&path, &error)),
            }
        }
    }

    /// Writes code to a file, whose name tells where it came from.
    fn write(&self, code: &DeviceCode<'_>) -> Result<OsString, Error> {
        let Some(bytes) = code.bytes() else {
            let text = format!("{code}: expected in memory, as `Inputs::add` takes it");
            return Err(Error::new(ErrorKind::Input, text));
        };
        let name = format!("{}-{}-{}", code.stem(), code.target().arch(), code.index());
        let safe = |c: char| if c.is_ascii_alphanumeric() || "+-_.".contains(c) { c } else { '_' };
        let name: String = name.chars().rev().take(MOST_NAME).map(safe).collect();
        let name: String = name.chars().rev().collect();
        let path = self.0.join(format!("{name}.o"));
        fs::write(&path, bytes).map_err(|error| of_file(&path, &error))?;
        Ok(path.into_os_string())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A failure leaves it, as does a process that is killed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The longest name of a file, in characters: less than any system has.
const MOST_NAME: usize = 150;

fn of_file(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Device, format!("{}: {error}", path.display()))
}
