//! The GPUs of this machine, as its kernel shows them, and the versions of its drivers.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use device_select::{Gpus, Machine, NoGpu, NotAVersion, Software, Version, version_of};

use tool_kit::opened::open_regular;
use tool_kit::report;

/// The word for the GPUs of this machine. `native=DIRECTORY` means the GPUs of another machine, whose /sys and /proc
/// are there.
pub const NATIVE: &str = "native";
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
pub struct Root(PathBuf);

impl Root {
    /// Returns the machine that `native` or `native=DIRECTORY` names.
    pub fn named(text: &str) -> Option<Self> {
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
    pub fn gpus(&self) -> Result<Gpus, String> {
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
pub fn visible_here() -> Result<Gpus, String> {
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
pub enum Installed {
    /// The version.
    Version(Version),
    /// The version of a machine.
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
    pub fn version(&self, software: Software) -> Result<Version, String> {
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
