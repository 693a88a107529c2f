"""Rows that are scanned: Parquet and Arrow files anywhere, datasets, lazy frames, relations."""
