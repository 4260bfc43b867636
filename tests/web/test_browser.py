"""The pages in a real browser: two widths, keyboard alone, names for screen readers, contrast, and refreshing."""

from __future__ import annotations

import re

import pytest

from components.drawing.live import Health
from controllers.web.app import EVERY_S, application
from controllers.web.facts import Site
from controllers.web.guards import LinkGuard
from controllers.web.serving import listening, serving
from operations.status.model import StatusItem
from tests.web import support
from tests.web.bills import MONTH, YESTERDAY, kept
from tests.web.browser import chromium
from tests.web.support import NOW_S, capacity, facts, read, status, wait

PATHS = (
    *("", "capacity/", "cluster/lab/", "cluster/lab/operation/id1/", "bill/", f"bill/{YESTERDAY}/"),
    f"bill/{MONTH}/team/robotics/",
)
WIDTHS = (400, 1280)


class Served:
    """A server of made-up clusters. clusters: what it shows, which tests change. url: its link."""

    def __init__(self, *clusters):
        self.clusters = clusters
        listener = listening("127.0.0.1", 0)
        port = listener.getsockname()[1]
        guard = LinkGuard("127.0.0.1", port)
        self.url = f"http://127.0.0.1:{port}/{guard.secret}/"
        self.running = serving(application(Site(lambda: self.clusters, lambda: NOW_S), guard), listener)


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture
def own(lab):
    """Return a cluster with something of everything: a node that is down, an item that is not ok, pods that wait."""
    (_, host), *_ = lab.host_list()
    evil = '<img src=x onerror="document.title=1">'
    bad = {host.name: (Health.DOWN, "NotReady")}
    return facts(
        lab,
        status=read(status("lab", StatusItem("add-ons", "CoreDNS", False, evil, "./menagerie up lab"))),
        capacity=read(capacity(lab, bad=bad, waits=[wait("no room", "a/b"), wait(evil, evil)])),
        bills=read(kept("lab")),
    )


@pytest.fixture
def served(own):
    made = Served(own)
    with made.running:
        yield made


@pytest.fixture
def opened(browser):
    """Return a function that opens a page at a width, and fails the test if the browser complains about anything."""
    contexts, complaints = [], []

    def open_(url, width=1280, **settings):
        context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        assert page.goto(url).status == 200
        return page

    open_.complaints = complaints
    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", PATHS)
def test_a_page_fits_the_width_and_its_style_and_script_work_under_its_policy(served, opened, path, width):
    page = opened(served.url + path, width)
    sizes = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert sizes[0] <= sizes[1]
    assert page.evaluate("getComputedStyle(document.body).marginTop") == "0px"
    assert page.get_by_role("button", name="Pause refreshing").is_visible()
    assert page.title().endswith("Menagerie")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", PATHS)
def test_axe_has_nothing_to_complain_about(served, opened, path, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    # The policy of the pages forbids axe too.
    page = opened(served.url + path, width, color_scheme=scheme, bypass_csp=True)
    results = Axe().run(page)
    assert [
        (each["id"], [node["target"] for node in each["nodes"]][:5]) for each in results.response["violations"]
    ] == []
    assert len(results.response["passes"]) > 15


def test_a_screen_reader_gets_landmarks_names_and_the_state_of_each_part_in_words(served, opened):
    page = opened(f"{served.url}cluster/lab/")
    assert page.get_by_role("navigation", name="Pages").get_by_role("link").all_inner_texts() == [
        "Fleet",
        "Capacity",
        "Bill",
    ]
    assert page.get_by_role("main").get_by_role("heading", level=1).inner_text() == "Cluster lab"
    assert page.get_by_role("region", name=re.compile("Drawing of the cluster")).count() == 1
    legend = page.get_by_role("list", name="Colours and marks of the drawing").get_by_role("listitem").all_inner_texts()
    assert [text.split(maxsplit=1)[-1] for text in legend] == [
        "healthy",
        "partly down",
        "down",
        "out of service",
        "unknown",
    ]
    row = page.get_by_role("row", name=re.compile("^pool workers partly down"))
    assert row.get_by_role("rowheader").inner_text() == "pool workers"
    tree = page.locator("svg").aria_snapshot()
    assert "partly down: 2 Ready, 1 NotReady, of 3. pool workers" in tree


def test_a_screen_reader_gets_the_charts_of_a_bill_by_name_and_their_numbers_as_tables(served, opened):
    page = opened(f"{served.url}bill/")
    names = page.get_by_role("navigation").evaluate_all("all => all.map(each => each.getAttribute('aria-label'))")
    assert names == ["Pages", "Months and days"]
    assert page.get_by_role("img", name="used 29.6%, held idle 33.1%, free 37.3%").count() == 1
    assert page.get_by_role("img", name=re.compile("GPU hours of each day by use")).count() == 1
    assert page.get_by_role("region", name=re.compile("Chart of days")).count() == 1
    page.locator("#days-details summary").click()
    row = page.get_by_role("row", name=re.compile(f"^{YESTERDAY} 168.0 192.0 216.0"))
    assert row.get_by_role("rowheader").inner_text() == str(YESTERDAY)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_parts_of_a_chart_differ_from_the_paper_and_from_each_other(served, opened, scheme):
    page = opened(f"{served.url}bill/", color_scheme=scheme)
    fills = page.locator(".bar rect").evaluate_all("all => all.map(each => getComputedStyle(each).fill)")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert len({*fills, paper}) == len(fills) + 1 == 4
    strokes = page.locator(".bar rect").evaluate_all("all => all.map(each => getComputedStyle(each).stroke)")
    assert set(strokes) == {paper}


@pytest.mark.parametrize("path", ["cluster/lab/", "bill/"])
def test_the_keyboard_alone_reaches_everything_and_shows_where_it_is(served, opened, path):
    page = opened(f"{served.url}{path}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    targets, outlines = [], set()
    for _ in range(200):
        page.keyboard.press("Tab")
        state = page.evaluate(
            "[document.activeElement.tagName, document.activeElement.getAttribute('href') || document.activeElement.id,"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        if state[0] == "BODY":
            break
        targets.append(state[1])
        outlines.add(state[2])
    shown = "all => all.filter(each => each.checkVisibility()).map(each => each.getAttribute('href'))"
    links = page.eval_on_selector_all("main a", shown)
    assert links and set(links) <= set(targets)
    assert {"pause", "drawing" if path.startswith("cluster") else "chart"} <= set(targets)
    assert "none" not in outlines


def test_the_skip_link_moves_the_focus_to_the_content(served, opened):
    page = opened(served.url)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_a_row_marks_its_part_in_the_drawing(served, opened):
    page = opened(f"{served.url}cluster/lab/")
    page.get_by_role("link", name="pool workers").click()
    assert page.evaluate("document.querySelector(':target').id") == "pool-workers"
    assert page.evaluate("parseFloat(getComputedStyle(document.querySelector(':target > rect')).strokeWidth)") == 5


def refreshes(page):
    """Let the page's own timer come round once, and wait for what it fetches."""
    with page.expect_response(lambda answer: answer.request.resource_type == "fetch"):
        page.clock.run_for(EVERY_S * 1000 + 100)


def test_new_data_appears_and_focus_and_open_details_stay(served, browser, own):
    context = browser.new_context()
    page = context.new_page()
    page.clock.install()
    page.goto(f"{served.url}cluster/lab/")
    page.locator("#parts-details summary").click()
    assert page.evaluate("document.getElementById('parts-details').open") is False
    link = page.locator("#history a").first
    link.focus()
    focused = link.get_attribute("href")
    served.clusters = (facts(own.spec.value.cluster),)
    refreshes(page)
    page.get_by_text("3 healthy", exact=True).wait_for()
    assert page.evaluate("document.getElementById('parts-details').open") is False
    assert page.evaluate("document.activeElement.getAttribute('href')") == focused
    context.close()


def test_a_paused_page_asks_for_nothing(served, browser):
    context = browser.new_context()
    page = context.new_page()
    page.clock.install()
    page.goto(served.url)
    page.get_by_role("button", name="Pause refreshing").click()
    assert page.get_by_role("button", name="Pause refreshing", pressed=True).count() == 1
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(EVERY_S * 5000)
    assert asked == []
    page.get_by_role("button", name="Pause refreshing").click()
    refreshes(page)
    assert asked
    context.close()


def test_a_server_that_is_gone_is_announced_and_the_page_stays(own, browser):
    made = Served(own)
    context = browser.new_context()
    with made.running:
        page = context.new_page()
        page.clock.install()
        page.goto(made.url)
    page.clock.run_for(EVERY_S * 1000 + 100)
    page.get_by_role("status").get_by_text("The server does not answer").wait_for()
    assert page.get_by_role("link", name="lab").count() == 1
    context.close()


def test_without_scripts_the_page_is_whole_and_asks_the_browser_to_load_it_again(served, opened):
    page = opened(served.url, java_script_enabled=False)
    assert page.get_by_role("link", name="lab").count() == 1
    assert page.get_by_role("button").count() == 0
    assert 'http-equiv="refresh"' in page.content()


def test_the_browser_shows_a_cluster_of_7500_nodes_at_both_widths(build, browser, opened):
    large = support.large(build)
    bad = {f"gpu-{number:04}": (Health.DOWN, "NotReady") for number in range(0, support.LARGE, 50)}
    made = Served(facts(large, capacity=read(capacity(large, bad=bad))))
    with made.running:
        for width in WIDTHS:
            page = opened(f"{made.url}cluster/{large.name}/", width)
            assert page.locator("g.live-partly").count() > 50
            sizes = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
            assert sizes[0] <= sizes[1]
