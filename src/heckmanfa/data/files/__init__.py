"""Files that are written completely or not at all, and never over an input."""
