"""The command `menagerie`: thin; what it does lives in the other packages."""
