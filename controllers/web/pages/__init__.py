"""The pages, in the order of the navigation."""

from controllers.web.pages import capacity, cluster, fleet, operation
from controllers.web.pages.page import Links, Page

PAGES: tuple[Page, ...] = (fleet.PAGE, capacity.PAGE, cluster.PAGE, operation.PAGE)

__all__ = ["PAGES", "Links", "Page"]
