"""The pages, in the order of the navigation."""

from controllers.web.pages import bill, capacity, cluster, fleet, operation
from controllers.web.pages.page import Links, Page, Visit

PAGES: tuple[Page, ...] = (fleet.PAGE, capacity.PAGE, bill.PAGE, cluster.PAGE, operation.PAGE, *bill.MORE)

__all__ = ["PAGES", "Links", "Page", "Visit"]
