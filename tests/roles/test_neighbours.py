"""menagerie-neighbours on a recorded /proc, and on the real one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "roles" / "neighbours" / "files" / "menagerie_neighbours.py"
HEAD = (
    "entries  allocs   destroys hash_grows lookups  hits     res_failed rcv_probes_mcast rcv_probes_ucast "
    "periodic_gc_runs forced_gc_runs unresolved_discards table_fulls\n"
)
METRICS = "/var/lib/prometheus/node-exporter/menagerie_neighbours.prom"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("menagerie_neighbours", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(entries: int, *fulls: int) -> str:
    """Return rows as Linux 6.18 prints them: one line per CPU, each with the table's entries."""
    between = "00001711 000017f9 00000002   00006966 0000291b 00000020   00000000 00000000 00000000 00000000 00000000"
    return HEAD + "".join(f"{entries:08x} {between} {full:08x}\n" for full in fulls)


@pytest.fixture
def kernel(tmp_path: Path):
    """Return a function that writes a root with the kernel's files for IPv4 and, if given, IPv6."""

    def make(arp: str = "", ndisc: str = "", third: int = 1024, settings: str = "") -> Path:
        files = {"/proc/net/stat/arp_cache": arp, "/proc/net/stat/ndisc_cache": ndisc}
        for family, table in (("ipv4", arp), ("ipv6", ndisc)):
            files[f"/proc/sys/net/{family}/neigh/default/gc_thresh3"] = f"{third}\n" if table else ""
        files["/etc/sysctl.d/90-menagerie-neighbours.conf"] = settings
        for path, text in files.items():
            target = tmp_path / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            if text:
                target.write_text(text)
        return tmp_path

    return make


def test_counters_of_all_cpus_are_summed_but_the_shared_entries_are_not(program) -> None:
    assert program.counters(rows(0x400, 0x10, 0x2)) == (1024, 18)


def test_a_quiet_table_only_writes_metrics(program, kernel, capsys) -> None:
    root = kernel(rows(17, 0, 0), rows(3, 0, 0))
    assert program.main(["record", METRICS], str(root)) == 0
    assert capsys.readouterr().out == ""
    written = (root / METRICS.lstrip("/")).read_text().splitlines()
    assert 'menagerie_neighbours_entries{family="ipv4"} 17' in written
    assert 'menagerie_neighbours_limit{family="ipv6"} 1024' in written
    assert 'menagerie_neighbours_overflows_total{family="ipv4"} 0' in written
    assert sum(line.startswith("# TYPE ") for line in written) == 3
    assert [path.name for path in (root / METRICS.lstrip("/")).parent.iterdir()] == [Path(METRICS).name]


def test_each_new_overflow_is_an_error_in_the_journal_once(program, kernel, capsys) -> None:
    for fulls, message in (
        (0x20, "overflowed 32 times"),
        (0x20, ""),
        (0x25, "overflowed 5 times"),
        (0x3, "overflowed 3 "),
    ):
        root = kernel(rows(900, fulls))
        assert program.main(["record", METRICS], str(root)) == 0
        out = capsys.readouterr().out
        assert (message in out and out.startswith("<3>neighbour table of ipv4")) if message else out == ""


def test_a_nearly_full_table_is_a_warning(program, kernel, capsys) -> None:
    assert program.main(["check"], str(kernel(rows(921, 0)))) == 0
    assert program.main(["check"], str(kernel(rows(922, 0)))) == 1
    program.main(["record", METRICS], str(kernel(rows(922, 0))))
    assert capsys.readouterr().out.splitlines()[-1].startswith("<4>neighbour table of ipv4 has 922 entries")


def test_a_table_smaller_than_its_file_is_reported_with_the_fix(program, kernel, capsys) -> None:
    settings = "net.ipv4.neigh.default.gc_thresh3 = 16384\nnet.ipv6.neigh.default.gc_thresh3 = 1024\n"
    assert program.main(["check"], str(kernel(rows(1, 0), rows(1, 0), settings=settings))) == 1
    out = capsys.readouterr().out.splitlines()
    wrong = [line for line in out if "smaller" in line]
    assert wrong == [out[-1]]
    assert out[-1].startswith("neighbour table of ipv4 is smaller than /etc/sysctl.d/90-menagerie-neighbours.conf")
    assert out[-1].endswith("gc_thresh3 1024, wanted 16384; sysctl --system")


def test_outside_the_first_network_namespace_there_is_nothing_to_check(program, kernel, capsys) -> None:
    assert program.main(["record", METRICS], str(kernel())) == 0
    assert "not the first network namespace" in capsys.readouterr().out


def test_a_check_writes_nothing(program, kernel) -> None:
    root = kernel(rows(922, 4))
    before = sorted(root.rglob("*"))
    program.main(["check"], str(root))
    assert sorted(root.rglob("*")) == before


def test_wrong_arguments_print_the_usage(program, capsys) -> None:
    assert program.main([]) == program.main(["record"]) == program.main(["check", "x"]) == 64
    assert "menagerie-neighbours check" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/proc/net/stat/arp_cache"), reason="not the first network namespace")
def test_the_running_kernel_can_be_checked() -> None:
    done = subprocess.run([sys.executable, PROGRAM, "check"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1)
    third = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3").read_text().strip()
    assert f"gc_thresh3 {third}" in done.stdout.splitlines()[0]
