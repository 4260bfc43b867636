"""The arithmetic of the bench of engines, its targets, and both engines' settings."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.bench.engines.engine import Engine
from tests.bench.engines.programs import SAMPLE_LIMIT, SCRAPE_S, prometheus, victoria
from tests.bench.engines.scrapes import longest_pause, missed, parsed
from tests.bench.engines.targets import AHEAD_S, Targets


def every(seconds: float, began: float, ended: float, value: float = 1.0) -> list[tuple[float, float]]:
    count = int((ended - began) / seconds) + 1
    return [(began + number * seconds, value) for number in range(count)]


def test_scrapes_that_are_a_little_late_are_not_missed() -> None:
    late = [(at + (number % 3) * 0.4, value) for number, (at, value) in enumerate(every(5, 102, 198))]
    assert missed({"t0": late}, 1, 5, 100, 200) == 0


def test_scrapes_that_lack_or_fail_are_missed_of_each_target() -> None:
    whole = every(5, 100, 200)
    with_gap = [(at, value) for at, value in whole if not 120 < at < 140]
    failed = [(at, 0.0 if at == 150 else value) for at, value in whole]
    assert missed({"t0": whole, "t1": with_gap, "t2": failed}, 3, 5, 100, 200) == 3 + 1
    assert missed({"t0": whole}, 2, 5, 100, 200) == 19


def test_the_longest_pause_is_that_without_any_series() -> None:
    samples = {"a": every(5, 100, 150), "b": every(5, 140, 200)}
    assert longest_pause(samples, 100, 200) == 5
    assert longest_pause({"a": every(5, 100, 150)}, 100, 200) == 50
    assert longest_pause({}, 100, 200) == 100


def test_marks_of_stale_series_are_no_samples() -> None:
    series = [{"metric": {"target": "t1"}, "values": [[1, "1"], [2, "NaN"], [3, None], [4, "0"]]}]
    assert parsed(series) == {"t1": [(1.0, 1.0), (4.0, 0.0)]}


def test_a_target_fails_and_is_ahead_while_a_file_says_so(tmp_path: Path) -> None:
    targets = Targets(tmp_path, 2, 3)
    text = targets.text(1)
    assert text
    assert len(text.splitlines()) == 3
    assert all(len(line.split()) == 2 for line in text.splitlines())
    (tmp_path / "down").write_text("1")
    assert targets.text(1) is None
    assert targets.text(0)
    (tmp_path / "down").write_text("")
    (tmp_path / "ahead").write_text("1")
    text = targets.text(1)
    assert text
    ahead_ms = int(text.splitlines()[0].split()[2])
    (tmp_path / "ahead").unlink()
    assert ahead_ms > AHEAD_S * 1000


@pytest.mark.parametrize("commands", [prometheus(Path("/p")), victoria(Path("/v"), Path("/a"))])
def test_both_engines_scrape_the_same_targets_with_the_same_limits(tmp_path: Path, commands: object) -> None:
    engine = Engine("one", tmp_path / "one", 9000, 4, commands, 2**30)  # type: ignore[arg-type]
    words = engine.commands(engine)
    config = yaml.safe_load((engine.folder / "config.yaml").read_text())
    (job,) = config["scrape_configs"]
    assert (config["global"]["scrape_interval"], job["sample_limit"]) == (f"{SCRAPE_S}s", SAMPLE_LIMIT)
    assert [each["labels"]["target"] for each in job["static_configs"]] == ["t0", "t1", "t2", "t3"]
    assert any("16MB" in word for word in words[0]) or job["body_size_limit"] == "16MB"
