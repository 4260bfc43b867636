"""Auto Scaling groups of AWS."""
