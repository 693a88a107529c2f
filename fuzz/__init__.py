"""Hostile input, made at random: `make fuzz`. See `fuzz.__main__`."""
