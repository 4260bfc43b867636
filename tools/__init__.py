"""Programs built from pinned Go modules, one module folder each, into a cache keyed by their content."""
