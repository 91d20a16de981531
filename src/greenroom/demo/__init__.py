"""The demo: a shop and a synthetic crowd, which show a waiting room at work within a minute."""
