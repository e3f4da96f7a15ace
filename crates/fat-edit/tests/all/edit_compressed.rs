//! Edits of compressed bundles, and bundles compressed and decompressed.

use std::io::{self, Cursor};

use crate::editing::*;
use bundle_format::text::Leader;
use byte_parts::Part;
use ccob::{Header, Method, Version, WriteOptions};
use fat_edit::{
    Change, CompressOptions, Edit, EditOptions, EditPlan, EditableFile, Error, ErrorKind, survey,
    survey_closed,
};
use fat_object::{FileFormat, Options};
use object_edit::Input;
use samples::bundle::{GFX90A, GFX1100, HOST, bundle};
use samples::damage::judge_at;
use samples::elf::{Elf, elf, progbits};
use samples::linked::{Linked, Style};

/// A HIP fat binary whose code is not the same for two seeds.
fn plain(seed: u32, size: u32) -> Vec<u8> {
    let code = code(seed, size);
    bundle(&[(HOST, b""), (GFX90A, &code), (GFX1100, &code)], 4096)
}

fn ccob(bundle: &[u8], version: Version, method: Method) -> Vec<u8> {
    ccob::compress(bundle, &WriteOptions::default().with_version(version).with_method(method))
        .unwrap()
}

/// The survey of a file that is not looked into.
fn outside(file: &[u8]) -> Result<EditableFile, Error> {
    survey_closed(&mut Cursor::new(file), &Options::default())
}

fn compressing(options: CompressOptions) -> Edit {
    let mut edit = Edit::default();
    edit.compress(options);
    edit
}

fn compress_with(file: &[u8], options: &CompressOptions) -> (Vec<u8>, EditPlan) {
    let (plan, out) =
        run(&outside(file).unwrap(), file, &[], &compressing(options.clone())).unwrap();
    check(&plan);
    (out, plan)
}

fn compress(file: &[u8]) -> (Vec<u8>, EditPlan) {
    compress_with(file, &CompressOptions::default())
}

fn try_decompress(file: &[u8]) -> Result<(Vec<u8>, EditPlan), Error> {
    let mut edit = Edit::default();
    edit.decompress();
    let contents = outside(file)?;
    let plan = contents.plan(&mut Cursor::new(file), &edit)?;
    let mut out = Vec::new();
    plan.write(&mut Cursor::new(file), &mut out)?;
    check(&plan);
    Ok((out, plan))
}

fn decompress(file: &[u8]) -> (Vec<u8>, EditPlan) {
    try_decompress(file).unwrap()
}

fn decompress_error(file: &[u8]) -> Error {
    try_decompress(file).map(drop).unwrap_err()
}

/// Checks the properties of every plan that compresses or decompresses.
fn check(plan: &EditPlan) {
    for change in plan.containers() {
        match change.change {
            Change::Kept => assert_eq!(change.size_before, change.size_after),
            Change::Compressed => assert!(change.size_before > change.size_after),
            _ => {}
        }
        assert_eq!(change.uncompressed_before, change.uncompressed_after);
    }
}

fn changes(plan: &EditPlan) -> Vec<Change> {
    plan.containers().iter().map(|container| container.change).collect()
}

#[test]
fn decompressing_restores_one_bundle() {
    let plain = plain(1, 10_000);
    let (compressed, plan) = compress(&plain);
    assert_eq!(changes(&plan), [Change::Compressed]);
    assert_eq!(plan.containers()[0].uncompressed_before, plain.len() as u64);
    assert!(compressed.starts_with(b"CCOB\x03\0"));
    assert!(compressed.len() < plain.len());
    let (back, plan) = decompress(&compressed);
    assert_eq!(changes(&plan), [Change::Decompressed]);
    assert!(back == plain);
    let parts: Vec<_> = plan.parts().iter().collect();
    assert_eq!(parts, [Part::Input(&Input::Derived(0), 0..plain.len() as u64)]);
}

#[test]
fn decompressing_restores_every_version_and_method() {
    let plain = paged(&[plain(1, 10_000), plain(2, 5000)]);
    for version in [Version::V1, Version::V2, Version::V3] {
        for method in [Method::ZLIB, Method::ZSTD] {
            let write = WriteOptions::default().with_version(version).with_method(method);
            let options = CompressOptions::default().with_write(write);
            let (compressed, plan) = compress_with(&plain, &options);
            assert_eq!(changes(&plan), [Change::Compressed; 2]);
            // Never version 1, which does not tell its size.
            let header = Header::parse(&compressed, compressed.len() as u64).unwrap();
            assert_eq!(header.version().number(), version.number().max(2));
            assert_eq!(header.method(), method);
            assert!(decompress(&compressed).0 == plain, "{version} {method}");
        }
    }
}

#[test]
fn decompressing_restores_bundles_at_pages_byte_for_byte() {
    let one = plain(3, 4096 * 2);
    let mut extra = paged(&[plain(1, 9000), plain(2, 1)]);
    // Pages of zeros before a bundle, and zeros after the last.
    extra.resize(extra.len().next_multiple_of(4096) + 3 * 4096, 0);
    extra.extend(&one);
    extra.resize(extra.len() + 77, 0);
    // A bundle that ends at a page.
    let full = paged(&[one.clone(), one.clone(), plain(5, 100)]);
    for plain in [paged(&[plain(1, 9000), plain(2, 1), plain(3, 5)]), extra, full] {
        let (compressed, _) = compress(&plain);
        assert!(compressed.len() < plain.len());
        assert!(decompress(&compressed).0 == plain);
    }
}

#[test]
fn bundles_off_pages_keep_the_zeros_before_them() {
    let mut file = plain(1, 3000);
    file.extend([0; 24]);
    file.extend(plain(2, 3000));
    let (compressed, plan) = compress(&file);
    let sizes: Vec<u64> = plan.containers().iter().map(|c| c.size_after).collect();
    assert_eq!(compressed.len() as u64, sizes[0] + 24 + sizes[1]);
    assert!(decompress(&compressed).0 == file);
}

#[test]
fn mixed_files_change_only_where_they_must() {
    let (one, two, three) = (plain(1, 9000), plain(2, 5000), plain(3, 200));
    let mixed = paged(&[
        ccob(&one, Version::V2, Method::ZLIB),
        two.clone(),
        ccob(&three, Version::V3, Method::ZSTD),
    ]);
    let all = paged(&[one.clone(), two.clone(), three.clone()]);

    let (compressed, plan) = compress(&mixed);
    assert_eq!(changes(&plan), [Change::Kept, Change::Compressed, Change::Kept]);
    assert_eq!(plan.containers()[0].uncompressed_after, one.len() as u64);
    assert!(decompress(&compressed).0 == all);

    let (back, plan) = decompress(&mixed);
    assert_eq!(changes(&plan), [Change::Decompressed, Change::Kept, Change::Decompressed]);
    assert!(back == all);

    let options = CompressOptions::default().with_recompress(true);
    let (again, plan) = compress_with(&mixed, &options);
    assert_eq!(changes(&plan), [Change::Recompressed, Change::Compressed, Change::Recompressed]);
    assert!(again == compress(&all).0);
}

#[test]
fn an_edit_without_effect_is_unchanged() {
    let plain = paged(&[plain(1, 9000), plain(2, 5000)]);
    assert!(decompress(&plain).1.is_unchanged());
    let (compressed, _) = compress(&plain);
    assert!(compress(&compressed).1.is_unchanged());
    for nothing in [&[][..], &[0; 5000]] {
        let error = decompress_error(nothing);
        assert!(error.kind() == ErrorKind::NoDeviceCode, "{error}");
    }
}

#[test]
fn incompressible_bundles_stay() {
    let incompressible: Vec<u8> = {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..3000).map(|_| next()).collect()
    };
    let file = bundle(&[(GFX90A, &incompressible)], 1);
    let (same, plan) = compress(&file);
    assert!(same == file && plan.is_unchanged());
    assert_eq!(changes(&plan), [Change::Kept]);
}

#[test]
fn threads_make_no_difference() {
    let file = paged(&(1..9).map(|seed| plain(seed, 20_000 * seed)).collect::<Vec<_>>());
    let with = |threads| {
        let write = WriteOptions::default().with_threads(threads);
        compress_with(&file, &CompressOptions::default().with_write(write)).0
    };
    let one = with(1);
    assert!(with(2) == one && with(3) == one && with(20) == one);
    assert!(decompress(&one).0 == file);
}

#[test]
fn version_1_containers_are_kept_and_decompressed() {
    let (one, two) = (plain(1, 90_000), plain(2, 5000));
    let old = paged(&[
        ccob(&one, Version::V1, Method::ZSTD),
        ccob(&two, Version::V1, Method::ZLIB),
        one.clone(),
    ]);
    let (compressed, plan) = compress(&old);
    assert_eq!(changes(&plan), [Change::Kept, Change::Kept, Change::Compressed]);
    assert!(decompress(&compressed).0 == paged(&[one.clone(), two, one]));
}

#[test]
fn a_file_with_a_text_bundle_holds_nothing_else() {
    let text = bundle_format::text::to_vec(
        Leader::Hash,
        &[(HOST, &code(1, 500)[..]), ("hip-amdgcn-amd-amdhsa--gfx906", b"nop\n")],
    )
    .unwrap();
    let (compressed, plan) = compress(&text);
    assert_eq!(changes(&plan), [Change::Compressed]);
    assert!(decompress(&compressed).0 == text);
    assert!(decompress(&text).1.is_unchanged());

    let text_ccob = ccob(&text, Version::V3, Method::ZSTD);
    for input in [
        [text_ccob.clone(), text_ccob.clone()].concat(),
        [plain(1, 100), text_ccob.clone()].concat(),
        [text_ccob.clone(), plain(1, 100)].concat(),
    ] {
        let error = decompress_error(&input);
        assert!(error.kind() == ErrorKind::Damaged, "{error}");
    }
}

#[test]
fn contents_other_than_a_bundle_are_named() {
    let nested = ccob(&ccob(&plain(1, 1), Version::V3, Method::ZSTD), Version::V3, Method::ZLIB);
    let error = decompress_error(&nested);
    let expected = format!("expected a bundle inside, found {}", FileFormat::CompressedBundle);
    assert!(error.to_string().ends_with(&expected), "{error}");
}

#[test]
fn damage_is_reported_where_it_is() {
    let mut input = paged(&[
        ccob(&plain(1, 900), Version::V3, Method::ZSTD),
        ccob(&plain(2, 900), Version::V3, Method::ZSTD),
    ]);
    input[4096 + 24] ^= 1; // the hash of the second
    let error = decompress_error(&input);
    let kind = error.damage().and_then(fat_object::Error::ccob).map(ccob::Error::kind);
    assert_eq!(kind, Some(ccob::ErrorKind::Hash), "{error}");
    let message = error.to_string();
    assert!(message.starts_with("at byte 0x1000: compressed bundle hash"), "{message}");
    // Compressing does not touch it.
    assert!(compress(&input).1.is_unchanged());
}

#[test]
fn limits_are_enforced() {
    let plain = plain(1, 9000);
    let file = ccob(&plain, Version::V3, Method::ZSTD);
    let walk = Options::default().with_max_decompressed(plain.len() as u64 - 1);
    let contents = survey_closed(&mut Cursor::new(&file), &walk).unwrap();
    let mut edit = Edit::default();
    edit.decompress();
    let error = contents.plan(&mut Cursor::new(&file), &edit).unwrap_err();
    let kind = error.damage().and_then(fat_object::Error::ccob).map(ccob::Error::kind);
    assert_eq!(kind, Some(ccob::ErrorKind::Limit), "{error}");
}

#[test]
fn images_are_removed_from_compressed_bundles() {
    for version in [Version::V1, Version::V2, Version::V3] {
        for method in [Method::ZLIB, Method::ZSTD] {
            let whole = plain(3, 50_000);
            let file = paged(&[ccob(&whole, version, method), whole.clone()]);
            let out = remove(&file, &[GFX90A]).unwrap();
            let thin = bundle(&[(HOST, b""), (GFX1100, &code(3, 50_000))], 4096);
            let version = if version == Version::V1 { Version::V2 } else { version };
            assert_eq!(out, paged(&[ccob(&thin, version, method), thin]));
        }
    }
}

#[test]
fn one_edit_may_also_compress_or_decompress() {
    let whole = plain(3, 50_000);
    let thin = bundle(&[(HOST, b""), (GFX1100, &code(3, 50_000))], 4096);
    let file = paged(&[ccob(&whole, Version::V2, Method::ZSTD), whole]);
    let edit = |change: fn(&mut Edit)| {
        let edit = |contents: &EditableFile, edit: &mut Edit| {
            let images = contents.images().iter().filter(|image| image.id() == Some(GFX90A));
            images.for_each(|image| edit.remove(image.index()));
            change(edit);
        };
        plan_with(&file, EditOptions::default(), &[], edit).unwrap().1
    };
    assert_eq!(edit(Edit::decompress), paged(&[thin.clone(), thin.clone()]));
    let v2 = ccob(&thin, Version::V2, Method::ZSTD);
    let v3 = ccob(&thin, Version::V3, Method::ZSTD);
    assert_eq!(edit(|edit| edit.compress(CompressOptions::default())), paged(&[v2, v3.clone()]));
    let recompress = |edit: &mut Edit| {
        edit.compress(CompressOptions::default().with_recompress(true));
    };
    assert_eq!(edit(recompress), paged(&[v3.clone(), v3]));
}

#[test]
fn compressed_text_is_edited() {
    let entries: [(&str, &[u8]); 3] =
        [(HOST, b"host\n"), ("hip-amdgcn-amd-amdhsa--gfx906", b"x\n"), (GFX90A, b"y\n")];
    let text = bundle_format::text::to_vec(Leader::Hash, &entries).unwrap();
    let thin = bundle_format::text::to_vec(Leader::Hash, &entries[..2]).unwrap();
    let file = ccob(&text, Version::V3, Method::ZSTD);
    assert_eq!(remove(&file, &[GFX90A]).unwrap(), ccob(&thin, Version::V3, Method::ZSTD));
    assert_eq!(remove(&text, &[GFX90A]).unwrap(), thin);
}

#[test]
fn compressed_bundles_in_compressed_bundles_are_edited() {
    let inner = ccob(&plain(3, 5000), Version::V2, Method::ZLIB);
    let file = ccob(&inner, Version::V3, Method::ZSTD);
    let out = remove(&file, &[GFX90A]).unwrap();
    let thin = bundle(&[(HOST, b""), (GFX1100, &code(3, 5000))], 4096);
    assert_eq!(out, ccob(&ccob(&thin, Version::V2, Method::ZLIB), Version::V3, Method::ZSTD));
}

#[test]
fn damaged_bundles_cause_no_panic() {
    let sample = paged(&[
        ccob(&plain(1, 100), Version::V1, Method::ZLIB),
        plain(2, 10),
        ccob(&plain(3, 100), Version::V3, Method::ZSTD),
    ]);
    // All except padding, and some of that.
    let places = (0..sample.len()).filter(|&i| sample[i] != 0 || i % 512 == 0);
    judge_at(&sample, places, oracles::edits::check);
}

/// Files of all kinds with this compressed bundle in them, and what kind it is.
fn hosts(stored: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let neighbours = [ccob(&plain(7, 500), Version::V2, Method::ZSTD), plain(8, 20_000)];
    let [before, after] = neighbours;
    let object = Elf {
        sections: vec![progbits(".hip_fatbin", stored), progbits(".data", b"DATA!")],
        ..elf(true, false)
    };
    let archive = |member: &[u8]| {
        let mut archive = b"!<arch>\n".to_vec();
        for member in [&before[..], member, &after[..]] {
            let size = member.len();
            archive.extend(
                format!("{:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", "m/", 0, 0, 0, 644).bytes(),
            );
            archive.extend(member);
            archive.resize(archive.len().next_multiple_of(2), b'\n');
        }
        archive
    };
    let linked = Linked::new(Style::Third, vec![before.clone(), stored.to_vec(), after.clone()]);
    vec![
        ("alone", stored.to_vec()),
        ("first", paged(&[stored.to_vec(), after.clone()])),
        ("last", paged(&[before.clone(), stored.to_vec()])),
        ("object", object.build()),
        ("member", archive(stored)),
        ("object in an archive", archive(&object.build())),
        ("linked", linked.build()),
        ("in another", ccob(stored, Version::V3, Method::ZSTD)),
    ]
}

/// Compressed bundles whose headers say that they hold nothing, sound otherwise or not.
fn claims_of_nothing() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for method in [Method::ZLIB, Method::ZSTD] {
        for version in [Version::V1, Version::V2, Version::V3] {
            let mut stored = ccob(&plain(3, 5000), version, method);
            let size = match version {
                Version::V1 => 8..12,
                Version::V2 => 12..16,
                _ => 16..24,
            };
            stored[size].fill(0);
            let mut garbage = stored.clone();
            let payload = Header::parse(&stored, stored.len() as u64).unwrap().header_len();
            garbage[payload..].fill(0xA5);
            all.extend([stored, garbage]);
            // Compressed as it should be, but still no bundle.
            all.push(ccob(b"", version, method));
        }
    }
    all
}

/// A length of 0 was taken for the wish to remove: the bundle vanished.
#[test]
fn a_bundle_that_claims_to_hold_nothing_is_refused() {
    let recompress = CompressOptions::default().with_recompress(true);
    let mut edits = [Edit::default(), Edit::default(), Edit::default()];
    edits[0].decompress();
    edits[1].compress(recompress);
    edits[2].compress(CompressOptions::default());
    for stored in claims_of_nothing() {
        for (name, file) in hosts(&stored) {
            for (edit, opens) in edits.iter().flat_map(|edit| [(edit, true), (edit, false)]) {
                if name == "in another" && !opens {
                    continue;
                }
                let (input, walk) = (&mut Cursor::new(&file), Options::default());
                let tried = if opens { survey(input, &walk) } else { survey_closed(input, &walk) };
                let tried = tried
                    .and_then(|contents| contents.plan(&mut Cursor::new(&file), edit))
                    .and_then(|plan| plan.write(&mut Cursor::new(&file), &mut io::sink()));
                let error = tried.unwrap_err();
                assert!(error.kind() == ErrorKind::Damaged, "{name}: {error}");
            }
        }
    }
}

/// Bundles that are stored as their hash says, and in which something is wrong; whether it can be allowed.
fn unsound() -> [(Vec<u8>, bool); 3] {
    let code = code(3, 5000);
    let malformed_id = bundle(&[(HOST, b""), ("hipv4-amdgc\0\0\0", &code)], 4096);
    let sound = plain(3, 5000);
    let cut = sound[..sound.len() - 1].to_vec();
    let trailing = [sound, b"more".to_vec()].concat();
    [(malformed_id, true), (cut, false), (trailing, false)]
}

#[test]
fn unread_compressed_bundles_are_checked_before_they_change() {
    let recompress = |edit: &mut Edit| {
        edit.compress(CompressOptions::default().with_recompress(true));
    };
    for (content, can_be_allowed) in unsound() {
        for (version, method) in [(Version::V2, Method::ZSTD), (Version::V3, Method::ZLIB)] {
            let file = paged(&[ccob(&content, version, method), plain(1, 900)]);
            for change in [Edit::decompress, recompress] {
                let run = |options| {
                    let mut edit = Edit::new(options);
                    change(&mut edit);
                    let contents = outside(&file)?;
                    let plan = contents.plan(&mut Cursor::new(&file), &edit)?;
                    let mut out = Vec::new();
                    plan.write(&mut Cursor::new(&file), &mut out).map(|()| out)
                };
                let error = run(EditOptions::default()).unwrap_err();
                assert!(error.kind() == ErrorKind::Damaged, "{error}");
                assert!(error.to_string().starts_with("ccob:0"), "{error}");
                match run(EditOptions::default().with_allow_findings(true)) {
                    Ok(out) => assert!(can_be_allowed && images(&out) == images(&file)),
                    Err(again) => {
                        assert!(!can_be_allowed && again.to_string() == error.to_string());
                    }
                }
            }
        }
    }
}

#[test]
fn wrong_hashes_can_be_allowed() {
    let plain = plain(1, 900);
    let mut file = ccob(&plain, Version::V3, Method::ZSTD);
    file[24] ^= 1;
    let walk = Options::default().with_verify_hash(false);
    for opens in [true, false] {
        let input = &mut Cursor::new(&file);
        let contents = if opens { survey(input, &walk) } else { survey_closed(input, &walk) };
        let contents = contents.unwrap();
        let run = |options, change: fn(&mut Edit)| {
            let mut edit = Edit::new(options);
            change(&mut edit);
            let plan = contents.plan(&mut Cursor::new(&file), &edit)?;
            let mut out = Vec::new();
            plan.write(&mut Cursor::new(&file), &mut out).map(|()| out)
        };
        let allowed = || EditOptions::default().with_allow_findings(true);
        assert!(run(allowed(), Edit::decompress).unwrap() == plain);
        let error = run(EditOptions::default(), Edit::decompress).unwrap_err();
        assert!(error.kind() == ErrorKind::Damaged, "{error}");
        if opens {
            // Compressed again, it has the right one.
            let out = run(allowed(), |edit| edit.remove(1)).unwrap();
            assert_eq!(images(&out).len(), images(&plain).len() - 1);
            let error = run(EditOptions::default(), |edit| edit.remove(1)).unwrap_err();
            assert!(error.kind() == ErrorKind::Damaged, "{error}");
        }
    }
}
