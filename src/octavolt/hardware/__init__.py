"""Facts about hardware and the software that runs on it, and what follows. Imports no torch."""
