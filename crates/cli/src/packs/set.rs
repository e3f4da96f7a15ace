//! Split libraries and kernel packs that belong together: members of packages, as they lie where these are installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use device_select::Device;
use kpack::Toc;

use super::answer::Answer;
use super::host::Host;
use crate::report;

/// The libraries and packs of a set.
#[derive(Debug, Default)]
pub(crate) struct PackSet {
    hosts: Vec<Library>,
    packs: BTreeMap<PathBuf, Pack>,
}

#[derive(Debug)]
struct Library {
    name: String,
    host: Arc<Host>,
    /// `true` if its packs may lie on the disk, where they are looked for, and not only in the set.
    is_on_disk: bool,
}

#[derive(Debug)]
struct Pack {
    name: String,
    toc: Arc<Toc>,
}

/// Returns the path of the member of a package where it is installed: of wheels below site-packages.
pub(crate) fn installed(member: &Path) -> PathBuf {
    let mut parts = member.components().peekable();
    let is_data = |part: &Component<'_>| part.as_os_str().to_string_lossy().ends_with(".data");
    let is_site = |part: &Component<'_>| {
        matches!(part.as_os_str().to_str(), Some("purelib" | "platlib" | "data"))
    };
    let mut ahead = parts.clone();
    if ahead.next().is_some_and(|part| is_data(&part))
        && ahead.next().is_some_and(|part| is_site(&part))
    {
        return ahead.collect();
    }
    std::iter::from_fn(|| parts.next()).collect()
}

impl PackSet {
    pub(crate) fn add_host(&mut self, name: &str, host: &Arc<Host>, is_on_disk: bool) {
        self.hosts.push(Library { name: name.to_owned(), host: Arc::clone(host), is_on_disk });
    }

    /// Adds a pack by the path where it is installed.
    pub(crate) fn add_pack(&mut self, path: PathBuf, name: &str, toc: &Arc<Toc>) {
        self.packs.insert(path, Pack { name: name.to_owned(), toc: Arc::clone(toc) });
    }

    /// Returns whether a library of the set has code in a pack.
    pub(crate) fn has_library_of(&self, toc: &Toc) -> bool {
        let names: BTreeSet<&str> = toc.entries().iter().map(kpack::Entry::kernel_name).collect();
        self.hosts.iter().any(|one| names.contains(one.host.marker.kernel_name()))
    }

    /// Returns the answers about the libraries that are members of packages, with their names.
    pub(crate) fn answers<'s>(
        &'s self,
        gpu: &'s Device,
    ) -> impl Iterator<Item = (&'s str, Answer)> {
        let members = self.hosts.iter().filter(|one| !one.is_on_disk);
        members.map(move |one| {
            let open = |path: &Path| Some(Ok(Arc::clone(&self.packs.get(path)?.toc)));
            (&*one.name, Answer::among(&one.host, gpu, &open))
        })
    }

    /// Returns the libraries in packages whose wrappers have code in packs of the set, with the number of these; and what is wrong
    /// with the set: code that no pack has, packs that no library is for, packs that hide others from old loaders.
    pub(crate) fn check(&self) -> (Vec<(&str, usize)>, Vec<String>) {
        let (mut sound, mut faults) = (Vec::new(), Vec::new());
        for Library { name, host, .. } in self.hosts.iter().filter(|one| !one.is_on_disk) {
            let own = |pack: &Pack| numbers_of(&pack.toc, host.marker.kernel_name());
            let known: BTreeSet<u64> = self.packs.values().flat_map(own).collect();
            match host.lacks(&known) {
                Some(text) => faults.push(format!("{name}: {text}")),
                None => sound.push((&**name, host.numbers.len())),
            }
        }
        for Pack { name, toc } in self.packs.values() {
            if toc.entries().is_empty() {
                faults.push(format!("{name}: the kernel pack is empty"));
            } else if !self.hosts.is_empty() && !self.has_library_of(toc) {
                let names: BTreeSet<&str> =
                    toc.entries().iter().map(kpack::Entry::kernel_name).collect();
                faults.push(format!(
                    "{name}: no library here is for its code: {}",
                    report::few(names)
                ));
            }
        }
        for (path, Pack { name, .. }) in &self.packs {
            let Some(plain) = plain_of(path).and_then(|plain| self.packs.get(&plain)) else {
                continue;
            };
            faults.push(format!(
                "{name}: ROCm up to 7.14.0 stops at this pack and finds nothing of {}",
                plain.name
            ));
        }
        (sound, faults)
    }
}

/// Returns the numbers of the wrappers of a library that have code in a pack.
fn numbers_of(toc: &Toc, kernel_name: &str) -> BTreeSet<u64> {
    let entries = toc.entries().iter().filter(|entry| entry.kernel_name() == kernel_name);
    entries.filter_map(kpack::Entry::index).collect()
}

/// Returns the path of the pack for a processor, if this is that of a processor with a feature: `x_gfx90a.kpack` for
/// `x_gfx90a:xnack+.kpack`. Loaders try that one first.
fn plain_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (processor, _) = name.split_once(':')?;
    let extension = path.extension()?.to_str()?;
    Some(path.with_file_name(format!("{processor}.{extension}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_installed_below_one_directory() {
        let path = |member: &str| installed(Path::new(member));
        assert_eq!(path("torch/lib/a.so"), Path::new("torch/lib/a.so"));
        assert_eq!(path("torch-2.9.data/platlib/torch/a.so"), Path::new("torch/a.so"));
        assert_eq!(path("a.data"), Path::new("a.data"));
    }

    #[test]
    fn packs_for_features_have_a_plain_one() {
        let plain = |path: &str| plain_of(Path::new(path));
        assert_eq!(
            plain("k/x_gfx90a:xnack+.kpack").as_deref(),
            Some(Path::new("k/x_gfx90a.kpack"))
        );
        assert_eq!(plain("k/x_gfx90a.kpack"), None);
    }
}
