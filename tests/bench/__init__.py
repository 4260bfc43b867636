"""`make bench` and `make soak`: speed, compared with the same work done by hand, and hours of faults."""
