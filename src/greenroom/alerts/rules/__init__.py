"""Pure alert rules: types, which policy wants which alert, and the format of each channel."""
