"""What the scheduler is told: profiles, priority classes, gangs, balloons."""
