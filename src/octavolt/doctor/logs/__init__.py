"""Known errors in a log: a table, and a reader that keeps no more than it shows.

A new error is one entry, in the file of its kind.
"""

from octavolt.doctor.logs.known import Known
from octavolt.doctor.logs.machine import MACHINE
from octavolt.doctor.logs.training import TRAINING
from octavolt.doctor.logs.volta import VOLTA
from octavolt.doctor.logs.xid import XID

KNOWN: tuple[Known, ...] = (*VOLTA, *MACHINE, *XID, *TRAINING)
"""A line counts for every entry that it fits."""
