//! `native` in place of a target ID: the GPUs of this machine, as its kernel shows them.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use device_select::{
    Device, NotAVersion, Software, Vendor, Version, Visible, driver_version, kfd_processor,
    overridden, visible_devices,
};
use serde::Serialize;
use target_id::may_be_processor;

use tool_kit::opened::open_regular;
use tool_kit::report;

/// The word that stands for the GPUs of this machine. `native=DIRECTORY` stands for those of another, whose /sys and
/// /proc are there.
pub(crate) const NATIVE: &str = "native";
/// The options that take a target ID of a GPU.
const OPTIONS: [&str; 3] = ["--gpu", "--target", "--keep"];
/// The nodes of AMD's kernel driver.
const KFD: &str = "sys/class/kfd/kfd/topology/nodes";
/// Devices on the PCI bus.
const PCI: &str = "sys/bus/pci/devices";
/// Descriptions by NVIDIA's kernel driver, and its version.
const NVIDIA: &str = "proc/driver/nvidia/gpus";
const DRIVER: &str = "proc/driver/nvidia/version";
/// The device by which Linux on Windows computes.
const WSL: &str = "/dev/dxg";
/// The version of ROCm, where its packages put it.
const ROCM: &str = "opt/rocm/.info/version";
/// The most bytes of a file of the kernel.
const MOST: u64 = 1 << 20;
/// First digits of the class of VGA controllers, 3D controllers and accelerators.
const CLASSES: [&str; 3] = ["0x0300", "0x0302", "0x1200"];

/// A GPU of a machine.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Gpu {
    /// The target ID, without features: the kernel does not show them.
    #[serde(rename = "target")]
    pub(crate) id: String,
    /// The file or program that tells of it.
    pub(crate) source: String,
}

impl Gpu {
    fn vendor(&self) -> Option<Vendor> {
        Device::parse(&self.id).ok().map(|gpu| gpu.vendor())
    }
}

/// Applies the variables of the environment that hide GPUs, or let them pass for others. Returns what was applied.
fn apply(gpus: &mut Vec<Gpu>, variable: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut notes = Vec::new();
    let mut numbers = 0..;
    for gpu in gpus.iter_mut().filter(|gpu| gpu.vendor() == Some(Vendor::Amd)) {
        let own = format!("HSA_OVERRIDE_GFX_VERSION_{}", numbers.next().unwrap_or(0));
        let found = [&*own, "HSA_OVERRIDE_GFX_VERSION"].into_iter();
        let found = found.filter_map(|name| Some((name, variable(name)?))).next();
        let Some((name, value)) = found else { continue };
        match overridden(&value) {
            Some(id) => {
                notes.push(format!("{name}={value}: {} passes for {id}", gpu.id));
                gpu.id = id;
            }
            None => notes.push(format!("{name}={value} is not a version such as 10.3.0")),
        }
    }
    for (name, vendor) in [
        ("ROCR_VISIBLE_DEVICES", Vendor::Amd),
        ("HIP_VISIBLE_DEVICES", Vendor::Amd),
        ("CUDA_VISIBLE_DEVICES", Vendor::Nvidia),
    ] {
        let Some(value) = variable(name) else { continue };
        let (own, others): (Vec<_>, Vec<_>) =
            std::mem::take(gpus).into_iter().partition(|gpu| gpu.vendor() == Some(vendor));
        // CUDA counts the fastest GPU first.
        let is_alike = own.iter().all(|gpu| own.first().is_some_and(|first| first.id == gpu.id));
        let is_in_order = vendor != Vendor::Nvidia
            || is_alike
            || variable("CUDA_DEVICE_ORDER").as_deref() == Some("PCI_BUS_ID");
        match visible_devices(&value, own.len()) {
            Visible::Only(positions) if is_in_order => {
                if !own.is_empty() {
                    notes.push(format!(
                        "{name}={value} leaves {} of {}",
                        positions.len(),
                        own.len()
                    ));
                }
                let mut own: Vec<Option<Gpu>> = own.into_iter().map(Some).collect();
                gpus.extend(positions.into_iter().filter_map(|at| own.get_mut(at)?.take()));
            }
            _ => {
                notes.push(format!("{name}={value} is not applied: its order is not known here"));
                gpus.extend(own);
            }
        }
        gpus.extend(others);
    }
    notes
}

/// The files of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    root: PathBuf,
}

impl Machine {
    /// Returns the machine that `native` or `native=DIRECTORY` names.
    fn named(text: &str) -> Option<Self> {
        let root = match text.strip_prefix(NATIVE)? {
            "" => Path::new("/"),
            rest => Path::new(rest.strip_prefix('=')?),
        };
        Some(Machine { root: root.to_owned() })
    }

    /// Returns this machine.
    pub(crate) fn this() -> Self {
        Machine { root: "/".into() }
    }

    /// Returns all GPUs.
    ///
    /// # Errors
    ///
    /// There is none, or one whose processor nothing here tells.
    pub(crate) fn gpus(&self) -> Result<Vec<Gpu>, String> {
        let mut gpus = self.of_kfd();
        let has_kfd = !gpus.is_empty();
        let mut unknown = Vec::new();
        for place in entries(&self.root.join(PCI)) {
            let Some((vendor, device)) = graphics(&place) else { continue };
            // AMD's driver tells more than the PCI bus does.
            if vendor == "1002" && has_kfd || !["1002", "10de", "8086"].contains(&&*vendor) {
                continue;
            }
            match Device::parse(&format!("{vendor}:{device}")) {
                Ok(gpu) => gpus.push(Gpu { id: gpu.name(), source: place.display().to_string() }),
                Err(_) => match self.of_nvidia(&place) {
                    Some(gpu) => gpus.push(gpu),
                    None => unknown.push((vendor, device, place)),
                },
            }
        }
        if unknown.iter().any(|(vendor, ..)| vendor == "10de") && self.root == Path::new("/") {
            let asked = of_nvidia_smi();
            if !asked.is_empty() {
                gpus.retain(|gpu| !gpu.id.starts_with("sm_"));
                gpus.extend(asked);
                unknown.retain(|(vendor, ..)| vendor != "10de");
            }
        }
        // The answer about other GPUs does not wait for the graphics of a CPU without a name here.
        let blocks = |vendor: &str| vendor != "8086" || gpus.is_empty();
        if let Some((vendor, device, place)) = unknown.iter().find(|(vendor, ..)| blocks(vendor)) {
            return Err(format!(
                "the processor of the GPU {vendor}:{device} ({}) is not known; {}",
                place.display(),
                advice(vendor)
            ));
        }
        let is_this = self.root == Path::new("/");
        if gpus.is_empty() && is_this {
            // Windows, and Linux on it, show no devices in files.
            gpus = of_nvidia_smi();
        }
        if gpus.is_empty() && is_this && (cfg!(windows) || Path::new(WSL).exists()) {
            return Err(format!(
                "GPUs are not found on Windows without nvidia-smi; type the target ID: {}, or {}",
                "`offload gpus` lists those of products",
                advice("10de")
            ));
        }
        if gpus.is_empty() {
            let looked: Vec<_> =
                [KFD, PCI].iter().map(|at| self.root.join(at).display().to_string()).collect();
            return Err(format!(
                "no GPU found in {}; type its target ID: {}, or {}",
                looked.join(" and "),
                advice("1002"),
                advice("10de")
            ));
        }
        Ok(gpus)
    }

    /// Returns the GPUs as programs see them, and what variables of the environment were applied. Those of another machine are not.
    ///
    /// # Errors
    ///
    /// As [`gpus`](Self::gpus), and if none is visible.
    fn visible(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Vec<Gpu>, Vec<String>), String> {
        let mut gpus = self.gpus()?;
        let notes = match self.root == Path::new("/") {
            true => apply(&mut gpus, variable),
            false => Vec::new(),
        };
        match gpus.is_empty() {
            true => Err(format!("no GPU is visible: {}", notes.join("; "))),
            false => Ok((gpus, notes)),
        }
    }

    /// Returns the GPUs as programs see them here. Notes what variables of the environment were applied.
    ///
    /// # Errors
    ///
    /// As [`gpus`](Self::gpus), and if none is visible.
    pub(crate) fn visible_here(&self) -> Result<Vec<Gpu>, String> {
        let (gpus, notes) = self.visible(&|name| std::env::var(name).ok())?;
        notes.iter().for_each(|note| report::note(note));
        Ok(gpus)
    }

    /// Returns the versions of software that loads device code, by the options that take them, with the files that tell.
    fn installed(&self, gpus: &[Gpu]) -> Vec<(&'static str, Version, PathBuf)> {
        let has = |vendor| gpus.iter().any(|gpu| gpu.vendor() == Some(vendor));
        let of = |(option, vendor, software)| {
            let (version, file) = self.version(software);
            Some((option, version.filter(|_| has(vendor))?, file))
        };
        let all = [
            ("--driver", Vendor::Nvidia, Software::Driver),
            ("--rocm", Vendor::Amd, Software::Rocm),
        ];
        all.into_iter().filter_map(of).collect()
    }

    /// Returns the version of software that is installed, and the file that tells.
    fn version(&self, software: Software) -> (Option<Version>, PathBuf) {
        let file = self.root.join(if software == Software::Driver { DRIVER } else { ROCM });
        let version = read(&file).and_then(|text| match software {
            Software::Driver => driver_version(&text),
            Software::Rocm => text.parse().ok(),
        });
        (version, file)
    }

    /// Returns the GPUs that AMD's kernel driver tells of. Containers may not show all nodes.
    fn of_kfd(&self) -> Vec<Gpu> {
        let files = entries(&self.root.join(KFD)).into_iter().map(|node| node.join("properties"));
        files
            .filter_map(|file| {
                let id = kfd_processor(&read(&file)?)?;
                Some(Gpu { id, source: file.display().to_string() })
            })
            .collect()
    }

    /// Returns a GPU at this place of the PCI bus by the name that NVIDIA's kernel driver has for it.
    fn of_nvidia(&self, place: &Path) -> Option<Gpu> {
        let file = self.root.join(NVIDIA).join(place.file_name()?).join("information");
        let text = read(&file)?;
        let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
        let gpu = Device::parse(model.trim()).ok()?;
        Some(Gpu { id: gpu.name(), source: file.display().to_string() })
    }
}

/// A version that an option takes: as it is, or that of a machine.
#[derive(Clone, Debug)]
pub(crate) enum Installed {
    Version(Version),
    On(Machine),
}

impl FromStr for Installed {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        match Machine::named(text) {
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
        let (version, file) = machine.version(software);
        version.ok_or_else(|| {
            let (what, example) = match software {
                Software::Driver => ("NVIDIA driver", "550.54.14"),
                Software::Rocm => ("ROCm", "6.3"),
            };
            let file = file.display();
            format!("this machine has no {what} ({file}): name the version, for example {example}")
        })
    }
}

/// Reads a file of the kernel, or of a copy of such files: a regular one, as links of the kernel lead to.
fn read(file: &Path) -> Option<String> {
    let mut text = String::new();
    open_regular(file).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns the directories in one, in the order of their names as numbers, then as text.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    found.sort_by_cached_key(|path| {
        let name = path.file_name().unwrap_or_default().to_os_string();
        (name.to_str().and_then(|name| name.parse::<u64>().ok()), name)
    });
    found
}

/// Returns vendor and device, four digits each, of a device on the PCI bus that computes.
fn graphics(place: &Path) -> Option<(String, String)> {
    let read = |name: &str| Some(read(&place.join(name))?.trim().to_owned());
    let class = read("class")?;
    let digits = |name: &str| Some(read(name)?.strip_prefix("0x")?.to_ascii_lowercase());
    CLASSES.iter().any(|known| class.starts_with(known)).then_some(())?;
    Some((digits("vendor")?, digits("device")?))
}

/// Returns the GPUs that NVIDIA's tool tells of, if it is installed.
fn of_nvidia_smi() -> Vec<Gpu> {
    let mut asked = Command::new("nvidia-smi");
    let asked = asked.args(["--query-gpu=compute_cap", "--format=csv,noheader"]);
    let printed = asked.output().map(|output| output.stdout).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let ids = printed.lines().map(|line| format!("sm_{}", line.trim().replace('.', "")));
    ids.filter(|id| Device::parse(id).is_ok())
        .map(|id| Gpu { id, source: "nvidia-smi".to_owned() })
        .collect()
}

/// Returns how to learn the target ID of a GPU by hand.
fn advice(vendor: &str) -> &'static str {
    match vendor {
        "1002" => "rocminfo prints that of an AMD GPU",
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
/// As [`Machine::gpus`].
pub(crate) fn expand(arguments: impl IntoIterator<Item = OsString>) -> Result<Expanded, String> {
    expand_in(arguments, &|name| std::env::var(name).ok())
}

/// Expands in an environment.
fn expand_in(
    arguments: impl IntoIterator<Item = OsString>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Expanded, String> {
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
    let given = ["--driver", "--rocm", "--ptx-jit"].map(|option| (option, has(option)));
    let is_given = |option: &str| given.iter().any(|(one, is_given)| *one == option && *is_given);
    let mut arguments = arguments.into_iter();
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
        let text = value.to_str().unwrap_or_default();
        let words: Vec<&str> = text.split(',').flat_map(listed).collect();
        let is_list = words.len() > text.split(',').count();
        if !is_list && !words.iter().any(|word| Machine::named(word).is_some()) {
            match is_apart {
                true => expanded.arguments.extend([argument, value]),
                false => expanded.arguments.push(argument),
            }
            continue;
        }
        let mut ids: Vec<String> = Vec::new();
        for word in words {
            let Some(machine) = Machine::named(word) else {
                ids.push(word.to_owned());
                continue;
            };
            let is_this = machine.root == Path::new("/");
            let (gpus, notes) = machine.visible(variable)?;
            let installed = machine.installed(&gpus);
            let mut note = describe(word, &gpus);
            notes.iter().for_each(|applied| note.push_str(&format!("; {applied}")));
            for (option, version, file) in installed.iter().filter(|_| is_match) {
                if !is_given(option) {
                    note.push_str(&format!(
                        "; {} {version} ({})",
                        option.trim_start_matches('-'),
                        file.display()
                    ));
                    expanded.arguments.push(format!("{option}={version}").into());
                }
            }
            for (name, how) in
                [("CUDA_FORCE_PTX_JIT", "force"), ("CUDA_DISABLE_PTX_JIT", "disable")]
            {
                let is_set = || variable(name).is_some_and(|value| value == "1");
                if is_match && is_this && !is_given("--ptx-jit") && is_set() {
                    note.push_str(&format!("; {name}=1"));
                    expanded.arguments.push(format!("--ptx-jit={how}").into());
                }
            }
            expanded.note = Some(note);
            for gpu in gpus {
                if !ids.contains(&gpu.id) {
                    ids.push(gpu.id);
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

/// Returns the target IDs of a list with blanks, `gfx1100 gfx906`, or the text itself: names of products have blanks, too.
fn listed(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_id = |word: &&str| {
        let processor = word.split_once(':').map_or(*word, |(processor, _)| processor);
        may_be_processor(&processor.to_ascii_lowercase())
    };
    if words.len() > 1 && words.iter().all(is_id) { words } else { vec![text] }
}

/// Returns the text that says what a word stands for, and why.
fn describe(word: &str, gpus: &[Gpu]) -> String {
    let mut text = format!("{word} is ");
    for (n, gpu) in gpus.iter().enumerate() {
        if gpus.iter().take(n).any(|other| other.id == gpu.id) {
            continue;
        }
        let comma = if n == 0 { "" } else { ", " };
        let count = gpus.iter().filter(|other| other.id == gpu.id).count();
        let times = if count > 1 { format!("{count} x ") } else { String::new() };
        let _ = write!(text, "{comma}{times}{} ({})", gpu.id, gpu.source);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of these files.
    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, String) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let word = format!("native={}", root.path().display());
        (root, word)
    }

    fn ids(files: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let (_root, word) = machine(files);
        let gpus = Machine::named(&word).unwrap().gpus()?;
        Ok(gpus.into_iter().map(|gpu| gpu.id).collect())
    }

    fn pci<'a>(class: &'a str, vendor: &'a str, device: &'a str) -> [(&'static str, &'a str); 3] {
        [
            ("sys/bus/pci/devices/0000:01:00.0/class", class),
            ("sys/bus/pci/devices/0000:01:00.0/vendor", vendor),
            ("sys/bus/pci/devices/0000:01:00.0/device", device),
        ]
    }

    #[test]
    fn amd_gpus_come_from_kfd() {
        let nodes = [
            ("sys/class/kfd/kfd/topology/nodes/0/properties", "gfx_target_version 0\n"),
            ("sys/class/kfd/kfd/topology/nodes/10/properties", "gfx_target_version 100306\n"),
            ("sys/class/kfd/kfd/topology/nodes/2/properties", "gfx_target_version 90402\n"),
        ];
        let bus = pci("0x030000\n", "0x1002\n", "0x744c\n");
        assert_eq!(ids(&[&nodes[..], &bus[..]].concat()).unwrap(), ["gfx942", "gfx1036"]);
        assert_eq!(ids(&bus).unwrap(), ["gfx1100"]);
    }

    #[test]
    fn other_gpus_come_from_the_pci_bus() {
        assert_eq!(ids(&pci("0x030200\n", "0x10de\n", "0x2684\n")).unwrap(), ["sm_89"]);
        let unknown = pci("0x030200\n", "0x10de\n", "0xffff\n");
        let information = (
            "proc/driver/nvidia/gpus/0000:01:00.0/information",
            "Model: \t\t NVIDIA H200\nIRQ:   \t\t 0\n",
        );
        assert_eq!(ids(&[&unknown[..], &[information]].concat()).unwrap(), ["sm_90"]);
        let error = ids(&unknown).unwrap_err();
        assert!(error.contains("10de:ffff") && error.contains("nvidia-smi"), "{error}");
    }

    /// The GPUs that are left of some, and what is said.
    fn applied(ids: &[&str], variables: &[(&str, &str)]) -> (Vec<String>, String) {
        let gpu = |id: &&str| Gpu { id: (*id).to_owned(), source: String::new() };
        let mut gpus: Vec<Gpu> = ids.iter().map(gpu).collect();
        let value = |name: &str| {
            let found = variables.iter().find(|(one, _)| *one == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let notes = apply(&mut gpus, &value).join("; ");
        (gpus.into_iter().map(|gpu| gpu.id).collect(), notes)
    }

    #[test]
    fn variables_hide_gpus_and_let_them_pass_for_others() {
        let all = ["gfx1103", "gfx906", "sm_86", "sm_90"];
        let left = |variables: &[(&str, &str)]| applied(&all, variables).0;
        assert_eq!(left(&[]), all);
        assert_eq!(left(&[("HIP_VISIBLE_DEVICES", "1")]), ["gfx906", "sm_86", "sm_90"]);
        assert_eq!(left(&[("ROCR_VISIBLE_DEVICES", "")]), ["sm_86", "sm_90"]);
        let both = [("ROCR_VISIBLE_DEVICES", "1"), ("HIP_VISIBLE_DEVICES", "0")];
        assert_eq!(left(&both), ["gfx906", "sm_86", "sm_90"]);
        let passes = [("HSA_OVERRIDE_GFX_VERSION_0", "11.0.0"), ("ROCR_VISIBLE_DEVICES", "0")];
        let (ids, notes) = applied(&all, &passes);
        assert_eq!(ids, ["gfx1100", "sm_86", "sm_90"]);
        assert!(notes.starts_with("HSA_OVERRIDE_GFX_VERSION_0=11.0.0: gfx1103 passes for gfx1100"));
        // The order of unlike GPUs of NVIDIA's is that of their speed.
        let (ids, notes) = applied(&all, &[("CUDA_VISIBLE_DEVICES", "0")]);
        assert_eq!((ids.len(), notes.contains("is not applied")), (4, true));
        let ordered = [("CUDA_VISIBLE_DEVICES", "1"), ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")];
        assert_eq!(left(&ordered), ["sm_90", "gfx1103", "gfx906"]);
        assert_eq!(applied(&["sm_90", "sm_90"], &[("CUDA_VISIBLE_DEVICES", "1")]).0, ["sm_90"]);
        let unknown = [("CUDA_VISIBLE_DEVICES", "GPU-8932f937")];
        assert_eq!(applied(&["sm_90"], &unknown).0, ["sm_90"]);
    }

    #[test]
    fn match_asks_about_this_machine_and_its_software() {
        let (_root, word) = machine(&[
            ("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x  580.65.06  Release\n"),
            ("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n"),
            ("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n"),
            ("sys/bus/pci/devices/0000:01:00.0/device", "0x2684\n"),
        ]);
        let expanded = |arguments: &[&str]| {
            let expanded = expand_in(arguments.iter().map(OsString::from), &|_| None).unwrap();
            let texts = expanded.arguments.into_iter().map(|text| text.into_string().unwrap());
            texts.collect::<Vec<_>>().join(" ")
        };
        let asked = expanded(&["offload", "match", "--gpu", &word, "x"]);
        assert_eq!(asked, "offload match --driver=580.65 --gpu sm_89 x");
        let given = expanded(&["offload", "match", "--driver", "535", "--gpu", &word, "x"]);
        assert_eq!(given, "offload match --driver 535 --gpu sm_89 x");
        assert_eq!(
            expanded(&["offload", "thin", "--keep", &word, "x"]),
            "offload thin --keep sm_89 x"
        );
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(asks_about_this(&words("offload match -q dir")));
        for text in ["offload match", "offload match --help", "offload match --gpu=sm_86 x"] {
            assert!(!asks_about_this(&words(text)), "{text}");
        }
    }

    #[test]
    fn lists_may_have_blanks() {
        assert_eq!(listed("gfx1100 GFX90a:xnack+  sm_86"), ["gfx1100", "GFX90a:xnack+", "sm_86"]);
        for one in ["RX 7600", "gfx1100", "gfx1100 XT", " gfx906 "] {
            assert_eq!(listed(one), [one]);
        }
        let arguments = ["match", "--gpu", "gfx1100 gfx906,RX 7600", "--gpu=sm_80 sm_86", "x"];
        let expanded = expand(arguments.map(OsString::from)).unwrap().arguments;
        let all = [
            "match", "--gpu", "gfx1100", "--gpu", "gfx906", "--gpu", "RX 7600", "--gpu", "sm_80",
            "--gpu", "sm_86", "x",
        ];
        assert_eq!(expanded, all);
    }

    #[test]
    fn machines_without_gpus_are_errors_that_name_the_places() {
        for files in
            [&[][..], &pci("0x020000", "0x10de", "0x2684"), &pci("0x030000", "0x1a03", "1")]
        {
            let error = ids(files).unwrap_err();
            assert!(error.contains(KFD) && error.contains(PCI), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_not_read() {
        let nodes = ["sys/class/kfd/kfd/topology/nodes/0/properties"; 1];
        let (root, word) = machine(&nodes.map(|node| (node, "")));
        for device in [None, Some("/dev/zero")] {
            let file = root.path().join(nodes[0]);
            fs::remove_file(&file).unwrap();
            match device {
                Some(device) => std::os::unix::fs::symlink(device, &file).unwrap(),
                None => assert!(Command::new("mkfifo").arg(&file).status().unwrap().success()),
            }
            assert!(Machine::named(&word).unwrap().gpus().is_err());
        }
    }

    #[test]
    fn native_becomes_ids() {
        let (_root, word) = machine(&[
            ("sys/class/kfd/kfd/topology/nodes/1/properties", "gfx_target_version 90010\n"),
            ("sys/class/kfd/kfd/topology/nodes/2/properties", "gfx_target_version 90010\n"),
        ]);
        let (both, joined) = (format!("{word},gfx906"), format!("--target={word}"));
        let expanded = |arguments: &[&str]| {
            let expanded = expand(arguments.iter().map(OsString::from)).unwrap();
            let arguments = expanded.arguments.into_iter().map(|text| text.into_string().unwrap());
            (arguments.collect::<Vec<_>>().join(" "), expanded.note)
        };
        let (arguments, note) = expanded(&["thin", "--keep", &both, "x"]);
        assert_eq!(arguments, "thin --keep gfx90a --keep gfx906 x");
        assert!(note.unwrap().contains("is 2 x gfx90a ("));
        assert_eq!(expanded(&["ls", &joined]).0, "ls --target gfx90a");
        for kept in
            ["ls native", "ls --id native", "match --gpu gfx906 -- --gpu native", "match --gpu"]
        {
            let words: Vec<&str> = kept.split(' ').collect();
            assert_eq!(expanded(&words), (kept.to_owned(), None));
        }
    }
}
