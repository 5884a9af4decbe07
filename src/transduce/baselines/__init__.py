"""What the paper was better than: recurrent and convolutional translators, to be trained beside it."""
