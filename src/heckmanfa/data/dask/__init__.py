"""Rows in the partitions of a Dask collection."""
