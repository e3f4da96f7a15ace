//! The GPUs of this machine, as its kernel shows them, and the versions of its drivers.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use device_select::{
    Device, Gpus, Machine, NoGpu, NotADevice, NotAVersion, PtxJit, Software, Version, each_once,
    version_of,
};

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

    /// Returns the GPUs as programs see them, and what decides there which code they load. `word` is the name of the machine.
    ///
    /// # Errors
    ///
    /// As [`gpus`](Self::gpus).
    pub fn found(&self, word: &str) -> Result<Found, String> {
        let gpus = self.gpus()?;
        let installed = gpus.installed(self).into_iter();
        let installed =
            installed.map(|(software, version, file)| Setting::Installed(software, version, file));
        let is_set = |(variable, _): &(&str, PtxJit)| {
            self.variable(variable).is_some_and(|value| value == "1")
        };
        let ptx_jit = PTX_JIT.into_iter().filter(is_set);
        Ok(Found {
            ids: each_once(gpus.all().iter().map(|gpu| gpu.id().to_owned())),
            described: gpus.described(word),
            settings: installed
                .chain(ptx_jit.map(|(variable, how)| Setting::PtxJit(variable, how)))
                .collect(),
        })
    }

    fn is_this(&self) -> bool {
        self.0 == Path::new("/")
    }
}

/// The variables that set how CUDA's driver compiles PTX. The last one counts.
const PTX_JIT: [(&str, PtxJit); 2] =
    [("CUDA_FORCE_PTX_JIT", PtxJit::Forced), ("CUDA_DISABLE_PTX_JIT", PtxJit::Disabled)];

/// The GPUs of a machine, and what decides there which code they load.
#[derive(Debug)]
pub struct Found {
    /// Their target IDs, each once.
    pub ids: Vec<String>,
    /// The text that says which they are, and why.
    pub described: String,
    /// The software and the settings.
    pub settings: Vec<Setting>,
}

impl Found {
    /// Returns the GPUs with the software and the settings of the machine, as `match` asks about them.
    ///
    /// # Errors
    ///
    /// An ID is of no known form.
    pub fn devices(&self) -> Result<Vec<Device>, NotADevice> {
        let with = |device: Device, setting: &Setting| match setting {
            Setting::Installed(software, version, _) => device.with_installed(*software, *version),
            Setting::PtxJit(_, how) => device.with_ptx_jit(*how),
        };
        let device = |id: &String| Ok(self.settings.iter().fold(Device::parse(id)?, with));
        self.ids.iter().map(device).collect()
    }

    /// Returns whether the version of some software is known.
    pub fn has_versions(&self) -> bool {
        self.settings.iter().any(|setting| matches!(setting, Setting::Installed(..)))
    }

    /// Returns the text about the GPUs, the software and the settings.
    pub fn with_settings(&self) -> String {
        let settings = self.settings.iter().map(|setting| format!("; {setting}"));
        settings.fold(self.described.clone(), |text, setting| text + &setting)
    }
}

/// Something on a machine that decides which code its GPUs load.
#[derive(Debug)]
pub enum Setting {
    /// A version of software, and the file that tells it.
    Installed(Software, Version, String),
    /// A variable that is 1, and its effect on PTX.
    PtxJit(&'static str, PtxJit),
}

impl Setting {
    /// Returns the option of `match` that sets the same, and its value.
    pub fn option(&self) -> (&'static str, String) {
        match self {
            Setting::Installed(Software::Driver, version, _) => ("--driver", version.to_string()),
            Setting::Installed(Software::Rocm, version, _) => ("--rocm", version.to_string()),
            Setting::PtxJit(_, PtxJit::Forced) => ("--ptx-jit", "force".to_owned()),
            Setting::PtxJit(..) => ("--ptx-jit", "disable".to_owned()),
        }
    }
}

/// `driver 550.54.14 (/sys/module/nvidia/version)`, `CUDA_FORCE_PTX_JIT=1`.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Installed(Software::Driver, version, file) => {
                write!(f, "driver {version} ({file})")
            }
            Setting::Installed(Software::Rocm, version, file) => {
                write!(f, "rocm {version} ({file})")
            }
            Setting::PtxJit(variable, _) => write!(f, "{variable}=1"),
        }
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
