"""What is asked of the student: one file a lesson, each with its examinations and hints."""
