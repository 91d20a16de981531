"""The data path: reads a request, asks the decision service, answers it or forwards it to the
origin.
"""
