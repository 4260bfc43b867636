"""Configuration for scheduling: profiles, priority classes, gangs, balloons."""
