"""Sums of what has been seen so far."""

import numpy as np

START = 0


def add(a, b):
    """Return a + b."""
    ### BEGIN SOLUTION
    return a + b
    ### END SOLUTION


# A comment between the functions belongs to neither.


@np.vectorize
def running_sum(x):
    """Return x plus START.

    Blank lines inside stay.
    """
    first = START

    ### BEGIN SOLUTION
    return add(first, x)
    ### END SOLUTION


def unused():
    """Stand after the function that is included."""
