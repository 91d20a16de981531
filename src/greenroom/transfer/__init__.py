"""Export, plan and apply of the whole configuration."""
