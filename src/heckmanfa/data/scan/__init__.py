"""One scan for everything: files anywhere, datasets, lazy frames and relations."""
