"""Pictures that a student steps through: one anywidget a file, drawn in the browser."""
