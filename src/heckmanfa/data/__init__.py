"""What the user has, as blocks of float64 rows: arrays, columns, row rules and sources of rows."""
