"""Text: read, tokenized, made ready for a network."""
