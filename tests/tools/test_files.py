"""Files from Go modules: the cluster's version, as pinned by go.sum."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster import versions
from cluster.errors import FailedError
from tools import files, manifest


def test_rooks_crds_have_the_version_of_the_clusters_rook() -> None:
    assert manifest.modules()["rook"].version == versions.ROOK
    assert f"github.com/rook/rook v{versions.ROOK} h1:" in (manifest.TOOLS / "rook" / "go.sum").read_text()


def test_files_of_modules_built_on_request_are_not_fetched_by_default() -> None:
    modules = manifest.modules()
    assert set(files.names()) == {name for module in modules.values() if module.unasked for name in module.files}
    assert modules["conformance"].files
    assert not modules["conformance"].files.keys() & set(files.names())


def test_the_error_has_gos_message_if_go_refuses_a_module(
    fake_go: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake_go().parent / "bin" / "go"
    program.write_text(program.read_text() + "case $1 in mod) echo checksum mismatch >&2; exit 1;; esac\n")
    with pytest.raises(FailedError, match="checksum mismatch"):
        files.ensure("rook-crds.yaml")


def test_an_unknown_file_is_refused() -> None:
    with pytest.raises(LookupError, match="other.yaml"):
        files.ensure("other.yaml")
