"""The Transformer (paper, section 3)."""
