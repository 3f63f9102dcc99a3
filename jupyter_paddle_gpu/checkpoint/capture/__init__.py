"""The only part of the project that imports paddle: imported itself only where paddle is there already."""
