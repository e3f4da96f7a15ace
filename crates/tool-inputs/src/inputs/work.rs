//! Work on a file and its kernel packs, or on the members of the package that it is.

use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use device_select::SplitLibrary;
use gpu_packages::{Finding, FindingKind, Member, MemberPath};

use super::file::{Input, Origin};
use crate::image_files::ImageSource;
use crate::limits::Limits;
use crate::merged::{ImageVariant, Merged};
use crate::package::{self, Fault, Package};
use tool_kit::budget::{Account, Budget};
use tool_kit::directory::Held;
use tool_kit::parallel::{self, Threads};
use tool_kit::remote::Remote;
use tool_kit::store::{Keep, Store};
use tool_kit::{input, real, report};

/// The bounds of a look.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) limits: &'a Limits,
    pub(super) budget: &'a Budget,
    pub(super) keep: Keep<'a>,
    pub(super) verifies: bool,
    pub(super) merges: bool,
    /// The images that are looked into.
    pub(super) merged: Option<Within<'a>>,
    /// The reason why the images of an archive are not known, which is one of its findings.
    pub(super) fault: Option<&'a str>,
    /// The variants that are installed in images.
    pub(super) variants: &'a Mutex<Vec<ImageVariant>>,
}

/// The images that a file belongs to.
#[derive(Clone, Copy)]
pub(super) struct Within<'a> {
    merged: &'a Merged,
    /// The name of the archive or the layout.
    name: &'a str,
    /// The file of a layout.
    file: Option<&'a str>,
}

/// The result of the work on a file, or, with the member, on a member of a package; or what keeps it from being done.
pub(super) type Looking<R> = Result<(Option<Input>, R), Missed>;

/// A file that was not looked into.
pub(super) struct Missed {
    /// The name of the file or member.
    pub(super) name: String,
    /// The reason.
    pub(super) reason: String,
    /// `true` for a container image by itself: the answers about others in the same file are complete.
    pub(super) is_apart: bool,
}

impl From<(String, String)> for Missed {
    fn from((name, reason): (String, String)) -> Self {
        Missed { name, reason, is_apart: false }
    }
}

impl Missed {
    /// Returns a finding about container images. `name` is the name of the file at fault.
    fn of_images(name: String, finding: &Finding) -> Self {
        let is_apart = finding.kind == FindingKind::Unread;
        Missed { name, reason: finding.error.to_string(), is_apart }
    }
}

/// The result of the work on a member; `None` if it asked for bytes that were not kept.
type Worked<R> = Option<Looking<R>>;

/// The work on the members of a package.
struct Members {
    /// The number of all of them.
    count: usize,
    /// The number of results.
    taken: usize,
    /// `false` if it ended at a member because more of its bytes must be kept.
    is_done: bool,
}

/// A function that takes results one by one, in order.
pub(super) type Take<'t, R> = dyn FnMut(Looking<R>) -> io::Result<()> + 't;

impl Input {
    /// Does something with the file, or with each member of a package that may hold device code. Returns the number of all
    /// members of a package.
    pub(super) fn results<R: Send>(
        &self,
        scope: &Scope<'_>,
        threads: Threads,
        work: &(impl Fn(&Input, Threads) -> R + Sync),
        take: &mut Take<'_, R>,
    ) -> io::Result<Option<usize>> {
        if let Origin::Layout(held) = &self.origin {
            return self.results_of_layout(held, scope, threads, work, take);
        }
        let file = self.opened(scope.limits.max_input);
        let members = self.results_of(&file, scope, threads, work, take);
        if let (Some(server), Some(Ok(opened))) = (self.server(), &file.opened) {
            server.end(opened);
            if opened.remote().is_some_and(Remote::is_partial) {
                self.partial.set();
            }
        }
        members
    }

    /// Does the same with the files of a layout of container images.
    fn results_of_layout<R: Send>(
        &self,
        held: &Held,
        scope: &Scope<'_>,
        threads: Threads,
        work: &(impl Fn(&Input, Threads) -> R + Sync),
        take: &mut Take<'_, R>,
    ) -> io::Result<Option<usize>> {
        let source = match ImageSource::layout(held.clone()) {
            Ok(source) => source,
            Err(error) => {
                take(Err((self.name.clone(), report::reason(&error)).into()))?;
                return Ok(None);
            }
        };
        let ImageSource::Layout(layout) = &source else { return Ok(None) };
        let merged = match self.merged(&source, scope, threads) {
            Ok(merged) => merged,
            Err(error) => {
                take(Err((self.name.clone(), report::reason(&error)).into()))?;
                if !scope.verifies {
                    return Ok(None);
                }
                None
            }
        };
        for finding in merged.iter().flat_map(|it| &it.findings) {
            let name = format!("{}/{}", self.name, finding.path.to_string_lossy());
            take(Err(Missed::of_images(name, finding)))?;
        }
        let mut files: Vec<&str> = layout.names().collect();
        // Members of layers are judged together: they come one after the other.
        files.sort_by_key(|name| !merged.as_ref().is_some_and(|merged| merged.is_layer(name)));
        let look = |name: &&str| {
            let merged = merged.as_ref();
            let merged =
                merged.map(|merged| Within { merged, name: &self.name, file: Some(*name) });
            let scope = Scope { merges: false, merged, ..*scope };
            let (root, partial) = (self.root, self.partial.clone());
            let file = Input { root, partial, ..Input::found_in(held, Path::new(name)) };
            let mut results = Vec::new();
            let mut collect = |result| {
                results.push(result);
                Ok(())
            };
            let members = file.results(&scope, Threads::one(), work, &mut collect)?;
            Ok((members, results))
        };
        let mut count = 0;
        parallel::in_order(threads.count(), &files, look, |_, found: io::Result<_>| {
            let (members, results) = found?;
            count += members.unwrap_or(0);
            results.into_iter().try_for_each(&mut *take)
        })?;
        Ok(Some(count))
    }

    /// Merges the layers of container images; `None` if there are no images.
    fn merged(
        &self,
        source: &ImageSource,
        scope: &Scope<'_>,
        threads: Threads,
    ) -> io::Result<Option<Merged>> {
        let read = Merged::read((&self.name, source), scope.limits, threads, scope.verifies);
        let mut merged = read?;
        if let Some(merged) = &mut merged {
            let mut all = scope.variants.lock().unwrap_or_else(PoisonError::into_inner);
            all.append(&mut merged.variants);
        }
        for note in merged.iter().flat_map(|it| &it.notes) {
            report::note_about(&self.name, note);
        }
        Ok(merged)
    }

    /// Does the same with the file, which is open.
    fn results_of<R: Send>(
        &self,
        file: &Input,
        scope: &Scope<'_>,
        threads: Threads,
        work: &(impl Fn(&Input, Threads) -> R + Sync),
        take: &mut Take<'_, R>,
    ) -> io::Result<Option<usize>> {
        let limits = scope.limits;
        let whole = match file.as_package(limits.max_input) {
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                take(Err((self.name.clone(), report::reason(&error)).into()))?;
                return Ok(None);
            }
            whole => whole,
        };
        let behind = match &whole {
            Ok(None) => file.open(limits.max_input).and_then(|opened| Package::behind(&opened)),
            _ => Ok(None),
        };
        if let (Some(Ok(_)), (Err(error), _) | (_, Err(error))) = (&file.opened, (&whole, &behind))
            && !matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::Unsupported)
        {
            // It is not known what the file is.
            take(Err((self.name.clone(), report::reason(error)).into()))?;
            return Ok(None);
        }
        let package = match (whole, behind) {
            (Ok(Some(package)), _) => package,
            (_, Ok(Some(package))) => {
                // The members alone are looked into as such.
                if let Some(place) = package.program().filter(|_| !self.is_member()) {
                    let store = Store::within(Arc::clone(&package.opened), place);
                    let store = Some((Arc::new(store), u64::MAX));
                    let (installed, on_disk) = (self.path.clone(), self.path.clone());
                    let (unread, package) = (0, None);
                    let (places, images) = Default::default();
                    let origin = Origin::Member {
                        on_disk,
                        installed,
                        store,
                        unread,
                        package,
                        places,
                        images,
                    };
                    let program = Input { is_named: false, origin, ..file.clone() };
                    program.alone(limits, threads, work, take)?;
                }
                if let Some(trailing) = package.trailing().filter(|_| !scope.verifies) {
                    let name = input::display(&self.path);
                    report::note_about(&name, &format!("{trailing} bytes follow its zip file"));
                }
                package
            }
            (Ok(None), Err(error))
                if !self.is_member()
                    && matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::Unsupported) =>
            {
                // The program is a file like others; a script is not.
                let opened = file.open(limits.max_input)?;
                self.partial.set();
                if !package::is_script(&opened) {
                    file.alone(limits, threads, work, take)?;
                }
                let reason = format!("zip file: {}", report::reason(&error));
                take(Err((self.name.clone(), reason).into()))?;
                return Ok(None);
            }
            // The work itself complains of files that cannot be read.
            _ if !self.is_member() => {
                file.alone(limits, threads, work, take)?;
                return Ok(None);
            }
            (Ok(None), Ok(None)) => {
                take(Err((input::display(&self.path), "not a package".to_owned()).into()))?;
                return Ok(None);
            }
            (Err(error), _) | (_, Err(error)) => {
                take(Err((input::display(&self.path), report::reason(&error)).into()))?;
                return Ok(None);
            }
        };
        let (mut file, mut package) = (file.clone(), package);
        let (mut merged, mut fault) = (None, None);
        if scope.merges && !self.is_member() {
            let source = match ImageSource::archive(&package.opened, limits) {
                Ok(source) => source,
                Err(error) => {
                    take(Err((self.name.clone(), report::reason(&error)).into()))?;
                    return Ok(None);
                }
            };
            if let Some(ImageSource::Archive(archive)) = &source {
                // Its members are found in the copy without the compression.
                file = file.held(Ok(Arc::clone(&archive.plain)));
                package = match Package::of(&archive.plain) {
                    Ok(plain) => plain.unwrap_or(package),
                    Err(error) => {
                        take(Err((self.name.clone(), report::reason(&error)).into()))?;
                        return Ok(None);
                    }
                };
            }
            if let Some(source) = &source {
                match self.merged(source, scope, threads) {
                    Ok(found) => merged = found,
                    Err(error) if scope.verifies => fault = Some(report::reason(&error)),
                    Err(error) => {
                        take(Err((self.name.clone(), report::reason(&error)).into()))?;
                        return Ok(None);
                    }
                }
            }
        }
        if let Some(merged) = merged.as_ref().filter(|_| !scope.verifies) {
            for finding in &merged.findings {
                let name = format!("{}:{}", self.name, finding.path.to_string_lossy());
                take(Err(Missed::of_images(name, finding)))?;
            }
        }
        let merged = merged.as_ref().map(|merged| Within { merged, name: &self.name, file: None });
        let fault = fault.as_deref();
        let scope = &Scope { merged: merged.or(scope.merged), fault, ..*scope };
        let mut members = file.members(&package, scope, threads, work, (0, take))?;
        if !members.is_done {
            let all = Scope { keep: Keep::All, ..*scope };
            members = file.members(&package, &all, threads, work, (members.taken, take))?;
        }
        if !members.is_done {
            take(Err((self.name.clone(), "bytes of a member were not kept".to_owned()).into()))?;
        } else if self.is_member() && members.taken == 0 {
            let reason = "no such member with device code".to_owned();
            take(Err((self.name.clone(), reason).into()))?;
        }
        Ok(Some(members.count))
    }

    /// Does something with the file, and with its kernel packs.
    fn alone<R: Send>(
        &self,
        limits: &Limits,
        threads: Threads,
        work: &(impl Fn(&Input, Threads) -> R + Sync),
        take: &mut Take<'_, R>,
    ) -> io::Result<()> {
        if let Err(error) = self.read_online_host() {
            return take(Err((self.name.clone(), report::reason(&error)).into()));
        }
        let result = work(self, threads);
        let packs = self.packs();
        take(Ok((Some(Input { opened: None, ..self.clone() }), result)))?;
        match packs {
            Ok(packs) => packs.into_iter().try_for_each(|pack| {
                let pack = pack.opened(limits.max_input);
                let result = work(&pack, threads);
                take(Ok((Some(Input { opened: None, ..pack }), result)))
            }),
            Err(error) => take(Err((self.name.clone(), error).into())),
        }
    }

    /// Returns the existing kernel packs with the device code of a split library that are not themselves inputs.
    fn packs(&self) -> Result<Vec<Input>, String> {
        // Packs of members are members.
        // Nor is a server, or a program, asked for files that nobody named.
        let is_alone = !self.is_in_package() && !self.is_off_disk();
        let host = self.split_host().filter(|_| is_alone);
        let Some(host) = host else { return Ok(Vec::new()) };
        let name = host.marker().kernel_name();
        let is_input = |path: &PathBuf| {
            let own = self.root().and_then(|root| root.real.as_ref());
            own.is_some_and(|own| real::path(path).is_ok_and(|path| path.starts_with(own)))
        };
        let packs = host.packs()?.into_iter().filter(|path| !is_input(path)).map(|path| Input {
            name: format!("{} -> {}", self.name, input::display(&path)),
            path,
            root: self.root,
            origin: Origin::PackOf(name.to_owned()),
            ..Input::found(Path::new(""))
        });
        Ok(packs.collect())
    }

    /// Does something with each member. The first results are left out: they were taken before.
    fn members<R: Send>(
        &self,
        package: &Package,
        scope: &Scope<'_>,
        threads: Threads,
        work: &(impl Fn(&Input, Threads) -> R + Sync),
        (before, take): (usize, &mut Take<'_, R>),
    ) -> io::Result<Members> {
        let &Scope { limits, budget, keep, .. } = scope;
        let verifies = scope.verifies && !self.is_member();
        let name_of_package = scope.merged.map_or(&*self.name, |it| it.name);
        let look = |member: &Member, contents: &mut dyn io::Read, held: &mut Account<'_>| {
            let path = member.path().to_string_lossy();
            let Some(is_named) = self.means(&path) else { return Ok(None) };
            let places = scope.merged.map(|it| it.merged.places(it.file, member));
            let Some(places) = places.unwrap_or(Some(Vec::new())) else { return Ok(None) };
            // No container has the files of a layer that no image names, as an older image leaves it in a layout.
            let of_image = |it: &Within<'_>| !it.merged.is_beside(it.file, member);
            if places.is_empty() && scope.merged.as_ref().is_some_and(of_image) && !scope.verifies {
                return Ok(None);
            }
            let name = format!("{}:{path}", input::display(&self.path));
            let (store, unread) =
                match package::store((&package.opened, member), contents, keep, held) {
                    Ok(None) => return Ok(None),
                    Ok(Some(found)) => found,
                    Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                        return Ok(Some(Some(Err((name, error.to_string()).into()))));
                    }
                    Err(error) => return Err(error),
                };
            let installed = String::from_utf8_lossy(member.path().installed());
            let installed = places.first().map_or(Path::new(&*installed), |place| &place.path);
            // In a directory a compressed file is one like others.
            let is_file = package.is_compressed() && !self.is_named;
            let images = match &scope.merged {
                Some(within) => Arc::clone(&within.merged.names),
                None => Arc::from([]),
            };
            let origin = Origin::Member {
                on_disk: self.path.clone(),
                installed: installed.to_owned(),
                store: Some((Arc::new(store), held.left())),
                unread,
                package: Some(name_of_package.to_owned()).filter(|_| !is_named && !is_file),
                places,
                images,
            };
            let (path, root, opened) = (PathBuf::from(path), self.root, self.opened.clone());
            let (host, form, partial) = (OnceLock::new(), None, self.partial.clone());
            let mut input =
                Input { path, name, root, is_named, origin, opened, form, host, partial };
            if let Err(error) = input.read_online_host() {
                return Ok(Some(Some(Err((input.name.clone(), report::reason(&error)).into()))));
            }
            let result = work(&input, Threads::one());
            let _ = input.host.set(input.split_library());
            if let Some(store) = input.take_bytes() {
                if store.was_too_small() {
                    return Ok(Some(None));
                }
                Arc::into_inner(store).map_or(Ok(()), |store| store.reuse(held))?;
            }
            Ok(Some(Some(Ok((Some(input), result)))))
        };
        let mut taken = 0;
        let mut ended = Ok(true);
        let mut hand = |result: Result<Worked<R>, Fault>| {
            let result = match result {
                Ok(None) => {
                    ended = Ok(false);
                    return ControlFlow::Break(());
                }
                Ok(Some(result)) => result,
                // Work on the package as a whole reports its faults.
                Err(_) if verifies => return ControlFlow::Continue(()),
                Err(fault) if !self.is_concerned(&fault.path.to_string_lossy()) => {
                    return ControlFlow::Continue(());
                }
                Err(fault) => Err(self.fault(&fault).into()),
            };
            taken += 1;
            if taken > before
                && let Err(error) = take(result)
            {
                ended = Err(error);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let (limits, count) = ((limits, budget), threads.count());
        let is_meant = |path: &str| !self.is_member() || self.is_concerned(path);
        let found = if verifies {
            let mut results = Vec::new();
            let mut collect = |result| {
                results.push(result);
                ControlFlow::Continue(())
            };
            let mut found = package.each(limits, true, count, &look, (&is_meant, &mut collect));
            // The result of the comparison comes first.
            let whole = found.verified.take().map(|mut verified| {
                // An archive has the findings of its images.
                let archive = scope.merged.filter(|it| it.file.is_none());
                if let (Ok(verified), Some(archive)) = (&mut verified, archive) {
                    let known = verified.findings.iter().map(|one| one.path.clone());
                    let known: Vec<_> = known.collect();
                    for Finding { path, kind, error, .. } in &archive.merged.findings {
                        if !known.contains(path) {
                            let text = error.to_string();
                            verified.findings.push(Finding::new(path.clone(), *kind, text));
                        }
                    }
                }
                if let (Ok(verified), Some(fault)) = (&mut verified, scope.fault) {
                    let (path, kind) = (MemberPath::default(), FindingKind::Unread);
                    verified.findings.push(Finding::new(path, kind, fault.to_owned()));
                }
                let verified = Arc::new(verified.map_err(io::Error::from));
                let origin = Origin::WholePackage(verified, archive.is_some());
                let whole = Input { origin, is_named: false, ..self.clone() };
                let result = work(&whole, threads);
                Ok(Some(Ok((Some(Input { opened: None, ..whole }), result))))
            });
            let _ = whole.into_iter().chain(results).try_for_each(hand);
            found
        } else {
            package.each(limits, false, count, &look, (&is_meant, &mut hand))
        };
        Ok(Members { count: found.members, taken, is_done: ended? })
    }

    /// Returns whether a member is one that is meant, and `true` if it is the only one.
    fn means(&self, path: &str) -> Option<bool> {
        let Some(wanted) = self.member() else { return Some(false) };
        let rest = path.strip_prefix(wanted.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with(['/', ':'])).then_some(rest.is_empty())
    }

    /// Returns whether the fault of a member, or of a package in the package, keeps a member from being read that is meant.
    fn is_concerned(&self, path: &str) -> bool {
        let has_it = |wanted: &str| {
            let rest = wanted.strip_prefix(path);
            rest.is_some_and(|rest| path.is_empty() || rest.starts_with(['/', ':']))
        };
        self.means(path).is_some() || self.member().is_some_and(has_it)
    }

    /// Returns the name of a package or member that is at fault, and the reason.
    fn fault(&self, Fault { path, error }: &Fault) -> (String, String) {
        let mut name = input::display(&self.path);
        if !path.is_empty() {
            name = format!("{name}:{}", path.to_string_lossy());
        }
        (name, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_argument_means_a_member_and_all_below_it() {
        let place = tempfile::tempdir().unwrap();
        let package = place.path().join("a.whl");
        fs::write(&package, "").unwrap();
        let file =
            |end: &str| Input::of_argument(0, Path::new(&format!("{}{end}", package.display())));
        let all = file("");
        assert_eq!(
            (all.is_member(), all.means("x"), all.is_concerned("x")),
            (false, Some(false), true)
        );
        let lib = file(":lib/");
        assert_eq!((lib.path(), lib.is_member()), (&*package, true));
        let meant = ["lib", "lib/x.so", "lib:x", "library", "x"].map(|path| lib.means(path));
        assert_eq!(meant, [Some(true), Some(false), Some(false), None, None]);
        let inner = file(":b.tar:x.so");
        let concerned =
            ["", "b.tar", "b.tar:x.so", "b", "b.tar:y.so"].map(|path| inner.is_concerned(path));
        assert_eq!(concerned, [true, true, true, false, false]);
        let none = Input::of_argument(0, &place.path().join("none:x"));
        assert!(!none.is_member());
    }
}
