"""What the pages say of made-up clusters: of healthy, broken, silent, hostile and large ones."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from components.drawing.live import Health
from controllers.planner import Fate
from controllers.web.facts import ClusterFacts
from controllers.web.parts import PATIENCE_S, Part
from operations.record.ledger import Ledger
from operations.status.model import StatusItem
from tests.web import support
from tests.web.bills import FIRST, MONTH, YESTERDAY, day_of, kept
from tests.web.support import NOW_S, SECRET, app, ask, capacity, facts, page, read, record, status, wait

EVIL = '<script>alert("&")</script>'


class Parsed(HTMLParser):
    """A page: elements with their attributes, those left open, and the text of each element with an ID."""

    _VOID = ("meta", "link", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements, self.open, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self._VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def plain(self) -> str:
        return " ".join(" ".join(self.text).split())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


PATHS = (
    *("", "capacity/", "cluster/lab/", "cluster/lab/operation/id1/", "bill/", f"bill/{YESTERDAY}/"),
    f"bill/{MONTH}/cluster/lab/team/robotics/",
)


@pytest.fixture
def billed(lab):
    """Return a cluster with a ledger."""
    return facts(lab, bills=read(kept("lab")))


@pytest.mark.parametrize("path", PATHS)
def test_a_page_has_landmarks_one_heading_whole_elements_and_ids_that_are_unique(billed, path):
    parsed = Parsed(page(path, billed))
    assert parsed.open == []
    ids = [attributes["id"] for _, attributes in parsed.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert [len(parsed.all(tag)) for tag in ("h1", "main", "header", "footer")] == [1, 1, 1, 1]
    names = [each["aria-label"] for each in parsed.all("nav")]
    assert names[0] == "Pages" and len(names) == len(set(names))
    levels = [int(tag[1]) for tag, _ in parsed.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert parsed.all("html") == [{"lang": "en"}]
    assert all(set(cell) & {"scope"} for cell in parsed.all("th"))
    labelled = [each["aria-labelledby"] for _, each in parsed.elements if "aria-labelledby" in each]
    assert [name for names in labelled for name in names.split() if name not in ids] == []


@pytest.mark.parametrize("path", PATHS)
def test_a_page_has_no_inline_script_or_style_and_loads_only_its_own_files(billed, path):
    parsed = Parsed(page(path, billed))
    assert parsed.all("style") == []
    assert [each for each in parsed.all("script") if "src" not in each] == []
    assert [name for _, each in parsed.elements for name in each if name == "style" or name.startswith("on")] == []
    for _, attributes in parsed.elements:
        for name in ("src", "href"):
            assert "//" not in attributes.get(name, "")


@pytest.mark.parametrize("path", PATHS)
def test_every_link_of_a_page_leads_to_something(billed, path):
    asked = app(billed)
    parsed = Parsed(page(path, billed))
    ids = {attributes.get("id") for _, attributes in parsed.elements}
    targets = [each["href"] for tag in ("a", "link") for each in parsed.all(tag)]
    targets += [each["src"] for each in parsed.all("script")]
    assert targets
    for target in targets:
        if target.startswith("#"):
            assert target[1:] in ids
            continue
        parts = f"/{SECRET}/{path}".split("/")[:-1]
        for word in target.split("/"):
            if word == "..":
                parts.pop()
            elif word != ".":
                parts.append(word)
        assert ask(asked, "/".join(parts)).status == 200, target


def test_the_fleet_has_a_row_for_each_cluster_with_state_nodes_holder_and_age(lab):
    held = read(Ledger("the bucket", record("upgrade", 0, ended=None, result=""), True, 3.0, ()))
    text = Parsed(page("", facts(lab, operations=held))).plain
    assert "lab well 3 of 3 mia@ops-2 (pid 4711" in text
    assert "5 s ago" in text


def test_an_unhealthy_cluster_shows_what_is_wrong_first_and_the_command_that_helps(lab):
    wrong = StatusItem("api", "CoreDNS", False, "0 of 2 replicas", "./menagerie up lab")
    text = Parsed(page("", facts(lab, status=read(status("lab", wrong))))).plain
    assert "not well" in text
    assert "CoreDNS: 0 of 2 replicas ./menagerie up lab" in text


def test_a_cluster_that_is_not_built_or_was_not_read_yet_is_shown_as_such(lab):
    fresh = ClusterFacts("koala")
    unbuilt = replace(facts(lab), status=read(None), capacity=read(None))
    text = Parsed(page("", fresh, unbuilt)).plain
    assert "koala being read not read yet first look at it" in text
    assert "lab not built" in text
    for path in ("cluster/koala/", "cluster/lab/", "capacity/"):
        assert page(path, fresh, unbuilt)


def test_a_cluster_that_hangs_keeps_its_last_data_with_their_age_and_breaks_no_page(lab):
    old = facts(lab)
    hangs = replace(old, status=Part(old.status.value, NOW_S - 700, began_s=NOW_S - PATIENCE_S - 60))
    for path in ("", "cluster/lab/"):
        text = Parsed(page(path, hangs)).plain
        assert "no answer for 90 s" in text
        assert "12 min ago" in text
    assert "quorum of main" in Parsed(page("cluster/lab/", hangs)).plain


def test_an_error_of_one_part_is_named_and_the_other_parts_are_shown(lab):
    broken = facts(lab, operations=Part(problem="the bucket does not answer"))
    text = Parsed(page("cluster/lab/", broken)).plain
    assert "operations: the bucket does not answer" in text
    assert "3 healthy" in text


def test_a_spec_with_errors_is_shown_in_its_row():
    text = Parsed(page("", ClusterFacts("koala", Part(problem="koala/cluster.yaml:3: error[CFG-001]\nmore")))).plain
    assert "koala unknown not read yet koala/cluster.yaml:3: error[CFG-001] ./menagerie status koala" in text


def test_a_node_that_is_down_is_named_and_colours_its_pool_and_its_rack_with_a_mark_and_words(lab):
    (pool, host), *_ = lab.host_list()
    bad = {host.name: (Health.DOWN, "NotReady")}
    text = page("cluster/lab/", facts(lab, capacity=read(capacity(lab, bad=bad))))
    parsed = Parsed(text)
    groups = {each["id"]: each["class"] for each in parsed.all("g")}
    assert groups[f"pool-{pool}"] == "part live-partly"
    assert groups["band-etcd-main"] == "part live-healthy"
    assert text.count('class="badge"') >= 2
    assert f"{host.name} {pool} NotReady" in parsed.plain
    assert f"pool {pool} partly down 2 Ready, 1 NotReady, of 3" in parsed.plain
    assert "partly down: 2 Ready, 1 NotReady, of 3. pool" in parsed.plain


def test_capacity_lists_pools_and_each_reason_to_wait_once_with_how_many_wait(lab):
    waits = (wait("no pool has a host with 16 GPUs", "a/big-0", "a/big-1", fate=Fate.NEVER), wait("is new", "b/x"))
    text = Parsed(page("capacity/", facts(lab, capacity=read(capacity(lab, waits=waits))))).plain
    assert "Waiting pods: 3" in text
    assert "a/big-0 and 1 like it can never start: no pool has a host with 16 GPUs (waits since 10 min ago)" in text
    assert "8 of 24" in text


def test_an_operation_has_its_steps_its_end_and_its_whole_error(lab):
    ended = record("upgrade", 1, result="failed", error="a host failed\nin its second line")
    own = facts(lab, operations=read(Ledger("the bucket", None, False, 0.0, (ended,))))
    text = Parsed(page("cluster/lab/operation/id1/", own)).plain
    assert "failed" in text
    assert "a host failed in its second line" in text
    assert "hosts at" in text and "hosts=3" in text


def test_names_from_clusters_are_escaped_on_every_page(lab):
    evil = StatusItem(EVIL, EVIL, False, EVIL, EVIL)
    own = facts(
        lab,
        status=read(status("lab", evil)),
        capacity=read(capacity(lab, bad={lab.host_list()[0][1].name: (Health.DOWN, EVIL)}, waits=[wait(EVIL, EVIL)])),
        operations=Part(
            read(Ledger(EVIL, None, False, 0.0, (record("up", 1, about=EVIL, error=EVIL),))).value, NOW_S, EVIL
        ),
    )
    evil_day = day_of(EVIL, YESTERDAY, robots=EVIL)
    own = replace(own, bills=Part(kept(EVIL, [evil_day], wrong={FIRST: EVIL}), NOW_S, EVIL))
    evil_name = replace(own, name="x&y<z>", spec=Part(problem=EVIL))
    for path in (*PATHS, "cluster/x&y<z>/"):
        text = page(path, own, evil_name)
        assert "<script>alert" not in text
        assert "<z>" not in text
    assert "&lt;script&gt;alert" in page("cluster/lab/", own)


@pytest.mark.parametrize(
    "path", ["cluster/koala/", "cluster/lab/operation/none/", "cluster/lab", "../etc/passwd", "static/app.py"]
)
def test_an_unknown_page_is_404_with_a_link_to_the_fleet(lab, path):
    answer = ask(app(facts(lab)), f"/{SECRET}/{path}")
    assert answer.status in (307, 404)
    assert answer.status == 307 or "The fleet</a>" in answer.text


def test_7500_nodes_are_summed_up_and_the_page_stays_small(build):
    large = support.large(build)
    bad = {f"gpu-{number:04}": (Health.DOWN, "NotReady") for number in range(500)}
    own = facts(
        large, capacity=read(capacity(large, bad=bad, waits=[wait(f"reason {n}", f"a/{n}") for n in range(3000)]))
    )
    text = page(f"cluster/{large.name}/", own)
    plain = Parsed(text).plain
    assert "7,000 healthy, 500 down" in plain
    assert "And 400 more." in plain
    assert len(text) < 600_000
    assert "And 2900 more reasons" in Parsed(page("capacity/", own)).plain


def test_the_script_of_pages_names_only_elements_that_pages_have(lab):
    script = ask(app(), f"/{SECRET}/static/page.js").text
    ids = {each.get("id") for _, each in Parsed(page("cluster/lab/", facts(lab))).elements}
    named = set(re.findall(r'getElementById\("([^"]+)"\)', script))
    assert named and named <= ids
    assert not re.search(r"innerHTML|eval\(|document\.write", script)
