"""Search, and text in, text out (paper, section 6.1)."""
