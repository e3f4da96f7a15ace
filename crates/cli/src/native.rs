//! `native` in place of a target ID: the GPUs of this machine, as its kernel shows them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use device_select::{Device, Gpus, Machine, NoGpu, NotAVersion, Software, Version, version_of};

use tool_kit::opened::open_regular;
use tool_kit::report;

/// The word for the GPUs of this machine. `native=DIRECTORY` means the GPUs of another machine, whose /sys and /proc
/// are there.
pub(crate) const NATIVE: &str = "native";
/// The options that take a target ID of a GPU.
const OPTIONS: [&str; 3] = ["--gpu", "--target", "--keep"];
/// The device by which Linux on Windows computes.
const WSL: &str = "/dev/dxg";
/// The tool of NVIDIA's driver there, which need not be in the path.
const WSL_SMI: &str = "/usr/lib/wsl/lib/nvidia-smi";
/// Variables that hide GPUs from AMD's tool. They are applied to what it shows without them.
const HIDING: [&str; 4] = [
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "HSA_OVERRIDE_GFX_VERSION",
];
/// The most bytes of a file of the kernel.
const MOST: u64 = 1 << 20;

/// The machine whose files are below a directory.
#[derive(Clone, Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// Returns the machine that `native` or `native=DIRECTORY` names.
    fn named(text: &str) -> Option<Self> {
        let root = match text.strip_prefix(NATIVE)? {
            "" => "/",
            rest => rest.strip_prefix('=')?,
        };
        Some(Root(root.into()))
    }

    /// Returns the GPUs as programs see them, those of another machine as they are.
    ///
    /// # Errors
    ///
    /// There is none, or one whose processor nothing here tells.
    fn gpus(&self) -> Result<Gpus, String> {
        Gpus::of(self).map_err(|why| match &why {
            NoGpu::Unknown { vendor, .. } => format!("{why}; {}", advice(vendor)),
            NoGpu::Windows => {
                let wsl = "; in WSL only NVIDIA's driver shows its GPUs";
                let wsl = if cfg!(windows) { "" } else { wsl };
                let names =
                    "Name one: --gpu \"RX 7600\" or --gpu sm_86 (`offload gpus` lists names)";
                format!("{why}. {names}{wsl}")
            }
            NoGpu::Missing(_) => {
                format!("{why}; type its target ID: {}, or {}", advice("1002"), advice("10de"))
            }
            why => why.to_string(),
        })
    }

    fn is_this(&self) -> bool {
        self.0 == Path::new("/")
    }
}

/// Returns the GPUs of this machine as programs see them. Notes what variables of the environment were applied.
///
/// # Errors
///
/// As [`Root::gpus`].
pub(crate) fn visible_here() -> Result<Gpus, String> {
    let gpus = Root("/".into()).gpus()?;
    gpus.notes().iter().for_each(|note| report::note(note));
    Ok(gpus)
}

impl Machine for Root {
    /// Reads a regular file, as links of the kernel lead to.
    fn read(&self, file: &str) -> Option<String> {
        let mut text = String::new();
        open_regular(&self.0.join(file)).ok()?.take(MOST).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let found = fs::read_dir(self.0.join(directory)).into_iter().flatten();
        found.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    }

    fn place(&self, file: &str) -> String {
        self.0.join(file).display().to_string()
    }

    fn compute_capabilities(&self) -> String {
        let words = ["--query-gpu=compute_cap", "--format=csv,noheader"];
        let programs = ["nvidia-smi", WSL_SMI].into_iter().filter(|_| self.is_this());
        first(programs.map(|program| printed(program, &words)))
    }

    fn hip_info(&self) -> String {
        let installed = std::env::var_os("HIP_PATH").map(PathBuf::from);
        let installed = installed.map(|path| path.join("bin").join("hipInfo.exe"));
        let programs = [installed, Some("hipInfo".into())].into_iter().flatten();
        let programs = programs.filter(|_| cfg!(windows) && self.is_this());
        first(programs.map(|program| printed(program, &[])))
    }

    fn display_devices(&self) -> String {
        if !cfg!(windows) || !self.is_this() {
            return String::new();
        }
        let connected = printed("pnputil", &["/enum-devices", "/connected", "/class", "Display"]);
        if connected.contains(r"PCI\VEN_") {
            return connected;
        }
        let key = r"HKLM\SYSTEM\CurrentControlSet\Enum\PCI";
        printed("reg", &["query", key, "/s", "/v", "CompatibleIDs"])
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|_| self.is_this())
    }

    fn is_windows(&self) -> bool {
        self.is_this() && (cfg!(windows) || Path::new(WSL).exists())
    }
}

/// Returns the first text that is not empty.
fn first(mut texts: impl Iterator<Item = String>) -> String {
    texts.find(|text| !text.is_empty()).unwrap_or_default()
}

/// Returns what a program prints; nothing without the program. Only plain letters and digits of it count, which are the same in
/// every code page. A failure does not matter: some print what they know before.
fn printed(program: impl AsRef<OsStr>, words: &[&str]) -> String {
    let mut command = Command::new(program);
    for name in HIDING {
        command.env_remove(name);
    }
    let output = command.args(words).stdin(Stdio::null()).output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

/// A version that an option takes: as it is, or the version of a machine.
#[derive(Clone, Debug)]
pub(crate) enum Installed {
    Version(Version),
    On(Root),
}

impl FromStr for Installed {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        match Root::named(text) {
            Some(machine) => Ok(Installed::On(machine)),
            None => text.parse().map(Installed::Version),
        }
    }
}

impl Installed {
    /// Returns the version of this software.
    ///
    /// # Errors
    ///
    /// The machine has none.
    pub(crate) fn version(&self, software: Software) -> Result<Version, String> {
        let machine = match self {
            Installed::Version(version) => return Ok(*version),
            Installed::On(machine) => machine,
        };
        let (version, file) = version_of(machine, software);
        version.ok_or_else(|| {
            let (what, example) = match software {
                Software::Driver => ("NVIDIA driver", "550.54.14"),
                Software::Rocm => ("ROCm", "6.3"),
            };
            let missing = if cfg!(windows) {
                format!("the version of {what} is not looked for on Windows")
            } else {
                format!("this machine has no {what} ({file})")
            };
            format!("{missing}: name the version, for example {example}")
        })
    }
}

/// Returns how to learn the target ID of a GPU by hand.
fn advice(vendor: &str) -> &'static str {
    match vendor {
        "1002" => "rocminfo prints the target ID of an AMD GPU",
        "10de" => "nvidia-smi --query-gpu=compute_cap --format=csv prints 8.6 for sm_86",
        _ => "`offload gpus` lists names",
    }
}

/// Arguments with the GPUs of a machine in the place of its name, and the text that says which.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Expanded {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) note: Option<String>,
}

/// Replaces `native` in the options that take the target ID of a GPU by the IDs of this machine's GPUs, each once.
///
/// # Errors
///
/// As [`Root::gpus`].
pub(crate) fn expand(arguments: impl IntoIterator<Item = OsString>) -> Result<Expanded, String> {
    let mut expanded = Expanded::default();
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_match = arguments.get(1).is_some_and(|command| command == "match");
    if is_match && asks_about_this(&arguments) {
        arguments.splice(2..2, ["--gpu", NATIVE].map(OsString::from));
    }
    let has = |option: &str| {
        let is_it = |text: &str| {
            text.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        arguments.iter().any(|argument| argument.to_str().is_some_and(is_it))
    };
    let mut arguments = arguments.clone().into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            expanded.arguments.push(argument);
            expanded.arguments.extend(arguments.by_ref());
            break;
        }
        let (name, value) = match argument.to_str().and_then(|text| text.split_once('=')) {
            Some((name, value)) => (OsStr::new(name), Some(OsString::from(value))),
            None => (argument.as_os_str(), None),
        };
        if !OPTIONS.iter().any(|option| name == *option) {
            expanded.arguments.push(argument);
            continue;
        }
        let is_apart = value.is_none();
        let Some(value) = value.or_else(|| arguments.next()) else {
            expanded.arguments.push(argument);
            break;
        };
        let typed: Vec<&str> =
            value.to_str().into_iter().flat_map(|text| text.split(',')).collect();
        let words: Vec<&str> = typed.iter().copied().flat_map(Device::listed).collect();
        let is_list = words.len() > typed.len();
        if !is_list && !words.iter().any(|word| Root::named(word).is_some()) {
            if is_apart {
                expanded.arguments.extend([argument, value]);
            } else {
                expanded.arguments.push(argument);
            }
            continue;
        }
        let mut ids: Vec<String> = Vec::new();
        for word in words {
            let Some(machine) = Root::named(word) else {
                ids.push(word.to_owned());
                continue;
            };
            let gpus = machine.gpus()?;
            let mut note = gpus.described(word);
            for (software, version, file) in gpus.installed(&machine) {
                let name = if software == Software::Driver { "driver" } else { "rocm" };
                let option = format!("--{name}");
                if is_match && !has(&option) {
                    note.push_str(&format!("; {name} {version} ({file})"));
                    expanded.arguments.push(format!("{option}={version}").into());
                }
            }
            for (name, how) in
                [("CUDA_FORCE_PTX_JIT", "force"), ("CUDA_DISABLE_PTX_JIT", "disable")]
            {
                let is_set = || machine.variable(name).is_some_and(|value| value == "1");
                if is_match && !has("--ptx-jit") && is_set() {
                    note.push_str(&format!("; {name}=1"));
                    expanded.arguments.push(format!("--ptx-jit={how}").into());
                }
            }
            expanded.note = Some(note);
            for gpu in gpus.all() {
                if !ids.iter().any(|id| id == gpu.id()) {
                    ids.push(gpu.id().to_owned());
                }
            }
        }
        for id in ids {
            expanded.arguments.extend([name.to_owned(), id.into()]);
        }
    }
    Ok(expanded)
}

/// Returns whether `match` is asked about files without a GPU: about this machine.
fn asks_about_this(arguments: &[OsString]) -> bool {
    let words = || arguments.iter().skip(2).filter_map(|argument| argument.to_str());
    let is_about_gpu = |word: &str| word == "--gpu" || word.starts_with("--gpu=");
    let asks_for_help = |word: &str| matches!(word, "-h" | "--help");
    arguments.len() > 2 && !words().any(|word| is_about_gpu(word) || asks_for_help(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn match_without_gpus_asks_about_this_machine() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(asks_about_this(&words("offload match -q dir")));
        for text in ["offload match", "offload match --help", "offload match --gpu=sm_86 x"] {
            assert!(!asks_about_this(&words(text)), "{text}");
        }
    }
}
