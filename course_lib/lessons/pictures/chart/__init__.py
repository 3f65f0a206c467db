"""The charts of the lessons: lines and dots, bars, and grids of cells, alone or beside one
another."""
