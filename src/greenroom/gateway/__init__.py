"""The data path: reads a request, asks the reception, answers or passes it to the origin."""
