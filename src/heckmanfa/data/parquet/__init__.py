"""Rows in Parquet files, read again in every pass."""
