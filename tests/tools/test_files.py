"""Files out of Go modules: at the version of the cluster, and the ones that go.sum pins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster import versions
from cluster.errors import FailedError
from tools import files, manifest


def test_rooks_crds_are_of_the_rook_that_clusters_have() -> None:
    assert manifest.modules()["rook"].version == versions.ROOK
    assert f"github.com/rook/rook v{versions.ROOK} h1:" in (manifest.TOOLS / "rook" / "go.sum").read_text()


def test_files_of_what_is_built_on_request_are_not_had_unasked() -> None:
    known = manifest.modules()
    assert set(files.names()) == {name for module in known.values() if module.unasked for name in module.files}
    assert known["conformance"].files
    assert not known["conformance"].files.keys() & set(files.names())


def test_a_module_that_go_refuses_is_told_with_gos_words(
    fake_go: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake_go().parent / "bin" / "go"
    program.write_text(program.read_text() + "case $1 in mod) echo checksum mismatch >&2; exit 1;; esac\n")
    with pytest.raises(FailedError, match="checksum mismatch"):
        files.ensure("rook-crds.yaml")


def test_a_file_that_nobody_knows_is_refused() -> None:
    with pytest.raises(LookupError, match="other.yaml"):
        files.ensure("other.yaml")
