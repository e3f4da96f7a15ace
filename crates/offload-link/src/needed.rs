//! The members of archives that something needs.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::hosts::NumberedSymbols;
use crate::input::{DeviceCode, Inputs};
use crate::runtime::{is_of_registration, is_of_runtime};
use crate::symbols::{Known, Symbols};

/// The members of archives that are linked for the devices, where the host linker does not [say](Inputs::add_member) which it loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Members {
    /// All that have code for a target, as LLVM 22 does.
    #[default]
    All,
    /// Members that the host linker takes, and members whose device code an image refers to.
    ///
    /// [`Inputs::with_symbols`] reads what this needs; without it, all members count as needed.
    Needed,
}

/// The reason why a member of an archive is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need<'i> {
    /// The host linker loaded the member, as [`Inputs::add_member`] was told.
    Loaded,
    /// The program refers to this symbol of its host code, so that the host linker takes the member.
    Host(&'i [u8]),
    /// Device code of the image refers to this symbol of its device code.
    Device(&'i [u8]),
    /// Its own symbols cannot be told.
    Symbols,
    /// The references of this input, or member, cannot be told.
    References(&'i str),
}

/// The reason, with the member as its subject.
impl fmt::Display for Need<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Loaded => f.write_str("the host linker loaded it"),
            Need::Host(name) => {
                write!(f, "the host refers to `{}`", String::from_utf8_lossy(name))
            }
            Need::Device(name) => {
                write!(f, "device code refers to `{}`", String::from_utf8_lossy(name))
            }
            Need::Symbols => f.write_str("its symbols are unknown"),
            Need::References(of) => write!(f, "the references of {of} are unknown"),
        }
    }
}

/// Names that linkers look for on their own: where programs start.
const ENTRIES: [&str; 16] = [
    "main",
    "_main",
    "_start",
    "__start",
    "_init",
    "_fini",
    "mainCRTStartup",
    "_mainCRTStartup",
    "wmainCRTStartup",
    "WinMainCRTStartup",
    "wWinMainCRTStartup",
    "wmain",
    "WinMain",
    "wWinMain",
    "DllMain",
    "_DllMainCRTStartup",
];

/// Returns the reasons why the host linker takes objects, by their numbers; none for objects that it leaves.
///
/// A linker takes the first member that defines a symbol. Here, all that define it are taken: which is the first depends on
/// the linker.
pub(crate) fn by_host<'i>(inputs: &'i Inputs<'_>, roots: &[Vec<u8>]) -> Vec<Option<Need<'i>>> {
    let hosts = &inputs.hosts().list;
    let NumberedSymbols { names, objects: symbols } = inputs.hosts().symbols();
    let mut needs: Vec<Option<Need<'i>>> = vec![None; hosts.len()];
    let mut unknown =
        hosts.iter().zip(symbols).filter(|(_, symbols)| matches!(symbols, Symbols::Unknown));
    let unknown = inputs.unread().or_else(|| unknown.next().map(|(host, _)| &*host.name));
    for (symbols, need) in symbols.iter().zip(&mut needs) {
        *need = match (symbols, unknown) {
            (Symbols::Unknown | Symbols::NoObject, _) => Some(Need::Symbols),
            (Symbols::Known(_), Some(unknown)) => Some(Need::References(unknown)),
            (Symbols::Known(_), None) => None,
        };
    }
    if unknown.is_some() {
        return needs;
    }
    let known = |number: usize| match symbols.get(number) {
        Some(Symbols::Known(known)) => Some(known),
        _ => None,
    };
    let (lazy, direct): (Vec<_>, Vec<_>) =
        (0..hosts.len()).partition(|&number| hosts.get(number).is_some_and(|host| host.is_lazy));
    let members = Definers::of(lazy.iter().filter_map(|&number| Some((number, known(number)?))));
    let mut wanted: Vec<usize> = ENTRIES
        .iter()
        .map(|name| name.as_bytes())
        .chain(roots.iter().map(Vec::as_slice))
        .filter_map(|name| names.find(name))
        .collect();
    wanted.extend(direct.iter().filter_map(|&number| known(number)).flat_map(Known::wanted));
    let is_generated = (0..hosts.len()).filter_map(known).any(Known::is_bitcode);
    wanted.extend(members.names().filter(|number| {
        let name = names.name(*number);
        is_of_registration(name) || is_generated && is_of_runtime(name)
    }));
    let mut seen: HashSet<usize> = HashSet::new();
    while let Some(symbol) = wanted.pop() {
        if !seen.insert(symbol) {
            continue;
        }
        for &number in members.of_symbol(symbol) {
            if let Some(need @ None) = needs.get_mut(number) {
                *need = Some(Need::Host(names.name(symbol)));
                wanted.extend(known(number).into_iter().flat_map(Known::wanted));
            }
        }
    }
    needs
}

/// Returns those members whose device code the code of an image needs, and the reasons.
///
/// Unlike on the host, a symbol that the image defines is needed from no other: each round takes all members that
/// define what is missing, so that the order of members does not matter. If several that a linker added one by one define a symbol, it takes the first.
pub(crate) fn by_devices<'i>(
    inputs: &'i Inputs<'_>,
    image: &[&'i DeviceCode<'i>],
    members: &[&'i DeviceCode<'i>],
) -> Vec<(&'i DeviceCode<'i>, Need<'i>)> {
    let NumberedSymbols { names, objects } = inputs.device_symbols();
    let known = |code: &DeviceCode<'_>| match objects.get(code.index()) {
        Some(Symbols::Known(known)) => Some(known),
        _ => None,
    };
    let mut all = image.iter().chain(members);
    if let Some(unknown) = all.find(|code| known(code).is_none()) {
        let name = inputs.name_of(unknown);
        let need = |member: &&'i DeviceCode<'i>| match known(member) {
            Some(_) => (*member, Need::References(name)),
            None => (*member, Need::Symbols),
        };
        return members.iter().map(need).collect();
    }
    let numbered = members.iter().enumerate();
    let definers = Definers::of(numbered.filter_map(|(number, it)| Some((number, known(it)?))));
    let mut taken: Vec<(usize, Need<'i>)> = Vec::new();
    let mut is_taken = vec![false; members.len()];
    let mut new: Vec<&DeviceCode<'_>> = image.to_vec();
    let (mut defined, mut seen) = (HashSet::new(), HashSet::new());
    while !new.is_empty() {
        let known = || new.iter().filter_map(|code| known(code));
        defined.extend(known().flat_map(Known::defined));
        let wanted: Vec<usize> = known().flat_map(Known::wanted).collect();
        new.clear();
        for symbol in wanted {
            if defined.contains(&symbol) || !seen.insert(symbol) {
                continue;
            }
            let told =
                |number: usize| members.get(number).is_some_and(|it| it.is_loaded().is_some());
            let definers = definers.of_symbol(symbol);
            let mut is_provided =
                definers.iter().any(|&number| told(number) && is_taken.get(number) == Some(&true));
            for &number in definers {
                if told(number) && std::mem::replace(&mut is_provided, true) {
                    continue;
                }
                if let Some(is_taken @ false) = is_taken.get_mut(number) {
                    *is_taken = true;
                    taken.push((number, Need::Device(names.name(symbol))));
                    new.extend(members.get(number).copied());
                }
            }
        }
    }
    taken.into_iter().filter_map(|(number, need)| Some((*members.get(number)?, need))).collect()
}

/// Objects by the symbols that they define.
struct Definers(HashMap<usize, Vec<usize>>);

impl Definers {
    fn of<'k>(objects: impl Iterator<Item = (usize, &'k Known)>) -> Self {
        let mut definers: HashMap<usize, Vec<usize>> = HashMap::new();
        for (number, known) in objects {
            for symbol in known.provided() {
                definers.entry(symbol).or_default().push(number);
            }
        }
        Definers(definers)
    }

    fn of_symbol(&self, symbol: usize) -> &[usize] {
        self.0.get(&symbol).map_or(&[][..], Vec::as_slice)
    }

    /// Returns the symbols in ascending order of their numbers.
    fn names(&self) -> impl Iterator<Item = usize> {
        let mut names: Vec<_> = self.0.keys().copied().collect();
        names.sort_unstable();
        names.into_iter()
    }
}
