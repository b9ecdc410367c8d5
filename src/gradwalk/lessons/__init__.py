"""The lessons: one Markdown file each, from which the site's pages, their live cells and the notebooks are made.

`source.py` reads them, `cells.py` runs a cell as a notebook would, in the browser too, `notebooks.py` writes notebooks.
"""
