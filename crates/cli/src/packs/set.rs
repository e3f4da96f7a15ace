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

/// The ends of the names of packages. A colon stands in the names of kernel packs, too.
const PACKAGES: [&str; 9] =
    [".whl", ".zip", ".tar", ".deb", ".rpm", ".conda", ".gz", ".xz", ".zst"];

/// Returns the path of the member of a package where it is installed: of wheels below site-packages. A package in a package is
/// installed like any other.
pub(crate) fn installed(member: &Path) -> PathBuf {
    let text = member.to_string_lossy();
    let is_package = |&(at, _): &(usize, &str)| {
        text.get(..at).is_some_and(|before| PACKAGES.iter().any(|end| before.ends_with(end)))
    };
    let inner = text.match_indices(':').rfind(is_package);
    let inner = inner.and_then(|(at, colon)| text.get(at + colon.len()..));
    let inner = inner.map_or(member, Path::new);
    let is_data = |part: &Component<'_>| part.as_os_str().to_string_lossy().ends_with(".data");
    let is_site = |part: &Component<'_>| {
        matches!(part.as_os_str().to_str(), Some("purelib" | "platlib" | "data"))
    };
    let mut parts = inner.components();
    match (parts.next(), parts.next()) {
        (Some(data), Some(site)) if is_data(&data) && is_site(&site) => parts.collect(),
        _ => inner.to_owned(),
    }
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
        let packs = self.packs.iter().map(|(path, pack)| (path.clone(), &*pack.toc)).collect();
        for Library { name, host, .. } in self.hosts.iter().filter(|one| !one.is_on_disk) {
            match host.lacks(&host.found_in(&packs)) {
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
        assert_eq!(path("w/core.whl:torch/a.so"), Path::new("torch/a.so"));
        assert_eq!(path("a.tar:b.whl:b-1.data/purelib/b.so"), Path::new("b.so"));
        assert_eq!(path("k/x_gfx90a:xnack+.kpack"), Path::new("k/x_gfx90a:xnack+.kpack"));
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
