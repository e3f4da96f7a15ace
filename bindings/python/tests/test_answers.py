from __future__ import annotations

from pathlib import Path

import pytest
from conftest import DATA, run_json, zipped

import offload


@pytest.mark.parametrize("gpu", ["gfx1100", "gfx908", "gfx1031", "RX 7600", "sm_90"])
@pytest.mark.parametrize("name", ["hip.o", "hip-two-units.so", "kernels.fatbin", "libhip.a", "hip.dll"])
def test_answers_are_those_of_the_tool(name: str, gpu: str) -> None:
    path = DATA / name
    answer, told = offload.match(path, gpu), run_json("match", "--gpu", gpu, str(path))
    assert answer.containers == told["answers"]
    verdicts = [(one.file, one.verdict, one.reason) for one in answer.verdicts]
    assert verdicts == [(one["file"], one["answer"], one["message"]) for one in told["verdicts"]]
    assert bool(answer) == (answer.verdict == "yes")


def test_answers_about_packages(hip: Path, tmp_path: Path) -> None:
    wheel = zipped(tmp_path / "foo-1.0-py3-none-any.whl", {"foo/hip.o": hip.read_bytes()})
    assert offload.match(wheel, "gfx1100").verdict == "yes"
    no = offload.match(wheel, "gfx1031")
    assert no.verdict == "no" and "gfx1031" in no.reason and not no
    assert offload.match(wheel.read_bytes(), "gfx1100").verdicts[0].file == "<bytes>"
    empty = zipped(tmp_path / "bar-1.0-py3-none-any.whl", {"bar/a.txt": b"text"})
    nothing = offload.match(empty, "gfx1100")
    assert nothing.verdict == "no" and nothing.reason == "no code for these GPUs in 1 member"


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
