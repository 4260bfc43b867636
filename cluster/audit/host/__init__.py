"""What runs on hosts to see how they are set up: each module is one file that needs nothing beside it."""
