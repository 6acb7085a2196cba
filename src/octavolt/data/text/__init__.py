"""Text data sets: how they are found, read and checked."""
