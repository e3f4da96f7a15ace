//! Target IDs, triples, entry IDs.

use bundle_format::{CompositionFinding, EntryId, composition};
use target_id::{
    IntelGpu, OffloadKind, Options, Processor, Target, TargetId, Triple, compatible,
    compatible_with_options, conflicts, provides,
};

use crate::assert_message;

/// Targets compared with each other in one run; the comparison is quadratic.
const MOST: usize = 6;

/// Checks lines that are targets: kind, triple and target ID between single spaces, `?` for an open field.
pub fn check_targets(text: &str) {
    let targets: Vec<Target> = text.lines().take(MOST).map(target).collect();
    for target in &targets {
        check_target_id(target);
        if let Some(triple) = target.triple() {
            check_triple(triple);
        }
        assert!(compatible(target, target).is_strict());
        let twice = [target.clone(), target.clone()];
        assert!(conflicts(&twice).iter().all(|conflict| conflict.feature.is_none()));
        assert_eq!(conflicts(&twice).len(), 1);
    }
    for a in &targets {
        for b in &targets {
            check_pair(a, b);
        }
    }
    check_conflicts(&targets);
}

fn target(line: &str) -> Target {
    let mut parts = line.splitn(3, ' ');
    let mut part = || parts.next().unwrap_or_default();
    let (kind, triple, id) = (part(), part(), part());
    let kind = (kind != "?").then(|| OffloadKind::parse(kind));
    let triple = (triple != "?").then(|| Triple::parse(triple));
    Target::new(kind, triple, id)
}

/// Checks the names of processors: each names a processor that has this name.
fn check_names(target: &Target) {
    if let Some(gpu) = IntelGpu::find(target.id()) {
        assert_eq!(IntelGpu::find(gpu.name()), Some(gpu));
        assert_eq!(
            gpu.ip_version().map(IntelGpu::from_ip_version),
            gpu.ip_version().map(|_| Some(gpu))
        );
        assert!(gpu.is_generic() || gpu.runs_on(gpu));
    }
    if let Some(processor) = Processor::from_architecture(target.id()) {
        assert_eq!(Processor::amdgpu(processor.name()), Some(processor));
    }
    if let Some(isa) = Target::from_isa_name(target.id()) {
        assert!(target.id().ends_with(isa.id()) && isa.triple().is_some_and(Triple::is_amdgpu));
    }
}

fn check_target_id(target: &Target) {
    check_names(target);
    let again = |text: &str| match target.triple() {
        Some(triple) => TargetId::parse_for(triple, text),
        None => TargetId::parse(text),
    };
    match target.target_id() {
        Ok(id) => {
            let canonical = id.to_string();
            assert_eq!(again(&canonical).as_ref(), Ok(&id));
            let canonical =
                Target::new(target.kind().cloned(), target.triple().cloned(), &canonical);
            assert!(compatible(target, &canonical).is_strict());
            assert!(compatible(&canonical, target).is_strict());
            assert!(id.features().zip(id.features().skip(1)).all(|(a, b)| a.0 < b.0));
        }
        Err(error) => assert_message(&error),
    }
    if let Ok(id) = TargetId::parse_v3(target.id())
        && id.processor_info().is_some()
    {
        assert_eq!(TargetId::parse(&id.to_string()), Ok(id));
    }
}

fn check_triple(triple: &Triple) {
    assert!(triple.compatible_with(triple));
    let normal = |text: &str| Triple::parse(text).normalized().to_string();
    assert!(normal(triple.as_str()).split('-').count() >= 4);
    check_form(triple.as_str(), normal, stays(triple, &triple.normalized()));
    let bundle_form = |text: &str| Triple::parse(text).bundle_form();
    check_form(triple.as_str(), bundle_form, stays_in_bundle(triple));
}

/// Returns whether all fields of a triple are in their places in one of its forms.
fn stays(triple: &Triple, form: &Triple) -> bool {
    [
        (triple.arch(), form.arch()),
        (triple.vendor(), form.vendor()),
        (triple.os(), form.os()),
        (triple.environment(), form.environment()),
    ]
    .iter()
    .all(|(field, form)| field.is_empty() || field == form)
}

fn stays_in_bundle(triple: &Triple) -> bool {
    stays(triple, &Triple::parse(&triple.bundle_form()))
}

/// Checks that the form of a form is that form. Where fields are moved or dropped, LLVM's triples and bundler need some
/// rounds, and so do ours: `aspirv--windows` becomes `unknown-unknown-windows-spirv`, and that
/// `spirv-unknown-windows-msvc`.
fn check_form(text: &str, form: impl Fn(&str) -> String, at_once: bool) {
    let rounds = if at_once { 0 } else { 3 };
    let settled = (0..rounds).fold(form(text), |text, _| form(&text));
    assert_eq!(form(&settled), settled, "of {text:?}");
}

fn check_pair(a: &Target, b: &Target) {
    if let (Some(a), Some(b)) = (a.triple(), b.triple()) {
        assert_eq!(a.compatible_with(b), b.compatible_with(a));
    }
    let verdict = compatible(a, b);
    assert!(!verdict.is_strict() || verdict.is_compatible());
    assert_message(&verdict);
    let more = compatible_with_options(a, b, Options::default().with_hip_openmp(true));
    assert!(!verdict.is_compatible() || more.is_compatible());
    let strict = Options::default().with_strict_sub_architectures(true);
    let fewer = compatible_with_options(a, b, strict);
    assert!(!fewer.is_compatible() || verdict.is_compatible());
    let (there, back) = (provides(a, b), provides(b, a));
    assert!(!there.is_equivalent() || there.is_provided());
    assert_eq!(there.is_equivalent(), back.is_equivalent());
    assert_message(&there);
}

fn check_conflicts(targets: &[Target]) {
    let found = conflicts(targets);
    for conflict in &found {
        assert!(conflict.first < conflict.second && conflict.second < targets.len());
    }
    assert!(found.iter().zip(found.iter().skip(1)).all(|(a, b)| a.second < b.second));
    assert_eq!(found.is_empty(), conflicts(targets.iter().rev()).is_empty());
}

/// Checks lines that are the entry IDs of a bundle.
pub fn check_entry_ids(text: &str) {
    let ids: Vec<&str> = text.lines().collect();
    for text in ids.iter().take(MOST) {
        match EntryId::parse(text) {
            Ok(id) => check_entry_id(text, &id),
            Err(error) => assert_message(&error),
        }
    }
    let findings = composition(ids.iter().copied());
    assert!(findings.is_sorted_by_key(CompositionFinding::index));
    assert!(findings.iter().all(|finding| finding.index() < ids.len()));
    findings.iter().take(MOST).for_each(assert_message);
    if let Some(&id) = ids.first() {
        let twice = composition([id, id]);
        assert!(twice.iter().any(|finding| {
            (finding.first(), finding.index(), finding.feature()) == (Some(0), 1, None)
        }));
    }
}

fn check_entry_id(text: &str, id: &EntryId<'_>) {
    assert_eq!(id.as_str(), text);
    assert!(text.starts_with(id.kind().as_str()));
    assert!(text.contains(id.triple()) && text.contains(id.target_id()));
    assert_eq!(id.is_host(), id.kind() == OffloadKind::Host);

    let standard = id.standardized();
    let again = EntryId::parse(&standard).expect("the standard form is an ID");
    let triple = Triple::parse(id.triple());
    if stays_in_bundle(&triple) {
        assert!(!again.is_three_field());
        assert_eq!((again.kind(), again.target_id()), (id.kind(), id.target_id()), "of {text:?}");
    }
    let standardized = |text: &str| EntryId::parse(text).expect("forms are IDs").standardized();
    let canonical = |text: &str| EntryId::parse(text).expect("forms are IDs").canonical();
    check_form(text, standardized, stays_in_bundle(&triple));
    check_form(text, canonical, stays_in_bundle(&triple));
}
