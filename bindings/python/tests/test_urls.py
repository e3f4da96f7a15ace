"""Files on a server, which the tests run on this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import DATA, zipped

import offload

SECRET = "?token=secret"


class Server(ThreadingHTTPServer):
    """A server of the files of a directory, with ranges unless `has_ranges` is false. `sent` is the number of bytes of contents."""

    daemon_threads = True
    directory: Path
    has_ranges = True
    sent = 0
    requests = 0

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}{SECRET}"

    def name(self, name: str) -> str:
        """Returns the name of the URL: without its query, which may be a secret."""
        return f"http://127.0.0.1:{self.server_port}/{name}?..."


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.requests += 1
        name, _, query = self.path.lstrip("/").partition("?")
        path = self.server.directory / name.replace("%2B", "+")
        if f"?{query}" != SECRET or not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        total, status = len(data), 200
        wanted = self.headers.get("Range")
        if wanted and self.server.has_ranges:
            first, last = wanted.removeprefix("bytes=").split("-")
            start, end = int(first), min(int(last), total - 1)
            data, status = data[start : end + 1], 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end}/{total}")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.server.sent += len(data)
        self.wfile.write(data)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server(("127.0.0.1", 0), Handler) as server:
        server.directory = tmp_path
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def wheel(tmp_path: Path, hip: Path) -> Path:
    members = {"foo/a.py": b"text", "foo/hip.o": hip.read_bytes(), "foo/libhip.a": (DATA / "libhip.a").read_bytes()}
    return zipped(tmp_path / "foo-1.0+cu12-py3-none-any.whl", members)


def rows(images: offload.Images) -> list[dict[str, object]]:
    return [{**image.to_dict(), "file": image.member} for image in images]


@pytest.mark.parametrize("has_ranges", [True, False])
def test_images_are_those_of_the_file(server: Server, wheel: Path, hip: Path, has_ranges: bool) -> None:
    server.has_ranges = has_ranges
    (server.directory / "hip.o").write_bytes(hip.read_bytes())
    for name in (wheel.name, "hip.o"):
        local = list(offload.images(server.directory / name, hash=True, kernels=True))
        found = offload.images(server.url(name), hash=True, kernels=True)
        images = list(found)
        assert rows(images) == rows(local) and images  # type: ignore[arg-type]
        assert [image.kernel_count for image in images] == [image.kernel_count for image in local]
        assert images[0].file.startswith(server.name(name)) and "secret" not in repr(images)
        (cost,) = [one for one in found.findings if one.message.startswith("read ")]
        assert cost.level == "note" and cost.file == server.name(name) and "request" in cost.message
        assert ("the server has no ranges" in cost.message) != has_ranges
        assert not any("secret" in repr(one) for one in found.findings)
        assert images[-1].extract() == local[-1].extract()
        assert images[-1].kernels() == local[-1].kernels()


def test_what_was_not_read_is_said(server: Server, wheel: Path) -> None:
    found = offload.images(server.url(wheel.name))
    assert list(found)
    (left_out,) = [one for one in found.findings if one.code == "network/not-read"]
    assert left_out.level == "note" and left_out.message.startswith("1 member not read, by their names")


def test_an_image_is_read_again_without_other_members(server: Server, tmp_path: Path, hip: Path) -> None:
    large = zipped(tmp_path / "large.whl", {"a.bin": os.urandom(1 << 21), "b.o": hip.read_bytes(), "c.bin": os.urandom(1 << 21)})
    images = list(offload.images(server.url(large.name)))
    assert server.sent > 1 << 21
    server.sent = 0
    assert images[-1].extract()
    assert server.sent < 1 << 18


def test_match(server: Server, wheel: Path) -> None:
    for gpu in ("gfx1100", "gfx1031"):
        local, answer = offload.match(wheel, gpu), offload.match(server.url(wheel.name), gpu)
        assert (answer.verdict, answer.reason) == (local.verdict, local.reason)
        assert [one.file for one in answer.verdicts] == [server.name(wheel.name)]
        assert any(one.code == "network/not-read" for one in answer.findings)
        assert not any("secret" in str(row) for row in answer.containers)


def test_a_library_that_was_not_searched_may_have_code(server: Server, tmp_path: Path, hip: Path) -> None:
    (tmp_path / "hip.o").write_bytes(hip.read_bytes())
    answer = offload.match(server.url("hip.o"), "gfx1031")
    assert answer.verdict == "unknown" and not answer
    assert "what was read has no code for gfx1031" in answer.reason
    assert offload.match(tmp_path / "hip.o", "gfx1031").verdict == "no"


def test_scan(server: Server, wheel: Path, hip: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    url = server.url(wheel.name.replace("+", "%2B"))
    scan = offload.scan([url, hip, server.url("none")], sha256=True)
    table = pa.table(scan).to_pylist()
    local = pa.table(offload.scan([wheel])).to_pylist()
    ours = [row for row in table if row["version"] == "1.0+cu12"]
    for row in ours:
        row["source"] = str(wheel)
    assert ours == local and local
    first, second, third = scan.results
    assert first.source == server.name(wheel.name.replace("+", "%2B"))
    assert first.ok and first.images == len(ours)
    assert first.requests >= 1 and first.bytes_received >= 1
    assert first.requests <= server.requests and first.bytes_received <= server.sent
    assert any("SHA-256" in one.message for one in first.findings)
    assert (second.requests, second.bytes_received) == (0, 0)
    assert not third.ok and third.findings[0].file == server.name("none")
    assert [row["source"] for row in table if row["error"]] == [server.name("none")]


def test_urls_that_cannot_be_read(server: Server, wheel: Path, tmp_path: Path) -> None:
    port = server.server_port
    for url, words in [
        (server.url("none"), "404"),
        (f"http://user:secret@127.0.0.1:{port}/{wheel.name}", "user name"),
        ("s3://bucket/foo.whl", "http"),
        ("http://127.0.0.1:1/foo.whl", "refused"),
    ]:
        for ask in (lambda url: list(offload.images(url)), lambda url: offload.match(url, "gfx1100")):
            with pytest.raises(offload.UrlError, match=words) as error:
                ask(url)
            assert "secret" not in str(error.value) and error.value.kind == "file/error"
    with pytest.raises(offload.UrlError, match="download it first"):
        offload.thin(server.url(wheel.name), tmp_path / "small.whl", keep=["gfx1100"])
    assert not (tmp_path / "small.whl").exists()
