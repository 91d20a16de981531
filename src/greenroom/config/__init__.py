"""Files and options as records: everything that is wrong with them is reported at once, with field,
reason and line.
"""
