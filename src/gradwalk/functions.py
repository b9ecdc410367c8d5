"""The table's operations as functions: on a Value they record, on plain numbers they compute.

>>> sqrt(2.25)
1.5
"""

from gradwalk.engine import FUNCTIONS
from gradwalk.ops import OPERATORS

# maximum and minimum take more than two numbers: composites.py has them
__all__ = sorted(FUNCTIONS.keys() - OPERATORS - {"maximum", "minimum"})

globals().update({name: FUNCTIONS[name] for name in __all__})
