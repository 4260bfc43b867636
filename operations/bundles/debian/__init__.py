"""Debian packages of a bundle: a part of Debian's archive, with its own signed lists, from which sites install."""
