"""Every error of the domain has one answer on the wire, of which the contract tells."""

from collections.abc import Iterator

from google.rpc.code_pb2 import Code
from tests.input.documented import documented_errors

from remora_server.domain.errors import RemoraError
from remora_server.rpc.errors import ANSWERS, INTERNAL


def subclasses(base: type[Exception]) -> Iterator[type[Exception]]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def test_every_error_has_an_answer() -> None:
    errors = [error for error in subclasses(RemoraError) if error.__module__.startswith("remora_server.")]

    assert errors
    assert set(errors) - set(ANSWERS) == set()


def test_every_reason_belongs_to_one_error() -> None:
    reasons = [answer.reason for answer in ANSWERS.values()]

    assert reasons
    assert len(reasons) == len(set(reasons))


def test_the_contract_tells_of_every_code_and_reason_and_of_no_other() -> None:
    answered = {(Code.Name(answer.code), answer.reason) for answer in (*ANSWERS.values(), INTERNAL)}

    assert documented_errors() == answered
