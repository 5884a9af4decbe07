"""The paper's tables made again: runs of training and scoring, and their figures beside the printed ones."""
