"""Scores of translations (paper, section 6.1)."""
