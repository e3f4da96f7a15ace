from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, broken, run_json, saved, status, unread, zipped

import offload


@pytest.mark.parametrize("gpu", ["gfx1100", "gfx908", "gfx1031", "RX 7600", "sm_90"])
@pytest.mark.parametrize("name", ["hip.o", "hip-two-units.so", "kernels.fatbin", "libhip.a", "hip.dll"])
def test_answers_are_those_of_the_tool(name: str, gpu: str) -> None:
    path = DATA / name
    answer, told = offload.match(path, gpu), run_json("match", "--gpu", gpu, str(path))
    assert answer.containers == told["answers"]
    verdicts = [(one.file, one.verdict, one.reason) for one in answer.verdicts]
    assert verdicts == [(one["file"], one["answer"], one["message"]) for one in told["verdicts"]]
    assert bool(answer) == (status("match", "--gpu", gpu, str(path)) == 0) and answer.ok


def test_answers_about_packages(hip: Path, tmp_path: Path) -> None:
    wheel = zipped(tmp_path / "foo-1.0-py3-none-any.whl", {"foo/hip.o": hip.read_bytes()})
    assert offload.match(wheel, "gfx1100").verdict == "yes"
    no = offload.match(wheel, "gfx1031")
    assert no.verdict == "no" and "gfx1031" in no.reason and not no
    assert offload.match(wheel.read_bytes(), "gfx1100").verdicts[0].file == "<bytes>"
    empty = zipped(tmp_path / "bar-1.0-py3-none-any.whl", {"bar/a.txt": b"text"})
    nothing = offload.match(empty, "gfx1100")
    assert nothing.verdict == "no" and nothing.reason == "no code for gfx1100 in 1 member"


def test_container_images_are_sets_of_files(hip: Path, tmp_path: Path) -> None:
    for name, gone, wanted in (("seen.tar", [], "yes"), ("gone.tar", ["hip.o"], "no")):
        image = saved(tmp_path / name, {"hip.o": hip.read_bytes(), "a.txt": b"text"}, gone)
        told = run_json("match", "--gpu", "gfx1100", str(image))["verdicts"]
        for source in (image, image.read_bytes(), image.open("rb")):
            answer = offload.match(source, "gfx1100")
            assert answer.verdict == wanted, answer.findings
            assert [(one.verdict, one.reason) for one in answer.verdicts] == [(one["answer"], one["message"]) for one in told]


def test_variants_for_other_gpus_are_errors_as_of_the_tool(hip: Path, tmp_path: Path) -> None:
    info = tmp_path / "lib" / "python3.11" / "site-packages" / "foo-1.0.dist-info"
    info.mkdir(parents=True)
    variant = {"default-priorities": {"namespace": ["amd"]}, "variants": {"gfx90a": {"amd": {"gfx_arch": ["gfx90a"]}}}}
    files = {"METADATA": "Name: foo\nVersion: 1.0\n", "RECORD": "foo.o,,\n", "variant.json": json.dumps(variant)}
    for name, text in files.items():
        (info / name).write_text(text)
    (info.parent / "foo.o").write_bytes(hip.read_bytes())
    answer, told = offload.match(tmp_path, "gfx1100"), run_json("match", "--gpu", "gfx1100", str(tmp_path))
    codes = [one["code"] for one in told["findings"]]
    assert [one.code for one in answer.findings if one.code.startswith("variant/")] == [one for one in codes if one.startswith("variant/")]
    assert any(one.startswith("variant/") for one in codes)
    assert bool(answer) == (status("match", "--gpu", "gfx1100", str(tmp_path)) == 0)


def test_files_that_are_not_read_are_no_yes(hip: Path, tmp_path: Path) -> None:
    good = (DATA / "hip-two-units.so").read_bytes()
    wheel = broken(tmp_path / "foo-1.0-py3-none-any.whl", good, hip.read_bytes())
    answer = offload.match(wheel, "gfx1100")
    assert [one.verdict for one in answer.verdicts] == ["yes"]
    assert answer.verdict == "unknown" and not answer and not answer.ok
    assert status("match", "--gpu", "gfx1100", str(wheel)) == 1
    require = Path(__file__).parent.parent / "examples" / "require.py"
    for source, wanted in ((wheel, 1), (hip, 0)):
        done = subprocess.run([sys.executable, str(require), "--gpu", "gfx1100", str(source)], capture_output=True, text=True, check=False)
        assert done.returncode == wanted, done.stderr


def test_errors_are_said_once_of_the_right_file(hip: Path, tmp_path: Path) -> None:
    wheel = broken(tmp_path / "odd: foo-1.0-py3-none-any.whl", (DATA / "hip-two-units.so").read_bytes(), hip.read_bytes())
    images = offload.images(wheel, on_error="collect")
    list(images)
    for findings in (images.findings, offload.match(wheel, "gfx1100").findings):
        errors = [one for one in findings if one.level == "error"]
        of_sum = [one for one in errors if one.file.endswith("foo/sum.so")]
        assert [one.file for one in of_sum] == [f"{wheel}:foo/sum.so"]
        assert len({one.message for one in errors}) == len(errors)
        assert all(one.file.startswith(str(wheel)) for one in errors)


def test_formats_that_are_not_read_are_unknown(tmp_path: Path) -> None:
    wheel = unread(tmp_path / "foo-1.0-py3-none-any.whl")
    answer = offload.match(wheel, "gfx1100")
    assert answer.verdict == "unknown" and not answer and not answer.ok and "2 were not read" in answer.reason
    assert status("match", "--gpu", "gfx1100", str(wheel)) == 1


@pytest.mark.parametrize("gpu", ["gfx1100", "gfx908", "gfx1031", "sm_90"])
def test_one_variant_of_a_wheel_is_enough(gpu: str, tmp_path: Path) -> None:
    for label, name in (("a1", "hip.o"), ("b2", "kernels.fatbin")):
        zipped(tmp_path / f"foo-1.0-py3-none-any-{label}.whl", {"foo/x.o": (DATA / name).read_bytes()})
    answer, told = offload.match(tmp_path, gpu), run_json("match", "--gpu", gpu, str(tmp_path))
    verdicts = [(one.file, one.verdict, one.reason) for one in answer.verdicts]
    assert verdicts == [(one["file"], one["answer"], one["message"]) for one in told["verdicts"]]
    assert bool(answer) == (status("match", "--gpu", gpu, str(tmp_path)) == 0)


def test_doubts_about_a_gpu_are_findings(hip: Path) -> None:
    (doubt,) = [one for one in offload.match(hip, "gfx1299").findings if one.code == "targets/unknown"]
    assert doubt.level == "warning" and "did you mean gfx1200" in doubt.message
    assert not offload.match(hip, "gfx1031").findings


def test_questions_that_have_no_answer(hip: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        offload.match(tmp_path / "none", "gfx1100")
    with pytest.raises(offload.UnknownGpuError):
        offload.match(hip, "no such GPU")
    with pytest.raises(ValueError):
        offload.match(hip, "")
    junk = tmp_path / "junk"
    junk.write_bytes(b"\x01\x02junk" * 100)
    with pytest.raises(offload.NotReadError):
        offload.match(junk, "gfx1100")


def machine(root: Path, versions: list[int]) -> str:
    """Makes the files by which Linux shows GPUs of AMD, and returns the name of the machine."""
    for number, version in enumerate(versions):
        node = root / "sys/class/kfd/kfd/topology/nodes" / str(number + 1)
        node.mkdir(parents=True)
        (node / "properties").write_text(f"gfx_target_version {version}\n")
    return f"native={root}"


def test_native_is_the_gpu_of_a_machine_as_for_the_tool(hip: Path, tmp_path: Path) -> None:
    native = machine(tmp_path / "one", [110000])
    version = tmp_path / "one/opt/rocm/.info/version"
    version.parent.mkdir(parents=True)
    version.write_text("6.3.0\n")
    answer, told = offload.match(hip, native), run_json("match", "--gpu", native, str(hip))
    assert answer.containers == told["answers"] and answer.gpu == "gfx1100"
    (note,) = [one for one in answer.findings if one.level == "note"]
    assert note.message.startswith(f"{native} is gfx1100 (") and "rocm 6.3" in note.message
    assert [image.target for image in offload.images(hip, gpu=native)] == ["gfx1100"]
    report = offload.thin(hip, tmp_path / "small.o", keep=[native])
    assert report.size_after < report.size_before
    two = machine(tmp_path / "two", [90010, 110000])
    with pytest.raises(offload.UnknownGpuError, match="gfx90a .*gfx1100 .*: expected one GPU"):
        offload.match(hip, two)
    listed = run_json("ls", "--target", two, str(hip))["images"]
    assert [image.to_dict() for image in offload.images(hip, gpu=two)] == listed and "gfx1100" in [one["target"] for one in listed]
    none = tmp_path / "none"
    none.mkdir()
    for ask in (
        lambda: offload.match(hip, f"native={none}"),
        lambda: offload.images(hip, gpu=f"native={none}"),
        lambda: offload.thin(hip, tmp_path / "x.o", keep=[f"native={none}"]),
    ):
        with pytest.raises(offload.UnknownGpuError, match="no GPU found in .*type its target ID"):
            ask()


def test_types_of_arguments_are_named(hip: Path, tmp_path: Path) -> None:
    module: Any = offload
    new = tmp_path / "new.o"
    for ask, words in (
        (lambda: module.match(hip, 90), "gpu: expected a text such as 'gfx90a', .*, found int"),
        (lambda: module.match(hip, None), "gpu: expected a text .*, found NoneType"),
        (lambda: module.match(3, "gfx90a"), "source: expected a path, a URL, bytes or a binary file, found int"),
        (lambda: module.match(hip, "gfx90a", threads="2"), "threads: expected a number, found str"),
        (lambda: module.images(hip, gpu=["gfx90a"]), "gpu: expected a text .*, found list"),
        (lambda: module.images(hip, on_error=1), "on_error: expected 'raise' or 'collect', found int"),
        (lambda: module.thin(hip.read_bytes(), new, keep=["gfx1100"]), "source: expected the path of a file, found bytes"),
        (lambda: module.thin(hip, 3, keep=["gfx1100"]), "output: expected the path of a file, found int"),
        (lambda: module.thin(hip, new, keep="gfx1100"), r"keep: expected a list of GPUs, such as \['gfx90a'\], found str"),
        (lambda: module.thin(hip, new, keep=3), "keep: expected a list of GPUs, .*, found int"),
        (lambda: module.thin(hip, new, drop=[3]), "drop: expected a text .*, found int"),
        (lambda: module.scan(3), "sources: expected a path, .* or several of them, found int"),
        (lambda: module.scan([3]), "sources: expected a path, a URL, bytes or a binary file, found int"),
        (lambda: next(offload.images(hip)).extract(module), "path: expected the path of a file, found module"),
    ):
        with pytest.raises(TypeError, match=f"^{words}$"):
            ask()
    for threads in (0, -1, 1 << 40):
        with pytest.raises(ValueError, match=f"threads: expected 1 to 4294967295, found {threads}"):
            offload.match(hip, "gfx1100", threads=threads)


def test_thin(hip: Path, tmp_path: Path) -> None:
    wheel = zipped(tmp_path / "foo-1.0-py3-none-any.whl", {
        "foo/hip.o": hip.read_bytes(),
        "foo-1.0.dist-info/RECORD": b"foo/hip.o,,\nfoo-1.0.dist-info/RECORD,,\n",
    })
    for source in (hip, wheel):
        small = tmp_path / f"small-{source.name}"
        report = offload.thin(source, small, keep=["gfx1100"])
        assert report.size_before == source.stat().st_size and report.size_after == small.stat().st_size
        assert report.size_after < report.size_before and report.files
        assert {image.target for image in offload.images(small)} == {None, "gfx1100"}
    dry = offload.thin(hip, tmp_path / "dry.o", drop=["gfx906"], dry_run=True)
    assert dry.size_after < dry.size_before and not (tmp_path / "dry.o").exists()


def test_edits_that_are_refused(hip: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.o"
    with pytest.raises(offload.OffloadError, match="allow-missing"):
        offload.thin(hip, new, keep=["gfx1031"])
    with pytest.raises(offload.UnknownGpuError):
        offload.thin(hip, new, keep=["gfx110O"])
    with pytest.raises(ValueError, match="keep and drop"):
        offload.thin(hip, new)
    with pytest.raises(ValueError, match="keep and drop"):
        offload.thin(hip, new, keep=["gfx1100"], drop=["gfx906"])
    with pytest.raises(FileNotFoundError):
        offload.thin(tmp_path / "none", new, keep=["gfx1100"])
    with pytest.raises(OSError):
        offload.thin(hip, tmp_path / "none" / "new.o", keep=["gfx1100"])
    with pytest.raises(offload.OffloadError):
        offload.thin(DATA / "src", new, keep=["gfx1100"])
    assert not new.exists()
    text = tmp_path / "text"
    text.write_text("nothing")
    with pytest.raises(offload.RefusedError, match="no device code"):
        offload.thin(text, new, keep=["gfx1100"])
