"""Files: found, not larger than they seem, and written completely or not at all."""
