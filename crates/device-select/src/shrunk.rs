//! The outcome of removing the code for other GPUs from many files, in words.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::rule::Rule;
use crate::tally::{CodeKind, CodeSizes, Tally, sum};
use crate::vendor::Vendor;
use crate::wanted::Wanted;

/// The most names of files that are remembered for a [reason](Stay).
const MOST_NAMES: usize = 3;

/// Outcome of removing the code for other GPUs from many files.
///
/// ```
/// use device_select::{Rule, Shrunk, Tally, Wanted};
///
/// let file = std::fs::File::open("../../examples/data/hip.o")?;
/// let listing = fat_object::list(file, &fat_object::Options::default())?;
/// let rule = Rule::keep([Wanted::parse("gfx1100")?]);
/// let mut shrunk = Shrunk::new(&rule);
/// let tally = Tally::of(&rule, listing.images(), |_| true);
/// shrunk.add(&tally);
/// shrunk.count_changed(&tally);
/// shrunk.add_file(26_896);
/// shrunk.resize(26_896, 14_608);
/// let lines = shrunk.lines(false);
/// assert_eq!(lines[0], "26 KiB -> 14 KiB: 12 KiB of code for other GPUs removed from 1 file");
/// assert_eq!(lines[1], "kept: 3.1 KiB for gfx1100 (machine code)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Shrunk {
    gpus: String,
    /// The GPUs of NVIDIA among them.
    nvidia: String,
    drops_ptx: bool,
    /// Bytes of all files before.
    size: u64,
    /// Bytes that changed files lost, and that others gained.
    less: u64,
    more: u64,
    holes: u64,
    changed: usize,
    /// Files among them that had nothing for the GPUs.
    emptied: usize,
    /// Further names of files (hard links) that get files of their own.
    split: usize,
    deleted: usize,
    packages: usize,
    tally: Tally,
    stuck: BTreeMap<String, Stay>,
    left: Stay,
}

/// Code that stays although no GPU that is asked for needs it, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stay {
    /// The reason.
    pub reason: String,
    /// Bytes of the code; 0 if they are not known.
    pub bytes: u64,
    /// The number of files.
    pub files: usize,
    /// The names of the first files, or of places with several.
    pub names: Vec<String>,
    /// `true` if there are more names.
    pub has_more: bool,
}

impl Stay {
    fn add(&mut self, bytes: u64, files: usize, file: &str) {
        self.bytes = sum(self.bytes, bytes);
        self.files += files;
        if self.names.len() < MOST_NAMES {
            self.names.push(file.to_owned());
        } else {
            self.has_more = true;
        }
    }
}

impl Shrunk {
    /// Returns the outcome for no files yet, of this rule.
    #[must_use]
    pub fn new(rule: &Rule) -> Self {
        let names = |is_wanted: &dyn Fn(&Wanted) -> bool| {
            let gpus = rule.wanted().iter().filter(|wanted| is_wanted(wanted));
            gpus.map(Wanted::text).collect::<Vec<_>>().join(", ")
        };
        let is_nvidia = |wanted: &Wanted| {
            wanted.device().is_some_and(|device| device.vendor() == Vendor::Nvidia)
        };
        Shrunk {
            gpus: names(&|_| true),
            nvidia: names(&is_nvidia),
            drops_ptx: matches!(rule, Rule::Keep { drop_ptx: true, .. }),
            size: 0,
            less: 0,
            more: 0,
            holes: 0,
            changed: 0,
            emptied: 0,
            split: 0,
            deleted: 0,
            packages: 0,
            tally: Tally::default(),
            stuck: BTreeMap::new(),
            left: Stay::default(),
        }
    }

    /// Adds the sums of a file that was looked into.
    pub fn add(&mut self, tally: &Tally) {
        self.tally += *tally;
    }

    /// Adds a file of this many bytes, before it changes.
    pub fn add_file(&mut self, size: u64) {
        self.size = sum(self.size, size);
    }

    /// Adds a change of the size of a file.
    pub fn resize(&mut self, before: u64, after: u64) {
        match before.checked_sub(after) {
            Some(less) => self.less = sum(self.less, less),
            // A bundle that is compressed again may grow.
            None => self.more = sum(self.more, after - before),
        }
    }

    /// Counts a file, or a member of a package, that lost code, with its sums.
    pub fn count_changed(&mut self, tally: &Tally) {
        let Tally { kept, kept_anyway, unserved, .. } = tally;
        self.changed += 1;
        self.emptied += usize::from((*kept + *kept_anyway).total() + unserved == 0);
    }

    /// Counts a further name of a file (hard link) that gets a file of its own: a [`resize`](Self::resize) from 0 bytes.
    pub fn count_split(&mut self) {
        self.split += 1;
    }

    /// Counts a file, or a member of a package, that is deleted.
    pub fn count_deleted(&mut self) {
        self.deleted += 1;
    }

    /// Adds bytes of changed files that are holes, or can be.
    pub fn add_holes(&mut self, bytes: u64) {
        self.holes = sum(self.holes, bytes);
    }

    /// Sets the number of packages that changed files belong to.
    pub fn set_packages(&mut self, packages: usize) {
        self.packages = packages;
    }

    /// Adds code that stays because it cannot be removed: bytes, if they are known, of a file. Words of the reason with numbers are left
    /// out, because files differ in these, and so is an option of other commands at its end.
    pub fn stay(&mut self, reason: &str, bytes: u64, file: &str) {
        let advised = reason.rsplit_once(" (").filter(|(_, advice)| advice.contains("--"));
        let reason = advised.map_or(reason, |(reason, _)| reason);
        let has_number = |word: &str| word.contains(|one: char| one.is_ascii_digit());
        let mut words: Vec<&str> = Vec::new();
        for word in reason.split(' ') {
            match word {
                word if !has_number(word) => words.push(word),
                _ if words.last() == Some(&"...") => {}
                _ => words.push("..."),
            }
        }
        let reason = words.join(" ");
        let stay =
            self.stuck.entry(reason.clone()).or_insert_with(|| Stay { reason, ..Stay::default() });
        stay.add(bytes, 1, file);
    }

    /// Adds a file that has nothing for the GPUs, and so is left alone; or this many that lie together, by the name of the place.
    pub fn leave(&mut self, tally: &Tally, files: usize, name: &str) {
        self.left.add(tally.stuck.total(), files, name);
    }

    /// Returns whether some code is for the GPUs. Refused files that were not looked into do not count.
    #[must_use]
    pub fn has_code(&self) -> bool {
        let Tally { kept, unserved, .. } = &self.tally;
        kept.total() > 0 || *unserved > 0
    }

    /// Returns whether something was to be removed.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.changed + self.deleted > 0
    }

    /// Returns the bytes of all files before and after.
    #[must_use]
    pub fn sizes(&self) -> [u64; 2] {
        // A file that changed meanwhile may have lost more than it had.
        let after = sum(self.size, self.more).checked_sub(self.less);
        [self.size, after.unwrap_or(0)]
    }

    /// Returns the sums of all files that were looked into.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns what is said of an environment that has nothing for the GPUs.
    #[must_use]
    pub fn nothing(&self) -> String {
        let Shrunk { gpus, left, .. } = self;
        let refused: Vec<&Stay> = self.stuck.values().filter(|one| one.bytes == 0).collect();
        let files: usize = refused.iter().map(|one| one.files).sum();
        let unknown = match refused[..] {
            [] => String::new(),
            [Stay { reason, .. }] => {
                format!(" was found; {} could not be edited ({reason})", count(files, "file"))
            }
            _ => format!(" was found; {} could not be edited", count(files, "file")),
        };
        let others = match left.files {
            0 => String::new(),
            1 => "; 1 file has code for others".to_owned(),
            n => format!("; {} files have code for others", grouped(n as u64)),
        };
        format!("no code for {gpus}{unknown}{others}: nothing is removed")
    }

    /// Returns the reasons for which code stays that no GPU needs, those with the most bytes first; the last is that a file has
    /// nothing for the GPUs.
    #[must_use]
    pub fn reasons(&self) -> Vec<Stay> {
        let mut all: Vec<Stay> = self.stuck.values().cloned().collect();
        all.sort_by_key(|one| (Reverse(one.bytes), Reverse(one.files)));
        if self.left.files > 0 {
            let reason = format!("nothing in the file is for {}", self.gpus);
            all.push(Stay { reason, ..self.left.clone() });
        }
        all
    }

    /// Returns the lines that say what was removed, or would be, what is kept, and what becomes of later GPUs.
    #[must_use]
    pub fn lines(&self, is_plan: bool) -> Vec<String> {
        let mut lines = [self.removed(is_plan), self.kept()].to_vec();
        lines.extend(self.later());
        lines
    }

    fn removed(&self, is_plan: bool) -> String {
        let [before, after] = self.sizes();
        let unit = Unit::of(before);
        if !self.is_changed() {
            return format!("nothing to remove from {}", unit.with_name(before));
        }
        let removed = match before.checked_sub(after) {
            Some(less @ 1..) => format!("{} of ", Unit::of(less).with_name(less)),
            _ => String::new(),
        };
        let more = after.checked_sub(before).filter(|&more| more > 0);
        let more = more.map(|more| Unit::of(more).with_name(more));
        let are = if is_plan { "would be removed" } else { "removed" };
        let holes = match (self.holes, is_plan) {
            (0, _) => String::new(),
            (holes, true) => format!(" ({} of it can be holes)", unit.with_name(holes)),
            (holes, false) => format!(" ({} of it holes)", unit.with_name(holes)),
        };
        let [before, after] = [before, after].map(|size| unit.with_name(size));
        let mut text = format!("{before} -> {after}{holes}: {removed}code for other GPUs {are}");
        if self.changed > 0 {
            text += &format!(" from {}", count(self.changed, "file"));
        }
        if self.packages > 0 {
            text += &format!(" of {}", count(self.packages, "package"));
        }
        if self.emptied > 0 {
            text += &format!(" ({} of the files had nothing for {})", self.emptied, self.gpus);
        }
        if self.deleted > 0 {
            text += &format!("; {} deleted", count(self.deleted, "file"));
        }
        if let Some(more) = more {
            let would = if is_plan { "would " } else { "" };
            text += &format!("; the files {would}take {more} more");
            if self.split > 0 {
                text += ", because names of one file (hard links) become files of their own";
            }
        }
        text
    }

    fn kept(&self) -> String {
        let Tally { kept, kept_anyway, .. } = &self.tally;
        let unit = Unit::of(kept.total());
        let mut text = format!("kept: {} for {}", unit.with_name(kept.total()), self.gpus);
        let kinds = kinds(kept, unit);
        if !kinds.is_empty() {
            text += &format!(" ({kinds})");
        }
        let anyway = kept_anyway.total();
        if anyway > 0 {
            text +=
                &format!(", {} for CPUs or unknown targets", Unit::of(anyway).with_name(anyway));
        }
        let mut why = Vec::new();
        let bytes = self.stuck.values().map(|one| one.bytes).fold(0, sum);
        let unknown: usize =
            self.stuck.values().filter(|one| one.bytes == 0).map(|one| one.files).sum();
        if bytes > 0 {
            why.push(format!("{} could not be removed", Unit::of(bytes).with_name(bytes)));
        }
        if unknown > 0 {
            why.push(format!("{} could not be edited", count(unknown, "file")));
        }
        let Stay { bytes, files, .. } = self.left;
        if files > 0 {
            let has = if files == 1 { "has" } else { "have" };
            let of = Unit::of(bytes).with_name(bytes);
            why.push(format!("{} with {of} {has} nothing for it", count(files, "file")));
        }
        if !why.is_empty() {
            text += &format!("; {} (--why)", why.join(", "));
        }
        text
    }

    /// Returns the line about GPUs that compile PTX.
    fn later(&self) -> Option<String> {
        let Shrunk { nvidia: gpus, tally, .. } = self;
        let Tally { kept, kept_anyway, stuck, droppable_ptx, unserved, .. } = *tally;
        if gpus.is_empty() {
            return None;
        }
        let size = |bytes| Unit::of(bytes).with_name(bytes);
        let others = sum(kept_anyway.ptx, stuck.ptx);
        let mut text = match (kept.ptx, others) {
            (0, 0) => "no PTX stays".to_owned(),
            (0, _) => format!("no PTX for {gpus} stays, only {} of other PTX", size(others)),
            _ if self.drops_ptx => {
                format!("{} of PTX stays, which --drop-ptx leaves", size(kept.ptx))
            }
            _ => format!("PTX stays for kernels that have no machine code for {gpus}"),
        };
        if unserved > 0 {
            let had = format!("{} had no machine code for {gpus} beside it", size(unserved));
            text += &format!("; {had}, and kernels there no longer run");
        } else if !self.drops_ptx && droppable_ptx > 0 {
            let part = size(droppable_ptx);
            text += &format!("; --drop-ptx removes {part} of it, and these kernels no longer run");
        } else if (kept.ptx, others) == (0, 0) {
            text += &format!(": GPUs newer than {gpus} will not run these files");
        }
        Some(text)
    }
}

/// Returns the sizes of kinds in words: `494 machine code, 204 PTX`; without numbers if there is one kind.
fn kinds(sizes: &CodeSizes, unit: Unit) -> String {
    let CodeSizes { machine_code, ptx, lto_ir, other } = *sizes;
    let all = [
        (machine_code, CodeKind::MachineCode),
        (ptx, CodeKind::Ptx),
        (lto_ir, CodeKind::LtoIr),
        (other, CodeKind::Other),
    ];
    let all = all.into_iter().filter(|(bytes, _)| *bytes > 0);
    let all: Vec<_> = all.map(|(bytes, kind)| (bytes, kind.as_str())).collect();
    match &all[..] {
        [(_, name)] => (*name).to_owned(),
        all => {
            let all: Vec<_> =
                all.iter().map(|(bytes, name)| format!("{} {name}", unit.number(*bytes))).collect();
            all.join(", ")
        }
    }
}

fn count(n: usize, noun: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {noun}{s}", grouped(n as u64))
}

/// Returns a number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A unit of sizes: its number of bits, and its name.
#[derive(Clone, Copy)]
struct Unit(u32, &'static str);

impl Unit {
    /// Returns the largest unit in which a size is 1 or more; GiB would hide what a file is.
    fn of(bytes: u64) -> Self {
        let units = [Unit(20, "MiB"), Unit(10, "KiB")];
        units.into_iter().find(|Unit(bits, _)| bytes >> bits > 0).unwrap_or(Unit(0, "B"))
    }

    /// Returns a rounded number, with a digit after the point if it is below 10.
    fn number(self, bytes: u64) -> String {
        let Unit(bits, _) = self;
        let half = (1_u128 << bits) >> 1;
        let tenths = (u128::from(bytes) * 10 + half) >> bits;
        match (bytes >> bits) + u64::from(u128::from(bytes) & half > 0) {
            number if bits == 0 || tenths >= 100 => grouped(number),
            _ if tenths == 0 && bytes > 0 => "<0.1".to_owned(),
            _ if tenths.is_multiple_of(10) => (tenths / 10).to_string(),
            _ => format!("{}.{}", tenths / 10, tenths % 10),
        }
    }

    fn with_name(self, bytes: u64) -> String {
        format!("{} {}", self.number(bytes), self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Tally {
        let kept = CodeSizes { machine_code: 1, ..CodeSizes::default() };
        Tally { kept, ..Tally::default() }
    }

    fn shrunk(gpu: &str) -> Shrunk {
        Shrunk::new(&Rule::keep([Wanted::parse(gpu).unwrap()]))
    }

    #[test]
    fn sizes_have_one_unit() {
        assert_eq!(Unit::of(9_340 << 20).with_name(9_340 << 20), "9,340 MiB");
        assert_eq!(Unit::of(12 << 20).number(1), "<0.1");
        assert_eq!(Unit::of(12 << 20).number(0), "0");
        assert_eq!(Unit::of(10 << 10).with_name((10 << 10) + 512), "11 KiB");
        assert_eq!(Unit::of(5644 << 10).with_name(5644 << 10), "5.5 MiB");
        assert_eq!(Unit::of(1023).with_name(1023), "1,023 B");
        assert_eq!(grouped(15_970), "15,970");
        assert_eq!(Unit::of(u64::MAX).with_name(u64::MAX), "17,592,186,044,416 MiB");
    }

    #[test]
    fn three_lines_say_what_happened() {
        let mut all = shrunk("sm_90");
        assert!(!all.has_code() && !all.is_changed());
        assert_eq!(all.nothing(), "no code for sm_90: nothing is removed");
        let kept =
            CodeSizes { machine_code: 494 << 20, ptx: 204 << 20, lto_ir: 111 << 20, other: 0 };
        let tally = Tally { kept, droppable_ptx: 200 << 20, ..Tally::default() };
        all.add(&tally);
        all.add_file(5_620 << 20);
        assert_eq!(all.lines(false)[0], "nothing to remove from 5,620 MiB");
        for (before, after) in [(300, 100), (300, 50), (20, 0)] {
            all.resize(before << 20, after << 20);
        }
        all.count_changed(&tally);
        all.count_changed(&Tally::default());
        all.count_deleted();
        all.set_packages(2);
        all.stay("a section at 0x12 is full (--grow)", 10 << 20, "a.so");
        all.stay("a section at 0x1e is full (--grow)", 2 << 20, "b.so");
        all.stay("is signed", 0, "c.so");
        all.leave(&Tally { stuck: tally.kept, ..Tally::default() }, 1, "rocm.so");
        assert_eq!(
            all.lines(false),
            [
                "5,620 MiB -> 5,150 MiB: 470 MiB of code for other GPUs removed from 2 files of 2 packages (1 of the files had nothing for sm_90); 1 file deleted",
                "kept: 809 MiB for sm_90 (494 machine code, 204 PTX, 111 LTO-IR); 12 MiB could not be removed, 1 file could not be edited, 1 file with 809 MiB has nothing for it (--why)",
                "PTX stays for kernels that have no machine code for sm_90; --drop-ptx removes 200 MiB of it, and these kernels no longer run",
            ]
        );
        assert!(
            all.lines(true)[0].contains("470 MiB of code for other GPUs would be removed from")
        );
        assert_eq!(all.reasons()[0].reason, "a section at ... is full");
        let reasons: Vec<_> =
            all.reasons().into_iter().map(|one| (one.bytes >> 20, one.files, one.names)).collect();
        assert_eq!(reasons[0], (12, 2, ["a.so", "b.so"].map(str::to_owned).to_vec()));
        assert_eq!((reasons.len(), reasons[1].1, reasons[2].0), (3, 1, 809));
    }

    #[test]
    fn a_place_with_several_files_has_one_name() {
        let mut all = shrunk("gfx1100");
        for name in ["a", "b", "c"] {
            all.leave(&Tally::default(), 7, name);
        }
        let of = |all: &Shrunk| (all.left.files, all.left.names.join(" "), all.left.has_more);
        assert_eq!(of(&all), (21, "a b c".into(), false));
        all.leave(&Tally::default(), 7, "d");
        assert_eq!(of(&all), (28, "a b c".into(), true));
    }

    #[test]
    fn growth_is_no_removal() {
        let mut all = shrunk("gfx1100");
        all.add_file(300 << 20);
        all.resize(300 << 20, 200 << 20);
        all.resize(0, 200 << 20);
        all.count_changed(&kept());
        all.count_changed(&kept());
        let line = "300 MiB -> 400 MiB: code for other GPUs removed from 2 files; the files take 100 MiB more";
        assert_eq!(all.lines(false)[0], line);
        all.count_split();
        let line = "300 MiB -> 400 MiB: code for other GPUs would be removed from 2 files; \
            the files would take 100 MiB more, because names of one file (hard links) become files of their own";
        assert_eq!(all.lines(true)[0], line);
    }

    #[test]
    fn the_third_line_is_about_ptx() {
        let mut all = shrunk("sm_90");
        assert_eq!(
            all.lines(false)[2],
            "no PTX stays: GPUs newer than sm_90 will not run these files"
        );
        assert_eq!(shrunk("gfx1100").lines(false).len(), 2);
        all.drops_ptx = true;
        all.add(&Tally { unserved: 20 << 20, ..Tally::default() });
        assert!(all.has_code());
        assert!(
            all.lines(false)[2]
                .starts_with("no PTX stays; 20 MiB had no machine code for sm_90 beside it, and")
        );
        // Loose PTX stays, whatever the options.
        let kept = CodeSizes { ptx: 3 << 20, ..CodeSizes::default() };
        all.add(&Tally { kept, ..Tally::default() });
        assert!(all.lines(false)[2].starts_with("3 MiB of PTX stays, which --drop-ptx leaves; 20"));
        let mut all = shrunk("sm_90");
        all.add(&Tally { kept, ..Tally::default() });
        let stays = "PTX stays for kernels that have no machine code for sm_90";
        assert_eq!(all.lines(false)[2], stays);
    }

    #[test]
    fn only_code_for_the_gpus_counts() {
        let mut all = shrunk("gfx1030");
        let kept_anyway = CodeSizes { other: 1 << 10, ..CodeSizes::default() };
        all.add(&Tally { kept_anyway, ..Tally::default() });
        all.stay("is signed", 0, "c.so");
        assert!(!all.has_code());
        assert_eq!(
            all.nothing(),
            "no code for gfx1030 was found; 1 file could not be edited (is signed): nothing is removed"
        );
        let kept = "kept: 0 B for gfx1030, 1 KiB for CPUs or unknown targets;";
        assert!(all.lines(false)[1].starts_with(kept));
    }
}
