"""Program that runs in the controllers' pods."""
