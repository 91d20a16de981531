"""The use cases of operators, without HTTP."""
