"""A bill as text for a terminal, as CSV, and as a page."""
