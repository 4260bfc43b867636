"""Parts of a library that load when they are used."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clients.on_demand import postpone
from cluster.project import ROOT

RUNS = "import time\nWORD = 'ready'\ntime.sleep(0.05)\nfrom zoo.part import helper\nANSWER = helper.ANSWER\n"


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library whose part notes each run."""
    part = tmp_path / "zoo" / "part"
    part.mkdir(parents=True)
    (tmp_path / "zoo" / "__init__.py").write_text("from . import part\n")
    (part / "__init__.py").write_text(f"open({str(tmp_path / 'runs')!r}, 'a').write('x')\n{RUNS}")
    (part / "helper.py").write_text("import zoo.part\nANSWER = zoo.part.WORD + ' early'\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("zoo", "zoo.part", "zoo.part.helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path / "runs"


def test_a_part_runs_once_when_it_is_used_and_may_import_itself(zoo: Path) -> None:
    postpone("zoo", ("part", "missing"))
    import zoo as library  # type: ignore[import-not-found]

    assert not zoo.exists()
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(library.part.ANSWER)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (answers, zoo.read_text()) == (["ready early"] * 4, "x")
    with pytest.raises(AttributeError, match=r"zoo\.part.*nothing"):
        _ = library.part.nothing


def test_what_fails_while_it_loads_fails_again(zoo: Path) -> None:
    (zoo.parent / "zoo" / "part" / "__init__.py").write_text("import nowhere_at_all\n")
    postpone("zoo", ("part",))
    import zoo as library  # type: ignore[import-not-found]

    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
            _ = library.part.ANSWER


def test_commands_load_only_the_parts_of_kubernetes_library_that_they_use() -> None:
    program = (
        "import sys, cli, operations.status\n"
        "print([name for name in sys.modules if name.startswith(('google.auth', 'requests_oauthlib'))])\n"
        "from kubernetes import config, stream\n"
        "print(config.load_kube_config.__module__, stream.ws_client.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "kubernetes.config.kube_config kubernetes.stream.ws_client"]
