"""What a student reads: the notebooks, the widgets in them, and how both are built."""
