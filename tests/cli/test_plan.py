from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from cli.views.estimate import dollars, with_prices
from cli.views.plan import counts, print_plan
from cluster.costs import CostItem, CostKind
from controllers.prices.estimate import NEVER_COUNTED, estimate
from inventories.report import HostReport, RunReport
from operations import build
from operations.build import Built
from operations.plan import Action, Component, ResourceChange, StackPlan
from stacks.automation import Summary
from stacks.errors import StackError
from stacks.events import ResourceStarted

DISK = "aws:ebs/volume:Volume"
PLAN = StackPlan(
    components=(
        Component(
            "horus-etcd",
            "etcd",
            (
                ResourceChange(Action.REPLACE, "data-1", DISK, "disk", ("availabilityZone",), "a disk"),
                ResourceChange(Action.REPLACE, "rule", "r", "security group ingress rule", ("port",)),
                ResourceChange(Action.DELETE, "way-out", "e", "public address"),
                ResourceChange(Action.UPDATE, "group", "g", "group of machines", ("maxSize", "tags")),
                *(ResourceChange(Action.CREATE, f"subnet-{n}", "s", "subnet") for n in range(9)),
                ResourceChange(Action.CREATE, "vpc", "v", "VPC"),
            ),
        ),
        Component("", "whole cluster", (ResourceChange(Action.CREATE, "ca", "a", "certificate authority"),)),
    ),
    unchanged=7,
    before=(
        CostItem(CostKind.MACHINE, "m7i.8xlarge", 3, 100),
        CostItem(CostKind.DISK, "gp3 100 GiB", 2, 2, 100),
        CostItem(CostKind.NAT),
    ),
    after=(
        CostItem(CostKind.MACHINE, "i4i.xlarge", 6, 6),
        CostItem(CostKind.MACHINE, "m7i.8xlarge", 3, 200),
        CostItem(CostKind.NAT),
    ),
)


def shown(monkeypatch, plan, total=None, *, colour=False):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=colour, width=200, highlight=False, soft_wrap=True)
    monkeypatch.setattr("cli.views.plan.console", console)
    print_plan(plan, total)
    return screen.getvalue()


def test_a_plan_is_shown_by_component_with_the_worst_first_and_new_resources_together(monkeypatch):
    assert shown(monkeypatch, PLAN).splitlines() == [
        "etcd  horus-etcd",
        "  ± disk                         data-1  replaced: availabilityZone cannot change in place; lost: a disk",
        "  ± security group ingress rule  rule  replaced: port cannot change in place",
        "  - public address               way-out  deleted",
        "  ~ group of machines            group  maxSize, tags",
        "  + 9 × subnet                   subnet-0, subnet-1, subnet-2 and 6 more",
        "  + VPC                          vpc",
        "whole cluster",
        "  + certificate authority  ca",
        "resources  after the update (and change)",
        "  machines      6 × i4i.xlarge (+6), 3–200 × m7i.8xlarge (+0 to +100)",
        "  disks         0 × gp3 100 GiB (-2)",
        "  NAT gateways  1",
        "lost permanently, because it cannot be recreated:",
        "  data-1: a disk",
    ]


@pytest.mark.parametrize(
    ("text", "colour"),
    [("data-1", "1;31"), ("rule", "1;35"), ("way-out", "1;35"), ("lost permanently", "1;31")],
)
def test_losses_are_red_and_replacements_and_deletions_magenta(monkeypatch, text, colour):
    line = next(line for line in shown(monkeypatch, PLAN, colour=True).splitlines() if text in line)
    assert f"\x1b[{colour}m" in line


def test_disks_are_summed_up(monkeypatch):
    plan = StackPlan(
        PLAN.components,
        after=(CostItem(CostKind.DISK, "gp3 128 GiB", 3, 200, 128), CostItem(CostKind.DISK, "io2", 1, 1, 10)),
    )
    assert "394–25,610 GiB of disks in all" in shown(monkeypatch, plan)


MACHINES = CostItem(CostKind.MACHINE, "m7i.large", 2, 30, type="m7i.large")
DISK_ITEM = CostItem(CostKind.DISK, "st1 500 GiB", gib=500, type="st1")
BUCKETS = CostItem(CostKind.BUCKET, least=4, most=4)
PRICED = StackPlan(PLAN.components, before=(replace(MACHINES, most=20),), after=(MACHINES, DISK_ITEM, BUCKETS))


@pytest.fixture
def aws(build):
    return build({"control_plane": {"cloud": "aws", "region": "us-east-1"}})


def test_each_item_has_its_price_an_hour_then_come_the_sum_and_what_is_not_in_it(monkeypatch, aws):
    lines = shown(monkeypatch, PRICED, estimate(aws, PRICED.after)).splitlines()
    assert lines[lines.index("resources  after the update (and change)") + 1 :][:7] == [
        "  machines  2–30 × m7i.large (+0 to +10) 0.20–3.02 $/h",
        "  disks     1 × st1 500 GiB (+1)",
        "  buckets   4 (+4)",
        "            500 GiB of disks in all",
        "            0.20–3.02 $ an hour in all, at list prices of 2026 in us-east-1",
        "            without a known price: disks (st1 500 GiB)",
        "            billed by use, not in the sum: buckets (what they hold, and requests), traffic, requests, logs, "
        + NEVER_COUNTED[-1],
    ]


def test_a_region_without_list_prices_is_named_with_those_that_have_them(monkeypatch, build):
    elsewhere = build({"control_plane": {"cloud": "aws", "region": "eu-central-1"}})
    text = shown(monkeypatch, PRICED, estimate(elsewhere, PRICED.after))
    assert "no list price is known in eu-central-1, only in us-east-1" in text
    assert "$" not in text


def test_what_will_be_gone_has_no_sum(monkeypatch, aws):
    gone = StackPlan(PLAN.components, before=PRICED.after)
    assert "$" not in shown(monkeypatch, gone, estimate(aws, gone.after))
    assert "list price" not in shown(monkeypatch, gone, estimate(aws, gone.after))


def test_a_plan_of_things_without_prices_has_no_sum(monkeypatch, aws):
    unknown = StackPlan(PLAN.components, after=(DISK_ITEM,))
    text = shown(monkeypatch, unknown, estimate(aws, unknown.after))
    assert "without a known price: disks (st1 500 GiB)" in text
    assert "$" not in text


def test_json_has_the_price_of_each_item_and_the_sums(aws):
    takes = with_prices(PRICED.to_json()["takes"], PRICED, aws)
    assert [item["dollars_an_hour"] for item in takes["after"]] == [{"least": 0.2016, "most": 3.024}, None, None]
    assert takes["after"][0]["what"] == "m7i.large"
    assert json.loads(json.dumps(takes["dollars_an_hour"]))["after"] == {
        "region": "us-east-1",
        "currency": "USD",
        "least": 0.2016,
        "most": 3.024,
        "years": [2026, 2026],
        "without_price": [{"kind": "disks", "what": "st1 500 GiB"}],
        "by_use": {"buckets": "what they hold, and requests"},
        "never_counted": ["traffic", "requests", "logs", "what volumes, backups and buckets hold"],
    }
    assert takes["dollars_an_hour"]["before"]["most"] == 2.016


def test_a_lab_has_no_prices(lab):
    takes = PRICED.to_json()["takes"]
    assert with_prices(takes, PRICED, lab) == takes


@pytest.mark.parametrize(
    ("least", "most", "text"),
    [
        (1234.5, 1234.5, "1,234.50"),
        (0.0, 2.0, "0.00–2.00"),
        (0.054, 0.27, "0.054–0.27"),
        (0.0225, 0.0225, "0.0225"),
        (0.00001, 0.1, "<0.0001–0.10"),
    ],
)
def test_small_amounts_have_more_digits(least, most, text):
    assert dollars(least, most) == text


def test_an_empty_plan_prints_nothing(monkeypatch):
    assert shown(monkeypatch, StackPlan(unchanged=9, before=PLAN.before, after=PLAN.before)) == ""
    assert counts(StackPlan()) == "nothing to change"
    assert counts(PLAN) == "2 to replace, 1 to delete, 1 to update, 11 to create"


def previewed(monkeypatch, answer):
    monkeypatch.setattr(build, "preview", answer)


def test_a_preview_shows_the_plan_and_the_changes_of_workers(menagerie, monkeypatch):
    workers = RunReport({"worker-1": HostReport(9, 2, 0, 0, 0, 1.0)}, changes={"worker-1": ("Says hello",)})
    previewed(monkeypatch, lambda *_: Built(Summary({"create": 14}, 0.0), workers, None, PLAN))
    ran = menagerie("up", "lab", "--dry-run")
    assert ran.code == 0
    assert "± disk" in ran.out
    assert ran.out.splitlines()[-2:] == [
        "lab: 2 to replace, 1 to delete, 1 to update, 11 to create; workers: 2 tasks would change; nothing was changed",
        "worker-1: Says hello",
    ]


def test_json_has_the_plan_next_to_the_counts(menagerie, monkeypatch):
    previewed(monkeypatch, lambda *_: Built(Summary({"create": 14}, 0.0), None, None, PLAN))
    document = menagerie("up", "lab", "--dry-run", "--json").json
    assert (document["stack"]["changes"], document["workers"]) == ({"create": 14}, None)
    etcd, _ = document["plan"]["components"]
    assert etcd["changes"][0] == {
        "action": "replace",
        "name": "data-1",
        "type": DISK,
        "what": "disk",
        "because": ["availabilityZone"],
        "loses": "a disk",
    }
    assert document["plan"]["takes"]["after"][0] == {
        "kind": "machines",
        "what": "i4i.xlarge",
        "least": 6,
        "most": 6,
        "gib": 0,
        "type": "",
        "iops": 0,
        "spot": False,
    }


def test_a_preview_that_the_engine_refuses_shows_the_plan_so_far(menagerie, monkeypatch):
    def refused(_cluster, _steps, _selection, planner):
        planner.hear(ResourceStarted("delete", "urn:pulumi:lab::m::a:b:Eip::way-out", "a:b:Eip", "", False, {}, None))
        raise StackError("marked for protection")

    previewed(monkeypatch, refused)
    ran = menagerie("up", "lab", "--dry-run")
    assert ran.code == 1
    assert "- public address  way-out  deleted" in ran.out
    assert "marked for protection" in ran.err
    assert menagerie("up", "lab", "--dry-run", "--json").json["error"]["code"] == "stack"
