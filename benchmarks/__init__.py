"""Our kernels beside their peers, the simulator beside the card, and the recorded evidence."""
