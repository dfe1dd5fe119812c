"""Texts and images as sources of features: read in blocks, through a frozen backbone, each block computed once."""
