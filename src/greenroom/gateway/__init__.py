"""The data path: reads a request, asks the decision service, then answers or forwards it."""
