"""Tables whose rows come as record batches, as Arrow has them, and rows of a fit made of them."""
