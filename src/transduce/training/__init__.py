"""Training (paper, section 5)."""
