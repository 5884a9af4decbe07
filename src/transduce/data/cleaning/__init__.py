"""Which pairs of a corpus are used, which are mended, which are dropped and why."""
