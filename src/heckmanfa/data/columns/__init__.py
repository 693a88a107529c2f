"""The columns of a table: names, kinds, values, and their encoding as numbers."""
