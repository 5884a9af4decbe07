"""Models that travel: written for other libraries and read from them, and compared each time."""
