"""The etcds of a running cluster: looked at, and mended by verbs that can be cut short and run again."""
