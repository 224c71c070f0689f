"""SQL that selects rows by lists of keys. It takes memory for the lists and the result, not for the table.

A semi join has the list as its other side, whatever DuckDB expects of the table. The list of uids comes first, each
once: long columns are read only of what one key finds. Lists have the columns' own types: where they are compared as
others, every row group is read.
"""

from __future__ import annotations

UIDS = "(SELECT unnest(list_distinct($uids::UBIGINT[])))"


def between(column: str, numbers: str) -> str:
    """Whether a column is within the bounds of a list of numbers."""
    return f"{column} BETWEEN list_min({numbers}::UBIGINT[]) AND list_max({numbers}::UBIGINT[])"


CHOSEN_MESSAGES = f"""
conversation_uid IN {UIDS} AND {between("sequence", "$sequences")}
AND (conversation_uid, sequence) IN (SELECT (unnest($uids::UBIGINT[]), unnest($sequences::UBIGINT[])))
"""
"""Of messages, or what stands beside them: those of uids and sequences."""
