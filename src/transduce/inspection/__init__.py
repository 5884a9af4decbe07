"""Looking inside a model (paper, section 4 and Figures 3 to 5)."""
