"""CUDA kernels as Metal passes for MLX: the text is kept, the words that Metal says otherwise are changed.

What has no correct translation is refused by name, with what a person could do.
"""

from translator.metal_writer.writer import write_metal

__all__ = ["write_metal"]
