"""Speed, compared with the same work done by hand, and hours of faults: `make bench` and `make soak`."""
