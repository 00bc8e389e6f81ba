"""The algorithms in NumPy, one idea a file, on a machine that meters every byte."""
