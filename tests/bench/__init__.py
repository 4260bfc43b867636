"""`make bench` and `make soak`: speed measured side by side with the same work done by hand; hours of faults."""
