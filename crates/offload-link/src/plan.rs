//! The plan: which images are linked, for which targets, from which inputs; and the code that is in none.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use offload_binary::OffloadKind;

use crate::error::{Error, ErrorKind};
use crate::input::{CopyKey, DeviceCode, Inputs};
use crate::needed::{self, Members, Need};
use crate::target::{Fit, LinkTarget};

/// Images to link, in the order of the inputs that demand them.
///
/// Objects demand an image for each target that they have code for. An image takes in the code of all inputs that
/// runs on all devices of its target, whatever the programming models: a runtime registers the whole image. Members
/// of archives demand images only for the targets of [`PlanOptions::with_should_extract`].
#[derive(Debug)]
pub struct Plan<'i> {
    groups: Vec<Group<'i>>,
    left_out: Vec<LeftOut<'i>>,
}

/// Options of a [`Plan`].
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    should_extract: Vec<String>,
    members: Members,
    roots: Vec<Vec<u8>>,
}

/// One image to link, and its inputs.
#[derive(Debug)]
pub struct Group<'i> {
    target: LinkTarget,
    kinds: Vec<OffloadKind>,
    inputs: Vec<Linked<'i>>,
    /// The members in it, each with the first input that has it, and whether others have it as well.
    members: BTreeMap<CopyKey<'i>, (usize, bool)>,
}

/// The most images of a link. Each has a target of its own: there are fewer GPUs.
const MOST_IMAGES: usize = 256;

/// An input of an image.
#[derive(Clone, Copy, Debug)]
pub struct Linked<'i> {
    code: &'i DeviceCode<'i>,
    fit: Fit,
    need: Option<Need<'i>>,
}

/// Device code that no image takes in.
#[derive(Debug)]
pub struct LeftOut<'i> {
    code: &'i DeviceCode<'i>,
    reason: Reason,
}

/// The reason why no image takes in some device code.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// No object has code for the target of the archive's member.
    NoImage,
    /// The code needs target features that the image for its processor does not promise.
    Features(LinkTarget),
    /// The same member was taken before: its archive is named twice.
    Duplicate,
    /// The host linker does not take the member, and no device code refers to its symbols.
    NotNeeded,
}

impl PlanOptions {
    /// Sets the processors or target IDs for which members of archives demand images.
    #[must_use]
    pub fn with_should_extract<S: Into<String>>(
        mut self,
        archs: impl IntoIterator<Item = S>,
    ) -> Self {
        self.should_extract = archs.into_iter().map(Into::into).collect();
        self
    }

    /// Sets which members of archives are linked.
    #[must_use]
    pub fn with_members(mut self, members: Members) -> Self {
        self.members = members;
        self
    }

    /// Sets symbols that the host linker is told to look for, as its options `-u` and `-e` do. [`Members::Needed`] counts
    /// them as references, with those of inputs and with `main`.
    #[must_use]
    pub fn with_roots<S: Into<Vec<u8>>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.roots = names.into_iter().map(Into::into).collect();
        self
    }
}

impl<'i> Plan<'i> {
    /// Plans the images of inputs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Kinds`] where SYCL code meets code of another kind, [`ErrorKind::Architecture`] for targets without
    /// a device linker, [`ErrorKind::Targets`] for too many targets.
    pub fn new(inputs: &'i Inputs<'i>, options: &PlanOptions) -> Result<Self, Error> {
        let (lazy, direct): (Vec<_>, Vec<_>) =
            inputs.codes().iter().partition(|code| code.is_lazy());
        let mut plan = Plan { groups: demanded(&direct)?, left_out: Vec::new() };
        for code in direct {
            plan.link_object(code);
        }
        plan.link_members(inputs, lazy, options)?;
        for group in &mut plan.groups {
            group.finish()?;
        }
        Ok(plan)
    }

    /// Returns the images to link.
    #[must_use]
    pub fn groups(&self) -> &[Group<'i>] {
        &self.groups
    }

    /// Returns the code that is in no image, and why.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut<'i>] {
        &self.left_out
    }

    fn link_object(&mut self, code: &'i DeviceCode<'i>) {
        for group in &mut self.groups {
            match code.target().fits(&group.target) {
                // Code for one processor is not code for all.
                Some(Fit::Generic) if !code.target().is_generic() => {}
                Some(fit) => group.push(Linked { code, fit, need: None }),
                None => {}
            }
        }
    }

    /// Links the members that the host linker takes, then for each image the members that its code refers to.
    fn link_members(
        &mut self,
        inputs: &'i Inputs<'i>,
        lazy: Vec<&'i DeviceCode<'i>>,
        options: &PlanOptions,
    ) -> Result<(), Error> {
        // Symbols decide about members with device code, unless the host linker said what it loaded.
        let is_asked = options.members == Members::Needed
            && lazy.iter().any(|code| code.is_loaded().is_none());
        let needs = is_asked.then(|| needed::by_host(inputs, &options.roots));
        let mut rest = Vec::new();
        for code in lazy {
            let need = match (code.is_loaded(), &needs, code.host()) {
                (Some(true), ..) => Some(Need::Loaded),
                (Some(false), ..) => None,
                (None, Some(needs), Some(host)) => needs.get(host).copied().flatten(),
                (None, Some(_), None) => Some(Need::Symbols),
                (None, None, _) => {
                    self.link_member(code, None, options)?;
                    continue;
                }
            };
            match need {
                Some(_) => self.link_member(code, need, options)?,
                None => rest.push(code),
            }
        }
        if rest.is_empty() {
            return Ok(());
        }
        for group in &mut self.groups {
            let fits =
                rest.iter().copied().filter(|code| code.target().fits(&group.target).is_some());
            let fits: Vec<_> = fits.collect();
            if fits.is_empty() {
                continue;
            }
            let image: Vec<_> = group.inputs.iter().map(Linked::code).collect();
            let mut taken = needed::by_devices(inputs, &image, &fits);
            taken.sort_by_key(|(code, _)| code.index());
            for (code, need) in taken {
                group.add(code, Some(need));
            }
            group.inputs.sort_by_key(|input| (input.code.is_lazy(), input.code.index()));
        }
        let inputs = self.groups.iter().flat_map(|group| &group.inputs);
        let linked: HashSet<usize> = inputs.map(|input| input.code.index()).collect();
        for code in rest {
            if linked.contains(&code.index()) {
                continue;
            }
            let fits = self.groups.iter().any(|group| code.target().fits(&group.target).is_some());
            let extracts = options.should_extract.iter().any(|it| it == code.target().arch());
            let reason = if self.groups.iter().any(|group| group.has_copy_of(code)) {
                Some(Reason::Duplicate)
            } else {
                (fits || extracts).then_some(Reason::NotNeeded)
            };
            self.leave_out(code, reason);
        }
        self.left_out.sort_by_key(|left| left.code.index());
        Ok(())
    }

    fn link_member(
        &mut self,
        code: &'i DeviceCode<'i>,
        need: Option<Need<'i>>,
        options: &PlanOptions,
    ) -> Result<(), Error> {
        let target = code.target();
        let is_new = !self.groups.iter().any(|group| group.target == *target);
        if is_new && options.should_extract.iter().any(|arch| arch == target.arch()) {
            check_images(self.groups.len() + 1, code)?;
            self.groups.push(Group::new(target.clone()));
        }
        let (mut fits, mut is_taken) = (false, false);
        for group in &mut self.groups {
            fits |= target.fits(&group.target).is_some();
            is_taken |= group.add(code, need);
        }
        if !is_taken {
            self.leave_out(code, fits.then_some(Reason::Duplicate));
        }
        Ok(())
    }

    /// Leaves code out, for this reason or because it fits no image.
    fn leave_out(&mut self, code: &'i DeviceCode<'i>, reason: Option<Reason>) {
        let mut groups = self.groups.iter();
        let near = groups.find(|group| code.target().has_processor_of(&group.target));
        let reason = match (reason, near) {
            (Some(reason), _) => reason,
            (None, Some(group)) => Reason::Features(group.target.clone()),
            (None, None) => Reason::NoImage,
        };
        self.left_out.push(LeftOut { code, reason });
    }
}

/// Returns the images that objects demand.
///
/// Code for a plain processor is in the images for this processor with target features, if there are any: it
/// demands one of its own only without them.
fn demanded<'i>(objects: &[&'i DeviceCode<'i>]) -> Result<Vec<Group<'i>>, Error> {
    let mut targets: Vec<(usize, &LinkTarget)> = Vec::new();
    let mut sorted: Vec<_> = objects.iter().enumerate().collect();
    sorted.sort_by_key(|(_, code)| std::cmp::Reverse(code.target().features()));
    for (index, code) in sorted {
        let target = code.target();
        let is_in =
            |image: &LinkTarget| matches!(target.fits(image), Some(Fit::Same | Fit::Features));
        if !targets.iter().any(|(_, image)| is_in(image)) {
            check_images(targets.len() + 1, code)?;
            targets.push((index, target));
        }
    }
    targets.sort_by_key(|(index, _)| *index);
    Ok(targets.into_iter().map(|(_, target)| Group::new(target.clone())).collect())
}

/// Returns an error if there are too many images; the last one is for this code.
fn check_images(count: usize, code: &DeviceCode<'_>) -> Result<(), Error> {
    if count <= MOST_IMAGES {
        return Ok(());
    }
    let target = code.target();
    let text = format!("{code}: {target}: expected at most {MOST_IMAGES} targets in a link");
    Err(Error::new(ErrorKind::Targets, text))
}

impl<'i> Group<'i> {
    fn new(target: LinkTarget) -> Self {
        Group { target, kinds: Vec::new(), inputs: Vec::new(), members: BTreeMap::new() }
    }

    /// Adds a member that fits and is not there yet. Returns whether it did.
    fn add(&mut self, code: &'i DeviceCode<'i>, need: Option<Need<'i>>) -> bool {
        let Some(fit) = code.target().fits(&self.target) else { return false };
        let is_new = !self.has_copy_of(code);
        if is_new {
            self.push(Linked { code, fit, need });
        }
        is_new
    }

    fn push(&mut self, linked: Linked<'i>) {
        self.inputs.push(linked);
        if let Some(key) = linked.code.copy_key() {
            let input = linked.code.input();
            let (first, has_others) = self.members.entry(key).or_insert((input, false));
            *has_others |= *first != input;
        }
    }

    /// Returns whether another input has the same member, which is linked.
    fn has_copy_of(&self, code: &DeviceCode<'_>) -> bool {
        let known = code.copy_key().and_then(|key| self.members.get(&key));
        known.is_some_and(|(first, has_others)| *has_others || *first != code.input())
    }

    /// Derives the kinds from the inputs.
    fn finish(&mut self) -> Result<(), Error> {
        self.kinds = self.inputs.iter().map(|input| input.code.offload_kind()).collect();
        self.kinds.sort_unstable();
        self.kinds.dedup();
        if self.kinds.contains(&OffloadKind::SYCL) && self.kinds.len() > 1 {
            let text = "Linking images of SYCL offload kind with images of any other kind is not supported";
            return Err(Error::new(ErrorKind::Kinds, format!("{text}: {}", self.target)));
        }
        if !self.target.is_linkable() {
            let mut text = format!("{} linking is not supported", self.target.architecture());
            if let Some(first) = self.inputs.first() {
                text = format!("{text}: {}", first.code);
            }
            return Err(Error::new(ErrorKind::Architecture, text));
        }
        Ok(())
    }

    /// Returns the target.
    #[must_use]
    pub fn target(&self) -> &LinkTarget {
        &self.target
    }

    /// Returns the programming models whose runtimes register the image, in ascending order of their numbers.
    #[must_use]
    pub fn kinds(&self) -> &[OffloadKind] {
        &self.kinds
    }

    /// Returns the code to link, objects before members of archives.
    #[must_use]
    pub fn inputs(&self) -> &[Linked<'i>] {
        &self.inputs
    }
}

impl<'i> Linked<'i> {
    /// Returns the code.
    #[must_use]
    pub fn code(&self) -> &'i DeviceCode<'i> {
        self.code
    }

    /// Returns how the code fits the target of the image.
    #[must_use]
    pub fn fit(&self) -> Fit {
        self.fit
    }

    /// Returns the reason why a member of an archive is linked, with [`Members::Needed`] or where the host linker said it. `None`
    /// for objects.
    #[must_use]
    pub fn need(&self) -> Option<Need<'i>> {
        self.need
    }
}

impl<'i> LeftOut<'i> {
    /// Returns the code.
    #[must_use]
    pub fn code(&self) -> &'i DeviceCode<'i> {
        self.code
    }

    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &Reason {
        &self.reason
    }
}

/// The reason, with the code as its subject.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoImage => f.write_str("no object has code for this target"),
            Reason::Features(image) => {
                write!(f, "needs other target features than the image for {image} has")
            }
            Reason::Duplicate => f.write_str("the same member was taken before"),
            Reason::NotNeeded => f.write_str("nothing refers to its symbols"),
        }
    }
}
