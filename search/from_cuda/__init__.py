"""From a CUDA file to a problem: read it, find arrays and sizes, write the folder that a search starts from."""
