//! The GPUs of a machine, in the words of its operating system.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::device::Device;
use crate::environment::{Visible, overridden, visible_devices};
use crate::needs::{Software, Version};
use crate::programs::{self, Display};
use crate::vendor::Vendor;

/// The nodes of AMD's kernel driver.
const KFD: &str = "sys/class/kfd/kfd/topology/nodes";
/// Devices on the PCI bus.
const PCI: &str = "sys/bus/pci/devices";
/// Descriptions by NVIDIA's kernel driver, and its version.
const NVIDIA: &str = "proc/driver/nvidia/gpus";
const DRIVER: &str = "proc/driver/nvidia/version";
/// The version of ROCm, where its packages put it.
const ROCM: &str = "opt/rocm/.info/version";
/// First digits of the class of VGA controllers, 3D controllers and accelerators.
const CLASSES: [&str; 3] = ["0x0300", "0x0302", "0x1200"];
/// The numbers of vendors on the PCI bus.
const AMD: &str = "1002";
const NVIDIAS: &str = "10de";
const INTEL: &str = "8086";

/// A machine, as it shows itself. Its caller reads the files and asks the programs; what they say is read here.
///
/// ```
/// use device_select::{Gpus, Machine};
///
/// /// A machine with one GPU of AMD's.
/// struct Mine;
///
/// impl Machine for Mine {
///     fn read(&self, file: &str) -> Option<String> {
///         let node = "sys/class/kfd/kfd/topology/nodes/1/properties";
///         (file == node).then(|| "gfx_target_version 90010\n".to_owned())
///     }
///
///     fn names(&self, directory: &str) -> Vec<String> {
///         let nodes = directory == "sys/class/kfd/kfd/topology/nodes";
///         if nodes { vec!["0".to_owned(), "1".to_owned()] } else { Vec::new() }
///     }
/// }
///
/// let gpus = Gpus::of(&Mine)?;
/// assert_eq!(gpus.all()[0].id(), "gfx90a");
/// assert_eq!(
///     gpus.described("native"),
///     "native is gfx90a (/sys/class/kfd/kfd/topology/nodes/1/properties)"
/// );
/// # Ok::<(), device_select::NoGpu>(())
/// ```
pub trait Machine {
    /// Returns the text of a file, by its path below the root: `proc/driver/nvidia/version`. `None` if it cannot be read.
    fn read(&self, file: &str) -> Option<String>;

    /// Returns the names of what lies in a directory, in any order; none if it cannot be read.
    fn names(&self, directory: &str) -> Vec<String>;

    /// Returns the path of a file as people see it.
    fn place(&self, file: &str) -> String {
        format!("/{file}")
    }

    /// Returns what `nvidia-smi --query-gpu=compute_cap --format=csv,noheader` prints; nothing if it is not there, or if this is
    /// another machine than the one on which the program runs.
    fn compute_capabilities(&self) -> String {
        String::new()
    }

    /// Returns what AMD's `hipInfo` prints on Windows; nothing elsewhere.
    fn hip_info(&self) -> String {
        String::new()
    }

    /// Returns the display devices of Windows, as `pnputil /enum-devices /connected /class Display` prints them, or
    /// `reg query HKLM\SYSTEM\CurrentControlSet\Enum\PCI /s /v CompatibleIDs`; nothing elsewhere.
    fn display_devices(&self) -> String {
        String::new()
    }

    /// Returns a variable of the environment; `None` if it is not set, or if this is another machine.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    /// Returns whether it is Windows, or Linux on it, which shows no GPUs in files.
    fn is_windows(&self) -> bool {
        false
    }
}

/// A GPU of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    id: String,
    source: String,
}

impl Gpu {
    /// Returns the target ID, without features: the kernel does not show them.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the file or program that reports it.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    fn vendor(&self) -> Option<Vendor> {
        Device::parse(&self.id).ok().map(|gpu| gpu.vendor())
    }
}

/// The reason why the GPUs of a machine are not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoGpu {
    /// Nothing tells the processor of a GPU.
    #[error("the processor of the GPU {vendor}:{device} ({place}) is not known")]
    Unknown {
        /// The number of its vendor on the PCI bus, `10de`.
        vendor: String,
        /// Its own number, `2684`.
        device: String,
        /// The path of the device.
        place: String,
    },
    /// No program reports one on Windows, or on Linux on it.
    #[error("no GPU detected")]
    Windows,
    /// These directories have none.
    #[error("no GPU found in {}", .0.join(" and "))]
    Missing([String; 2]),
    /// Variables of the environment hide all of them: what was applied.
    #[error("no GPU is visible: {}", .0.join("; "))]
    Hidden(Vec<String>),
}

/// The GPUs of a machine as programs see them there.
#[derive(Debug)]
pub struct Gpus {
    all: Vec<Gpu>,
    notes: Vec<String>,
}

impl Gpus {
    /// Finds the GPUs of a machine. Variables of the environment hide some, or let them pass for others.
    ///
    /// # Errors
    ///
    /// None is visible, or nothing tells the processor of one.
    pub fn of(machine: &impl Machine) -> Result<Self, NoGpu> {
        let mut gpus = Gpus { all: all(machine)?, notes: Vec::new() };
        gpus.apply(machine);
        if gpus.all.is_empty() { Err(NoGpu::Hidden(gpus.notes)) } else { Ok(gpus) }
    }

    /// Returns the GPUs, in the order in which programs see them.
    #[must_use]
    pub fn all(&self) -> &[Gpu] {
        &self.all
    }

    /// Returns the variables of the environment that were applied, and what they did.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the text that says which these are that somebody called `word`, and why.
    #[must_use]
    pub fn described(&self, word: &str) -> String {
        let mut text = format!("{word} is ");
        for (n, gpu) in self.all.iter().enumerate() {
            if self.all.iter().take(n).any(|other| other.id == gpu.id) {
                continue;
            }
            let comma = if n == 0 { "" } else { ", " };
            let count = self.all.iter().filter(|other| other.id == gpu.id).count();
            let times = if count > 1 { format!("{count} x ") } else { String::new() };
            text.push_str(&format!("{comma}{times}{} ({})", gpu.id, gpu.source));
        }
        for note in &self.notes {
            text.push_str("; ");
            text.push_str(note);
        }
        text
    }

    /// Returns the versions of the software that loads code on these GPUs, each with the file that tells.
    #[must_use]
    pub fn installed(&self, machine: &impl Machine) -> Vec<(Software, Version, String)> {
        let has = |vendor| self.all.iter().any(|gpu| gpu.vendor() == Some(vendor));
        let of = |(vendor, software)| {
            let (version, file) = version_of(machine, software);
            Some((software, version.filter(|_| has(vendor))?, file))
        };
        let all = [(Vendor::Nvidia, Software::Driver), (Vendor::Amd, Software::Rocm)];
        all.into_iter().filter_map(of).collect()
    }

    /// Applies the variables of the environment that hide GPUs, or let them pass for others.
    fn apply(&mut self, machine: &impl Machine) {
        let mut numbers = 0..;
        for gpu in self.all.iter_mut().filter(|gpu| gpu.vendor() == Some(Vendor::Amd)) {
            let own = format!("HSA_OVERRIDE_GFX_VERSION_{}", numbers.next().unwrap_or(0));
            let found = [&*own, "HSA_OVERRIDE_GFX_VERSION"].into_iter();
            let found = found.filter_map(|name| Some((name, machine.variable(name)?))).next();
            let Some((name, value)) = found else { continue };
            match overridden(&value) {
                Some(id) => {
                    self.notes.push(format!("{name}={value}: {} passes for {id}", gpu.id));
                    gpu.id = id;
                }
                None => self.notes.push(format!("{name}={value} is not a version such as 10.3.0")),
            }
        }
        for (name, vendor) in [
            ("ROCR_VISIBLE_DEVICES", Vendor::Amd),
            ("HIP_VISIBLE_DEVICES", Vendor::Amd),
            ("CUDA_VISIBLE_DEVICES", Vendor::Nvidia),
        ] {
            let Some(value) = machine.variable(name) else { continue };
            let (own, others): (Vec<_>, Vec<_>) = core::mem::take(&mut self.all)
                .into_iter()
                .partition(|gpu| gpu.vendor() == Some(vendor));
            // CUDA counts the fastest GPU first.
            let is_alike =
                own.iter().all(|gpu| own.first().is_some_and(|first| first.id == gpu.id));
            let is_in_order = vendor != Vendor::Nvidia
                || is_alike
                || machine.variable("CUDA_DEVICE_ORDER").as_deref() == Some("PCI_BUS_ID");
            match visible_devices(&value, own.len()) {
                Visible::Only(positions) if is_in_order => {
                    if !own.is_empty() {
                        self.notes.push(format!(
                            "{name}={value} leaves {} of {}",
                            positions.len(),
                            own.len()
                        ));
                    }
                    let mut own: Vec<Option<Gpu>> = own.into_iter().map(Some).collect();
                    self.all.extend(positions.into_iter().filter_map(|at| own.get_mut(at)?.take()));
                }
                _ => {
                    self.notes.push(format!(
                        "{name}={value} is not applied: its order is not known here"
                    ));
                    self.all.extend(own);
                }
            }
            self.all.extend(others);
        }
    }
}

/// Vendor, device and place of a GPU that has no name here.
type Unknown = (String, String, String);

/// Returns all GPUs of a machine, hidden or not.
fn all(machine: &impl Machine) -> Result<Vec<Gpu>, NoGpu> {
    let mut gpus = of_kfd(machine);
    let has_kfd = !gpus.is_empty();
    let mut unknown: Vec<Unknown> = Vec::new();
    for name in entries(machine, PCI) {
        let Some((vendor, device)) = graphics(machine, &name) else { continue };
        // AMD's driver tells more than the PCI bus does.
        if vendor == AMD && has_kfd || ![AMD, NVIDIAS, INTEL].contains(&&*vendor) {
            continue;
        }
        let place = machine.place(&format!("{PCI}/{name}"));
        match Device::parse(&format!("{vendor}:{device}")) {
            Ok(gpu) => gpus.push(Gpu { id: gpu.name(), source: place }),
            Err(_) => match of_nvidia(machine, &name) {
                Some(gpu) => gpus.push(gpu),
                None => unknown.push((vendor, device, place)),
            },
        }
    }
    if gpus.is_empty() && unknown.is_empty() {
        // Windows, and Linux on it, show no devices in files.
        of_programs(machine, &mut gpus, &mut unknown);
    } else if unknown.iter().any(|(vendor, ..)| vendor == NVIDIAS) {
        let asked = of_nvidia_smi(machine);
        if !asked.is_empty() {
            gpus.retain(|gpu| !gpu.id.starts_with("sm_"));
            gpus.extend(asked);
            unknown.retain(|(vendor, ..)| vendor != NVIDIAS);
        }
    }
    // The answer about other GPUs does not wait for the graphics of a CPU without a name here.
    let blocks = |vendor: &str| vendor != INTEL || gpus.is_empty();
    if let Some((vendor, device, place)) = unknown.into_iter().find(|(vendor, ..)| blocks(vendor)) {
        return Err(NoGpu::Unknown { vendor, device, place });
    }
    match gpus.is_empty() {
        true if machine.is_windows() => Err(NoGpu::Windows),
        true => Err(NoGpu::Missing([KFD, PCI].map(|at| machine.place(at)))),
        false => Ok(gpus),
    }
}

/// Returns the GPUs that AMD's kernel driver reports. Containers may not show all nodes.
fn of_kfd(machine: &impl Machine) -> Vec<Gpu> {
    let files = entries(machine, KFD).into_iter().map(|node| format!("{KFD}/{node}/properties"));
    files
        .filter_map(|file| {
            let id = kfd_processor(&machine.read(&file)?)?;
            Some(Gpu { id, source: machine.place(&file) })
        })
        .collect()
}

/// Returns a GPU at this address of the PCI bus by the name that NVIDIA's kernel driver has for it.
fn of_nvidia(machine: &impl Machine, address: &str) -> Option<Gpu> {
    let file = format!("{NVIDIA}/{address}/information");
    let text = machine.read(&file)?;
    let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
    let gpu = Device::parse(model.trim()).ok()?;
    Some(Gpu { id: gpu.name(), source: machine.place(&file) })
}

/// Returns the GPUs that NVIDIA's tool reports.
fn of_nvidia_smi(machine: &impl Machine) -> Vec<Gpu> {
    let ids = programs::of_nvidia_smi(&machine.compute_capabilities());
    ids.into_iter().map(|id| Gpu { id, source: "nvidia-smi".to_owned() }).collect()
}

/// Adds the GPUs that the tools of drivers report. The list of devices counts for other vendors: it may have devices that are no
/// longer there.
fn of_programs(machine: &impl Machine, gpus: &mut Vec<Gpu>, unknown: &mut Vec<Unknown>) {
    gpus.extend(of_nvidia_smi(machine));
    let ids = programs::of_hip_info(&machine.hip_info());
    gpus.extend(ids.into_iter().map(|id| Gpu { id, source: "hipInfo".to_owned() }));
    let told: Vec<Vendor> = gpus.iter().filter_map(Gpu::vendor).collect();
    for Display { vendor, device, place } in programs::displays(&machine.display_devices()) {
        let number = match &*vendor {
            AMD => Vendor::Amd,
            NVIDIAS => Vendor::Nvidia,
            INTEL => Vendor::Intel,
            _ => continue,
        };
        if told.contains(&number) {
            continue;
        }
        match Device::parse(&format!("{vendor}:{device}")) {
            Ok(gpu) => gpus.push(Gpu { id: gpu.name(), source: place }),
            Err(_) => unknown.push((vendor, device, place)),
        }
    }
}

/// Returns the names in a directory, in the order of the names as numbers, then as text.
fn entries(machine: &impl Machine, directory: &str) -> Vec<String> {
    let mut names = machine.names(directory);
    names.sort_by_cached_key(|name| (name.parse::<u64>().ok(), name.clone()));
    names
}

/// Returns vendor and device, four digits each, of a device on the PCI bus that computes.
fn graphics(machine: &impl Machine, name: &str) -> Option<(String, String)> {
    let read = |file: &str| machine.read(&format!("{PCI}/{name}/{file}"));
    let class = read("class")?;
    let digits = |file: &str| Some(read(file)?.trim().strip_prefix("0x")?.to_ascii_lowercase());
    CLASSES.iter().any(|known| class.trim().starts_with(known)).then_some(())?;
    Some((digits("vendor")?, digits("device")?))
}

/// Returns the version of software that is installed on a machine, if there is one, and the file that tells.
#[must_use]
pub fn version_of(machine: &impl Machine, software: Software) -> (Option<Version>, String) {
    let file = if software == Software::Driver { DRIVER } else { ROCM };
    let version = machine.read(file).and_then(|text| match software {
        Software::Driver => driver_version(&text),
        Software::Rocm => text.parse().ok(),
    });
    (version, machine.place(file))
}

/// Returns the processor in a node of the topology of AMD's kernel driver, KFD; `None` for CPUs.
///
/// `properties` is the text of `/sys/class/kfd/kfd/topology/nodes/N/properties`: lines of a key and a decimal number.
/// It does not show whether xnack and sramecc are on. The rule is the rule of LLVM's `offload-arch` and of ROCm.
///
/// ```
/// use device_select::kfd_processor;
///
/// let node = "cpu_cores_count 0\nsimd_count 440\ngfx_target_version 90010\n";
/// assert_eq!(kfd_processor(node).as_deref(), Some("gfx90a"));
/// assert_eq!(kfd_processor("cpu_cores_count 64\ngfx_target_version 0\n"), None);
/// ```
#[must_use]
pub fn kfd_processor(properties: &str) -> Option<String> {
    /// The version of gfx1250, whose first silicon has a processor of its own.
    const GFX1250: u64 = 12_05_00;
    let value = |key: &str| {
        let mut pairs = properties.lines().filter_map(|line| line.trim().split_once(' '));
        pairs.find(|(name, _)| *name == key).and_then(|(_, value)| value.trim().parse::<u64>().ok())
    };
    let version = value("gfx_target_version").filter(|version| *version > 0)?;
    let (major, minor, stepping) = (version / 10_000, version / 100 % 100, version % 100);
    let revision = value("capability").map(|capability| capability >> 22 & 0xf);
    let strict = if version == GFX1250 && revision == Some(0) { "-strict" } else { "" };
    Some(format!("gfx{major}{minor}{stepping:x}{strict}"))
}

/// Returns the version of NVIDIA's kernel driver from the text of `/proc/driver/nvidia/version`.
///
/// ```
/// use device_select::{Version, driver_version};
///
/// let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: gcc 15\n";
/// assert_eq!(driver_version(text), Some(Version::new(580, 159)));
/// ```
#[must_use]
pub fn driver_version(text: &str) -> Option<Version> {
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    let is_version =
        |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    line.split_whitespace().find(is_version)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// A machine of these files and variables.
    #[derive(Default)]
    struct Fake<'a> {
        files: &'a [(&'a str, &'a str)],
        variables: &'a [(&'a str, &'a str)],
        capabilities: &'a str,
        hip_info: &'a str,
        displays: &'a str,
        is_windows: bool,
    }

    impl Machine for Fake<'_> {
        fn read(&self, file: &str) -> Option<String> {
            let found = self.files.iter().find(|(path, _)| *path == file);
            found.map(|(_, text)| (*text).to_owned())
        }

        fn names(&self, directory: &str) -> Vec<String> {
            let within = self.files.iter().filter_map(|(path, _)| path.strip_prefix(directory));
            let names = within.filter_map(|rest| rest.strip_prefix('/')?.split('/').next());
            let mut names: Vec<_> = names.map(str::to_owned).collect();
            names.dedup();
            names
        }

        fn compute_capabilities(&self) -> String {
            self.capabilities.to_owned()
        }

        fn hip_info(&self) -> String {
            self.hip_info.to_owned()
        }

        fn display_devices(&self) -> String {
            self.displays.to_owned()
        }

        fn variable(&self, name: &str) -> Option<String> {
            let found = self.variables.iter().find(|(one, _)| *one == name);
            found.map(|(_, value)| (*value).to_owned())
        }

        fn is_windows(&self) -> bool {
            self.is_windows
        }
    }

    fn ids_of(gpus: &Gpus) -> Vec<&str> {
        gpus.all().iter().map(Gpu::id).collect()
    }

    fn ids(files: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let gpus = Gpus::of(&Fake { files, ..Fake::default() }).map_err(|why| why.to_string())?;
        Ok(ids_of(&gpus).into_iter().map(str::to_owned).collect())
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
        assert!(
            error.contains("10de:ffff (/sys/bus/pci/devices/0000:01:00.0) is not known"),
            "{error}"
        );
    }

    #[test]
    fn the_tool_of_nvidia_is_asked_where_files_do_not_tell() {
        let files = pci("0x030200\n", "0x10de\n", "0xffff\n");
        let asked = |files, is_windows, capabilities| {
            let gpus = Gpus::of(&Fake { files, is_windows, capabilities, ..Fake::default() });
            gpus.map(|gpus| gpus.described("native"))
        };
        let two = "native is 2 x sm_86 (nvidia-smi)";
        assert_eq!(asked(&files, false, "8.6\n8.6\n").unwrap(), two);
        assert_eq!(asked(&[], true, "8.6\n8.6\n").unwrap(), two);
        assert!(matches!(asked(&[], true, ""), Err(NoGpu::Windows)));
    }

    #[test]
    fn on_windows_the_list_of_devices_counts_where_no_tool_reports() {
        let displays = "X: PCI\\VEN_10DE&DEV_1B06&REV_A1\\4\nX: PCI\\VEN_1002&DEV_7480&REV_CF\\6\n\
                        X: PCI\\VEN_1414&DEV_008E\\1\n";
        let windows = Fake { displays, is_windows: true, ..Fake::default() };
        assert_eq!(ids_of(&Gpus::of(&windows).unwrap()), ["sm_61", "gfx1102"]);
        let windows = Fake { capabilities: "8.9\n", hip_info: "gcnArchName: gfx1100\n", ..windows };
        let described = Gpus::of(&windows).unwrap().described("native");
        assert_eq!(described, "native is sm_89 (nvidia-smi), gfx1100 (hipInfo)");
        let displays = "X: PCI\\VEN_1002&DEV_FFFF&REV_CF\\6\n";
        let error = Gpus::of(&Fake { displays, is_windows: true, ..Fake::default() }).unwrap_err();
        let expected =
            "the processor of the GPU 1002:ffff (PCI\\VEN_1002&DEV_FFFF&REV_CF\\6) is not known";
        assert_eq!(error.to_string(), expected);
        assert_eq!(NoGpu::Windows.to_string(), "no GPU detected");
    }

    #[test]
    fn versions_come_with_the_gpus_of_their_vendor() {
        let files = [
            ("sys/class/kfd/kfd/topology/nodes/1/properties", "gfx_target_version 90010\n"),
            ("opt/rocm/.info/version", "6.3.0-39\n"),
            ("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX  550.54.14\n"),
        ];
        let machine = Fake { files: &files, ..Fake::default() };
        let rocm = (Software::Rocm, Version::new(6, 3), "/opt/rocm/.info/version".to_owned());
        assert_eq!(Gpus::of(&machine).unwrap().installed(&machine), [rocm]);
        assert_eq!(version_of(&machine, Software::Driver).0, Some(Version::new(550, 54)));
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

    /// The GPUs that are left of some, and what is said.
    fn applied(ids: &[&str], variables: &[(&str, &str)]) -> (Vec<String>, String) {
        let gpu = |id: &&str| Gpu { id: (*id).to_owned(), source: String::new() };
        let mut gpus = Gpus { all: ids.iter().map(gpu).collect(), notes: Vec::new() };
        gpus.apply(&Fake { variables, ..Fake::default() });
        (ids_of(&gpus).into_iter().map(str::to_owned).collect(), gpus.notes.join("; "))
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
        // CUDA orders unlike NVIDIA GPUs by speed.
        let (ids, notes) = applied(&all, &[("CUDA_VISIBLE_DEVICES", "0")]);
        assert_eq!((ids.len(), notes.contains("is not applied")), (4, true));
        let ordered = [("CUDA_VISIBLE_DEVICES", "1"), ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")];
        assert_eq!(left(&ordered), ["sm_90", "gfx1103", "gfx906"]);
        assert_eq!(applied(&["sm_90", "sm_90"], &[("CUDA_VISIBLE_DEVICES", "1")]).0, ["sm_90"]);
        let unknown = [("CUDA_VISIBLE_DEVICES", "GPU-8932f937")];
        assert_eq!(applied(&["sm_90"], &unknown).0, ["sm_90"]);
    }

    #[test]
    fn processors_are_named() {
        for (version, name) in [
            (80_003, "gfx803"),
            (90_000, "gfx900"),
            (90_010, "gfx90a"),
            (90_012, "gfx90c"),
            (90_402, "gfx942"),
            (90_500, "gfx950"),
            (100_306, "gfx1036"),
            (110_000, "gfx1100"),
            (110_501, "gfx1151"),
            (120_001, "gfx1201"),
        ] {
            let node = format!("simd_count 64\ngfx_target_version {version}\ncapability 0\n");
            assert_eq!(kfd_processor(&node).as_deref(), Some(name));
        }
    }

    #[test]
    fn first_silicon_of_gfx1250_has_a_name_of_its_own() {
        let node = |capability: u64| {
            let text = format!(
                "capability2 4194304\ncapability {capability}\ngfx_target_version 120500\n"
            );
            kfd_processor(&text)
        };
        assert_eq!(node(0x28_0000).as_deref(), Some("gfx1250-strict"));
        assert_eq!(node(1 << 22).as_deref(), Some("gfx1250"));
        assert_eq!(kfd_processor("gfx_target_version 120500").as_deref(), Some("gfx1250"));
    }

    #[test]
    fn nodes_without_a_gpu_have_no_processor() {
        for text in ["", "gfx_target_version 0", "gfx_target_version x", "gfx_target_version"] {
            assert_eq!(kfd_processor(text), None);
        }
    }
}
