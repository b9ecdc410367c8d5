"""The table's operations as functions: on a Value they record, on plain numbers they compute.

>>> sqrt(2.25)
1.5
"""

from gradwalk.composites import PUBLIC
from gradwalk.engine import FUNCTIONS
from gradwalk.ops import OPERATORS

_ALL = {name: function for name, function in FUNCTIONS.items() if name not in OPERATORS} | PUBLIC

__all__ = sorted(_ALL)

globals().update(_ALL)
