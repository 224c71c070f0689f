"""What is stored: English words, some frequent and most of them rare, as in speech; messages have 500 bytes."""

from __future__ import annotations

import random

MESSAGE_BYTES = 500
WORDS = """
the to a and of I is in it for that you on with this my be at have not are as but if was can we so do from will your or
me what about they would just there when get like one our up out time know how want need no than then some could any
tomorrow meeting report check please thanks order train Monday morning booked flight hotel dinner office project team
deadline update invoice customer question answer email message number account password address phone weather temperature
degrees kitchen garden doctor appointment medicine allergy peanuts vegetarian restaurant reservation table window seat
aisle luggage passport visa embassy airport station platform delay ticket refund payment card bank transfer salary rent
contract lawyer signature document translation paragraph chapter library book author music concert choir rehearsal
guitar piano lesson teacher school university course exam grade homework science physics chemistry experiment result
measurement server database backup restore migration deploy release branch commit review test failure latency memory
processor network firewall certificate token session cookie browser keyboard screen printer battery charger cable camera
photograph picture painting museum gallery exhibition festival birthday present cake candle wedding anniversary holiday
beach mountain lake river forest trail bicycle helmet engine garage mechanic insurance accident hospital surgery
recovery
Berlin Lisbon Kyoto Oslo Nairobi Toronto 1987 2024 15:30 42 $120 20% Sarah Miguel Aisha Viktor Chen O'Connor
""".split()
WEIGHTS = [1 / rank for rank in range(1, len(WORDS) + 1)]


def texts(seed: int, count: int, size: int = MESSAGE_BYTES) -> list[str]:
    """So many texts of so many bytes; the same for the same seed."""
    return [_text(random.Random(f"{seed}.{number}"), size) for number in range(count)]


def _text(chance: random.Random, size: int) -> str:
    words = " ".join(chance.choices(WORDS, WEIGHTS, k=size))
    return words[:size]
