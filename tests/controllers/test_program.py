"""The image and its program: as the ServiceAccount, with two processes and one Lease, one of them killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster.errors import FailedError
from cluster.project import ROOT
from controllers import contents, image
from controllers.image import CODE, build, push
from controllers.kinds import TENANCY_SYNC
from controllers.program.loop import PREFIX
from tests.bench.prometheus import total
from tests.control_plane.real_api import started
from tests.controllers.account import DIRECTORY, token_of
from tests.controllers.image import Container, config_of, layers_of, unpack
from tests.ports import free_ports
from tests.programs import program
from tests.tenancy.real import Server
from tests.waiting import until
from tools import cache

pytestmark = [
    pytest.mark.xdist_group("controllers"),
    pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root"),
]

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/menagerie-tenancy-sync"


@pytest.fixture(scope="session")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("image") / "layout"
    build(folder)
    return folder


@pytest.fixture(scope="session")
def container(layout: Path, tmp_path_factory: pytest.TempPathFactory) -> Container:
    root = tmp_path_factory.mktemp("root") / "fs"
    unpack(layout, root)
    root.chmod(0o755)  # for the image's user, whatever this process's mask is
    return Container(layout, root)


@pytest.mark.soak
def test_a_second_build_is_identical(layout: Path, tmp_path: Path) -> None:
    build(tmp_path / "again", fresh=True)
    assert (tmp_path / "again" / "index.json").read_text() == (layout / "index.json").read_text()


class BuiltAgain(Exception):
    """Stands for the minute in which an image is built."""


@pytest.fixture
def kept(layout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The last image in a cache of its own, where none can be built."""

    def make(*_: object) -> Path:
        raise BuiltAgain

    home = cache.root() / "controllers"
    debs = sorted((home / "debian").iterdir())
    shutil.copytree(home / "image", tmp_path / "cache" / "controllers" / "image")
    shutil.copy(home / "image.inputs", tmp_path / "cache" / "controllers")
    monkeypatch.setenv("MENAGERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image, "_debs", lambda _: debs)
    monkeypatch.setattr(image, "_make", make)
    return tmp_path / "cache" / "controllers" / "image"


def test_the_last_image_is_copied_if_it_is_of_the_same_files(layout: Path, kept: Path, tmp_path: Path) -> None:
    assert build(tmp_path / "again") == image.digest_of(layout)
    assert [path.name for path in kept.parent.iterdir() if path.name.startswith(".image-")] == []


@pytest.mark.parametrize("change", ["package", "module", "blob", "all blobs", "record"])
def test_an_image_of_other_files_or_a_damaged_one_is_built_again(
    change: str, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if change == "package":
        debs = image._debs(print)
        monkeypatch.setattr(image, "_debs", lambda _: [debs[0].with_name("libc6_9-1_amd64.deb"), *debs[1:]])
    elif change == "module":
        monkeypatch.setattr(contents, "modules", lambda: (ROOT / "tests" / "conftest.py",))
    elif change == "blob":
        with max((kept / "blobs" / "sha256").iterdir(), key=lambda path: path.stat().st_size).open("r+b") as blob:
            blob.write(b"x")
    elif change == "all blobs":
        shutil.rmtree(kept)
    else:
        kept.with_suffix(".inputs").unlink()
    with pytest.raises(BuiltAgain):
        build(tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_it_has_no_shell_no_package_manager_and_only_imported_modules(layout: Path) -> None:
    names = [member.name for archive in layers_of(layout) for member in archive if not member.isdir()]
    assert len(names) == len(set(names))
    programs = sorted(name for name in names if name.startswith(("usr/bin/", "usr/sbin/")))
    assert [name for name in programs if "python3.13" not in name] == []
    ours = {name.removeprefix(f"{CODE}/") for name in names if name.startswith(f"{CODE}/") and name.endswith(".py")}
    assert ours == {str(path.relative_to(ROOT)) for path in contents.modules()}
    packages = {name.split("/")[3] for name in names if name.startswith("opt/menagerie/packages/")}
    assert {"kubernetes", "ldap3", "pydantic"} <= packages
    assert not packages & {"pulumi", "ansible", "rich", "typer", "highspy", "numpy", "aiohttp", "bin"}
    assert config_of(layout)["config"]["User"] == "65532:65532"
    assert {(member.uid, member.mtime) for archive in layers_of(layout) for member in archive} == {(0, 0)}
    writable = [m.name for archive in layers_of(layout) for m in archive if m.mode & 0o022 and not m.issym()]
    assert writable == []


def test_a_registry_accepts_it_with_the_same_digest(layout: Path, tmp_path: Path) -> None:
    crane, (port,) = program("crane"), free_ports(1)
    command = [crane, "registry", "serve", f"--address=127.0.0.1:{port}", f"--disk={tmp_path}"]
    with started("registry", command, tmp_path):
        until(lambda: page(port, "/v2/")[0] == 200)
        reference = push(layout, f"127.0.0.1:{port}/menagerie:1")
        digest = json.loads((layout / "index.json").read_text())["manifests"][0]["digest"]
        assert reference == f"127.0.0.1:{port}/menagerie@{digest}"
        # Check every layer's digest, compressed and uncompressed, as a client that pulls it does.
        ran = subprocess.run([crane, "validate", "--remote", reference], capture_output=True, text=True, check=False)
        assert (ran.returncode, "PASS" in ran.stdout + ran.stderr) == (0, True), ran.stderr
    with pytest.raises(FailedError, match="was not accepted"):
        push(layout, f"127.0.0.1:{port}/menagerie:1")


def test_a_folder_with_other_files_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "work").write_text("mine")
    with pytest.raises(FailedError, match="contains files that are not an image"):
        build(tmp_path)
    assert (tmp_path / "work").read_text() == "mine"


def test_its_python_imports_everything_that_the_program_may_need(container: Container) -> None:
    modules = [str(path.relative_to(ROOT).with_suffix("")).replace("/", ".") for path in contents.modules()]
    program = "import sys, importlib, ssl, getpass, encodings.idna\n"
    program += f"for name in {[name.removesuffix('.__init__') for name in modules]!r}: importlib.import_module(name)\n"
    program += (
        "print(len(ssl.create_default_context().get_ca_certs()) > 100, sys.version_info[:2], 'pulumi' in sys.modules)"
    )
    assert container.python(program) == "True (3, 13) False\n"


def test_it_exits_with_all_errors_of_the_spec(container: Container, spec: Path) -> None:
    spec.write_text(
        spec.read_text().replace("cloud: lab", "cloud: nowhere").replace("people.yaml", "people.yaml\n    fil: x")
    )
    container.mount("token", "authority", spec)
    command = container.command("tenancy-sync", "--spec", "/etc/menagerie/spec/cluster.yaml")
    ran = subprocess.run(command, env=container.environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 2, ran.stderr
    assert ran.stderr.count("error[") >= 2
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ERROR controllers\.program: ", ran.stderr)


def page(port: int, path: str) -> tuple[int, str]:
    """Return status and text; status 0 if nothing listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def leads(port: int) -> bool:
    return total(page(port, "/metrics")[1], f"{PREFIX}leader") == 1


def test_only_one_of_two_acts_and_the_standby_takes_over_when_it_is_killed(
    container: Container, server: Server, spec: Path, tmp_path: Path
) -> None:
    authority = (server.folder / "certificates" / "apiserver.crt").read_text()
    container.mount(token_of(server, TENANCY_SYNC), authority, spec)
    people = container.root / "etc" / "menagerie" / "spec" / "people.yaml"
    ports = free_ports(2)
    words = ("tenancy-sync", "--spec", "/etc/menagerie/spec/cluster.yaml", "--every", "1", "--listen", "127.0.0.1")

    def exists(name: str) -> bool:
        return server.real.call("GET", f"/api/v1/namespaces/{name}")[0] == 200

    with ExitStack() as ends:
        both = [
            ends.enter_context(
                container.running(tmp_path / f"{port}.log", server.real.port, *words, "--port", str(port))
            )
            for port in ports
        ]
        until(lambda: any(map(leads, ports)))
        until(lambda: exists("user-ana") and exists("team-robotics"))
        first = next(index for index, port in enumerate(ports) if leads(port))
        leader, other = ports[first], ports[1 - first]
        until(lambda: page(other, "/readyz")[0] == 200)
        assert "on standby" in page(other, "/readyz")[1]
        assert (leads(other), page(leader, "/readyz")[0], page(leader, "/healthz")[0]) == (False, 200, 200)
        until(lambda: total(page(leader, "/metrics")[1], f"{PREFIX}rounds_total", end="done") > 0)
        text = page(leader, "/metrics")[1]
        assert total(text, f"{PREFIX}size", of="people") == 3
        assert total(text, f"{PREFIX}changes_total") > 0
        people.write_text(DIRECTORY.replace("cleo: {}", "cleo: {}, dora: {}"))
        until(lambda: exists("user-dora"))
        people.write_text(DIRECTORY.replace("cleo: {}", "cleo: {}, dora: {}, eva: {}"))
        both[first].kill()
        until(lambda: leads(other), seconds=120)
        until(lambda: exists("user-eva"))
        # After SIGTERM it releases the Lease, so that the other does not have to wait for its expiry.
        both[1 - first].send_signal(signal.SIGTERM)
        assert both[1 - first].wait(60) == 0
        assert server.get(LEASE)["spec"].get("holderIdentity", "") == ""
    print((tmp_path / f"{other}.log").read_text(), file=sys.stderr)
