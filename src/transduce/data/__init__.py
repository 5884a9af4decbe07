"""From parallel text to batches of token ids (paper, section 5.1)."""
