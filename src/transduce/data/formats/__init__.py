"""One small reader for each file format."""
