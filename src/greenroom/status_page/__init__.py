"""The public status page for people, programs and feed readers."""
