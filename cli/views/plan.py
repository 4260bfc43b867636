"""A plan for people: by component, losses in red, and the resources that the whole needs with their list prices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from cli.output import console
from cli.views.estimate import dollars, sums
from cluster.costs import CostItem, CostKind
from controllers.prices.estimate import Estimate
from operations.plan import Action, Component, ResourceChange, StackPlan

_MARKS = {
    Action.CREATE: ("+", "green"),
    Action.UPDATE: ("~", "yellow"),
    Action.REPLACE: ("±", "bold magenta"),
    Action.DELETE: ("-", "bold magenta"),
}
_LOSS = "bold red"
_NAMES = 3
"""How many new resources of one type are named."""


def print_plan(plan: StackPlan, costs: Estimate | None = None) -> None:
    """Print every component with its changes, and the resources that the whole needs; nothing if nothing would change.

    costs: of the resources after the update.
    """
    for component in plan.components:
        console.print(_head(component))
        for line in _changes(component.changes):
            console.print(line)
    if plan.components:
        for line in _takes(plan, costs):
            console.print(line)
    if plan.losses:
        console.print(Text("lost permanently, because it cannot be recreated:", style=_LOSS))
        for change in plan.losses:
            console.print(Text(f"  {change.name}: {change.loses}", style=_LOSS))


def counts(plan: StackPlan) -> str:
    """Return counts, the worst first: ``3 to create, 1 to replace``."""
    parts = [f"{plan.count(action)} to {action}" for action in Action if plan.count(action)]
    return ", ".join(parts) or "nothing to change"


def _head(component: Component) -> Text:
    name = f"{component.name} " if component.name else ""
    return Text.assemble((component.what, "bold"), f"  {name}".rstrip())


def _changes(changes: Iterable[ResourceChange]) -> Iterator[Text]:
    """Yield a line per change; new resources of one type share a line."""
    shown = tuple(changes)
    created: dict[str, list[str]] = {}
    for change in shown:
        if change.action is Action.CREATE:
            created.setdefault(change.what, []).append(change.name)
    width = max((len(_counted(what, len(names))) for what, names in created.items()), default=0)
    width = max(width, *(len(change.what) for change in shown))
    for change in shown:
        if change.action is not Action.CREATE:
            yield _line(change, width)
    for what, names in created.items():
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        mark, colour = _MARKS[Action.CREATE]
        line = f"{_counted(what, len(names)):<{width}}  {', '.join(names[:_NAMES])}{more}"
        yield Text.assemble("  ", (mark, colour), f" {line}")


def _counted(what: str, number: int) -> str:
    return what if number == 1 else f"{number} × {what}"


def _line(change: ResourceChange, width: int) -> Text:
    mark, colour = _MARKS[change.action]
    style = _LOSS if change.loses else colour if change.action is not Action.UPDATE else ""
    line = Text.assemble("  ", (mark, colour), " ", (f"{change.what:<{width}}  {change.name}", style))
    because = ", ".join(change.because)
    match change.action:
        case Action.REPLACE:
            line.append(f"  replaced: {because} cannot change in place" if because else "  replaced", style=style)
        case Action.DELETE:
            line.append("  deleted", style=style)
        case _:
            line.append(f"  {because}", style="dim")
    if change.loses:
        line.append(f"; lost: {change.loses}", style=_LOSS)
    return line


def _takes(plan: StackPlan, costs: Estimate | None) -> Iterator[Text]:
    """Yield what costs money after the update, with the change in brackets."""
    if not plan.before and not plan.after:
        return
    yield Text.assemble(("resources", "bold"), "  after the update", "" if not plan.before else " (and change)")
    before = {(item.kind, item.what): item for item in plan.before}
    after = {(item.kind, item.what): item for item in plan.after}
    kinds = sorted({kind for kind, _ in before | after}, key=list(CostKind).index)
    width = max(len(kind) for kind in kinds)
    for kind in kinds:
        own = [key for key in dict.fromkeys((*after, *before)) if key[0] is kind]
        items = [_item(after.get(key), before.get(key), bool(plan.before), costs) for key in own]
        yield Text.assemble(f"  {kind:<{width}}  ", *(part for item in items for part in (item, ", ")))[:-2]
    least, most = plan.disk_gib(plan.after)
    if most:
        yield Text(f"  {'':<{width}}  {_range(least, most)} GiB of disks in all", style="dim")
    for text in sums(costs) if costs else ():
        yield Text(f"  {'':<{width}}  {text}")


def _item(now: CostItem | None, then: CostItem | None, compare: bool, costs: Estimate | None) -> Text:
    """Return an item such as ``3–200 × m7i.8xlarge (+100) 4.84–322.56 $/h``."""
    item = now or then
    assert item is not None
    least, most = (now.least, now.most) if now else (0, 0)
    line = Text(f"{_range(least, most)}{f' × {item.what}' if item.what else ''}")
    grown = (least - (then.least if then else 0), most - (then.most if then else 0))
    if compare and any(grown):
        line.append(f" ({_signed(grown)})", style="yellow")
    if now and costs and (price := costs.price_of(now)):
        line.append(f" {dollars(*price)} $/h", style="dim")
    return line


def _signed(grown: tuple[int, int]) -> str:
    least, most = (f"{number:+d}" for number in grown)
    return least if least == most else f"{least} to {most}"


def _range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"
