"""Where clusters run without a cloud: the lab on one machine, and simulated clouds."""
