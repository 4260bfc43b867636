"""The program that runs in the controllers' pods."""
