"""The only wiring and the only real clock: settings, assembly, start and stop."""
