"""The user's data as blocks of float64 rows: arrays, columns, row rules and row sources."""
