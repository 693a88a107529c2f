"""Text for people: foreign text made printable, numbers and lists in words, progress."""
