"""Where items go: one file per format."""
