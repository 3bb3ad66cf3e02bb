"""The only code that opens rows.

It ingests uploads into encrypted tables, and reads rows of tables for the oracle.
"""

from workers.enclave.ingest_limits import Limits
from workers.enclave.ingest_parent import Failed, Ingested, Outcome, Rejected, Upload, ingest
from workers.enclave.keys import OpeningKey
from workers.enclave.registers import StoredRegister
from workers.enclave.table import StoredTable, open_table
from workers.enclave.table_format import Layout, make_layout

__all__ = [
    "Failed",
    "Ingested",
    "Layout",
    "Limits",
    "OpeningKey",
    "Outcome",
    "Rejected",
    "StoredRegister",
    "StoredTable",
    "Upload",
    "ingest",
    "make_layout",
    "open_table",
]
