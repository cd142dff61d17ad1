"""The data sets that can be loaded by name, one file for each or for a family.

A file declares values of :class:`gatelight.data.source.Source`; the catalog finds them by listing this folder.
"""
