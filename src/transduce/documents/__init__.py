"""Files that are translated in place: only what is filled in changes, every other byte stays."""
