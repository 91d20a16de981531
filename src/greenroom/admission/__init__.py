"""The admission rules: who is admitted, and when. The caller passes time, random bits and messages
(docs/howto/drive-the-core.md). `problems` names every law of conservation that does not hold.
"""

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.laws import problems
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.visiting import visit
from greenroom.admission.messages.sync import SyncDown, SyncUp

__all__ = ["Coordinator", "Ledger", "SyncDown", "SyncUp", "problems", "visit"]
