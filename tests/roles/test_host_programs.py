from __future__ import annotations

import hashlib
import http.server
import io
import os
import tarfile
import threading
from typing import ClassVar

import pytest


class Handler(http.server.BaseHTTPRequestHandler):
    files: ClassVar[dict[str, bytes]] = {}
    failures: ClassVar[list[int]] = []
    requests: ClassVar[list[str]] = []

    def do_GET(self):
        self.requests.append(self.path)
        if self.failures:
            self.send_error(self.failures.pop())
        elif self.path not in self.files:
            self.send_error(404)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(self.files[self.path])))
            self.end_headers()
            self.wfile.write(self.files[self.path])

    def log_message(self, *_):
        pass


def archive(**members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(f"./bin/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def mirror(monkeypatch, host, tmp_path):
    monkeypatch.setattr(host("programs"), "MANIFEST", str(tmp_path / "programs.json"))
    monkeypatch.setattr(host("downloads").time, "sleep", lambda _: None)
    monkeypatch.setattr(Handler, "files", {"/bare": b"bare", "/a.tgz": archive(ctr=b"ctr", shim=b"shim")})
    monkeypatch.setattr(Handler, "failures", [])
    monkeypatch.setattr(Handler, "requests", [])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def sha(data):
    return hashlib.sha256(data).hexdigest()


def bare(mirror, path, **other):
    return {
        "url": f"{mirror}/bare",
        "sha256": sha(b"bare"),
        "path": str(path),
        "members": None,
        "mode": "0755",
        **other,
    }


def packed(mirror, members):
    content = Handler.files["/a.tgz"]
    return {"url": f"{mirror}/a.tgz", "sha256": sha(content), "path": None, "members": members, "mode": "0755"}


def test_a_bare_program_is_fetched_verified_and_executable(host, mirror, tmp_path):
    programs = host("programs")
    program = bare(mirror, tmp_path / "sbin" / "runc")
    assert programs.pending([program]) == [program]
    programs.apply([program], 1, 5)
    assert programs.pending([program]) == []
    assert os.listdir(tmp_path / "sbin") == ["runc"]
    assert (tmp_path / "sbin" / "runc").stat().st_mode & 0o777 == 0o755


def test_only_listed_members_of_an_archive_are_placed_and_it_is_remembered(host, mirror, tmp_path):
    programs = host("programs")
    program = packed(mirror, {"bin/ctr": str(tmp_path / "ctr")})
    programs.apply([program], 1, 5)
    assert sorted(os.listdir(tmp_path)) == ["ctr", "programs.json"]
    assert programs.pending([program]) == []
    assert programs.pending([{**program, "sha256": "0" * 64}]) != []


def test_a_damaged_program_is_fetched_again(host, mirror, tmp_path):
    programs = host("programs")
    program = packed(mirror, {"bin/ctr": str(tmp_path / "ctr")})
    programs.apply([program], 1, 5)
    (tmp_path / "ctr").write_bytes(b"cut")
    assert programs.pending([program]) == [program]


def test_a_damaged_program_of_the_same_size_and_time_is_fetched_again(host, mirror, tmp_path):
    programs, path = host("programs"), tmp_path / "runc"
    program = bare(mirror, path)
    programs.apply([program], 1, 5)
    before = path.stat()
    path.write_bytes(b"BARE")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert programs.pending([program]) == [program]


def test_a_program_is_not_hashed_again_until_its_file_is_touched(host, mirror, tmp_path, monkeypatch):
    programs, path = host("programs"), tmp_path / "runc"
    program, hashed, real = bare(mirror, path), [], programs.file_sha256
    programs.apply([program], 1, 5)
    monkeypatch.setattr(programs, "file_sha256", lambda path: hashed.append(path) or real(path))
    assert (programs.pending([program]), hashed) == ([], [])
    os.utime(path)
    assert (programs.pending([program]), hashed) == ([], [str(path)])


def test_a_correct_program_placed_by_others_is_accepted(host, mirror, tmp_path):
    (tmp_path / "runc").write_bytes(b"bare")
    (tmp_path / "runc").chmod(0o755)
    assert host("programs").pending([bare(mirror, tmp_path / "runc")]) == []


def test_a_wrong_checksum_keeps_the_old_program_and_reports_both_sums(host, mirror, tmp_path):
    (tmp_path / "runc").write_bytes(b"old")
    _, reasons = host("downloads").fetch_all([bare(mirror, tmp_path / "runc", sha256="f" * 64)], 3, 5)
    assert sha(b"bare") in reasons[0]
    assert "f" * 64 in reasons[0]
    assert (tmp_path / "runc").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["runc"]
    assert Handler.requests == ["/bare"]


def test_a_failing_mirror_is_retried(host, mirror, tmp_path):
    Handler.failures.extend([503, 503])
    assert host("downloads").fetch_all([bare(mirror, tmp_path / "runc")], 3, 5)[1] == []
    assert len(Handler.requests) == 3


def test_a_file_that_the_mirror_does_not_have_is_requested_once(host, mirror, tmp_path):
    _, reasons = host("downloads").fetch_all([bare(mirror, tmp_path / "x", url=f"{mirror}/gone")], 3, 5)
    assert "answers 404" in reasons[0]
    assert Handler.requests == ["/gone"]


def test_an_unreachable_mirror_is_named_with_the_attempts(host, tmp_path, mirror):
    _, reasons = host("downloads").fetch_all([bare("http://127.0.0.1:1", tmp_path / "x")], 2, 1)
    assert "http://127.0.0.1:1/bare can't be fetched (2 attempts)" in reasons[0]


def test_an_archive_without_a_listed_member_is_an_error(host, mirror, tmp_path):
    _, reasons = host("downloads").fetch_all([packed(mirror, {"bin/gone": str(tmp_path / "x")})], 1, 5)
    assert "has no member bin/gone" in reasons[0]


def test_one_failure_does_not_stop_the_others(host, mirror, tmp_path):
    wrong, right = bare(mirror, tmp_path / "x", url=f"{mirror}/gone"), bare(mirror, tmp_path / "runc")
    _, reasons = host("downloads").fetch_all([wrong, right], 1, 5)
    assert len(reasons) == 1
    assert (tmp_path / "runc").exists()


def test_a_damaged_manifest_only_means_fetching_everything_again(host, tmp_path, monkeypatch):
    monkeypatch.setattr(host("programs"), "MANIFEST", str(tmp_path / "programs.json"))
    (tmp_path / "programs.json").write_text("{")
    assert host("programs").load_manifest() == {}


def test_placed_programs_are_not_pending_and_a_failure_names_its_reason(host, mirror, tmp_path):
    programs = host("programs")
    programs_ = [packed(mirror, {"bin/ctr": str(tmp_path / "ctr")}), bare(mirror, tmp_path / "x", url=f"{mirror}/gone")]
    with pytest.raises(programs.Refused, match="answers 404"):
        programs.apply(programs.pending(programs_), 1, 5)
    assert programs.pending(programs_) == programs_[1:]
