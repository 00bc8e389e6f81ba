"""Wrong functions that the grader must catch, each for its own reason."""
