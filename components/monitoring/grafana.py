"""Dashboards as Grafana's JSON, by grafana-foundation-sdk: its classes are generated from Grafana's own schema.

The library is an extra, and imported when a dashboard is written: nothing else needs it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from components.control_plane.objects import Object
from components.monitoring.dashboards.model import Dashboard, Panel, Variable

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.dashboard import DatasourceVariable, QueryVariable
    from grafana_foundation_sdk.builders.stat import Panel as StatPanel
    from grafana_foundation_sdk.builders.timeseries import Panel as TimeseriesPanel

_SOURCE = "datasource"
"""Name of the variable by which a reader chooses the Prometheus."""


def grafana(dashboard: Dashboard) -> Object:
    """Return a dashboard as Grafana imports it. Raises ModuleNotFoundError without the extra."""
    from grafana_foundation_sdk.builders import dashboard as dashboards  # noqa: PLC0415 - extra: dashboards
    from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: PLC0415 - extra: dashboards

    built = dashboards.Dashboard(dashboard.title).uid(dashboard.uid).description(dashboard.about).tags(["menagerie"])
    built = built.readonly().refresh("1m").time("now-6h", "now")
    for variable in (_source(), *map(_choice, dashboard.variables)):
        built = built.with_variable(variable)
    for panel in dashboard.panels:
        built = built.with_panel(_panel(panel))
    document: Object = json.loads(JSONEncoder().encode(built.build()))
    return document


def _source() -> DatasourceVariable:
    from grafana_foundation_sdk.builders.dashboard import DatasourceVariable  # noqa: PLC0415 - extra: dashboards

    return DatasourceVariable(_SOURCE).label("Prometheus").type("prometheus")


def _choice(variable: Variable) -> QueryVariable:
    from grafana_foundation_sdk.builders.dashboard import QueryVariable  # noqa: PLC0415 - extra: dashboards
    from grafana_foundation_sdk.models.dashboard import (  # noqa: PLC0415 - extra: dashboards
        DataSourceRef,
        VariableRefresh,
        VariableSort,
    )

    source = DataSourceRef(type_val="prometheus", uid=f"${{{_SOURCE}}}")
    chosen = QueryVariable(variable.name).query(f"label_values({variable.metric}, {variable.label})").datasource(source)
    return chosen.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)


def _panel(panel: Panel) -> StatPanel | TimeseriesPanel:
    from grafana_foundation_sdk.builders import prometheus, stat, timeseries  # noqa: PLC0415 - extra: dashboards
    from grafana_foundation_sdk.models.dashboard import DataSourceRef  # noqa: PLC0415 - extra: dashboards

    built: StatPanel | TimeseriesPanel = stat.Panel() if panel.number else timeseries.Panel()
    built = built.title(panel.title).description(panel.about).unit(panel.unit).span(panel.width).height(panel.height)
    built = built.datasource(DataSourceRef(type_val="prometheus", uid=f"${{{_SOURCE}}}"))
    for letter, query in zip("ABCDEF", panel.queries, strict=False):
        built = built.with_target(prometheus.Dataquery().ref_id(letter).expr(query.expr).legend_format(query.legend))
    return built
