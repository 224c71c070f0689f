"""A thread that takes locks out of order, or one again, is told so instead of waiting for ever."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import permutations

import pytest
from tests.patience import PATIENCE

from remora_server.locking import Level, LockOrderError, Turns, new_condition, new_lock


@pytest.mark.parametrize("levels", list(permutations([Level.CONVERSATIONS, Level.RECORDS, Level.LEAF])))
def test_locks_are_taken_by_level(levels: tuple[Level, ...]) -> None:
    locks = {level: new_lock(level) for level in levels}

    with ExitStack() as held:
        for before, level in zip((None, *levels), levels, strict=False):
            if before is not None and max(levels[: levels.index(level)]) > level:
                with pytest.raises(LockOrderError, match=rf"{level.name}\[0\] is taken by a thread that holds"):
                    locks[level].acquire()
                return
            held.enter_context(locks[level])
    assert list(levels) == sorted(levels)


def test_locks_of_one_level_are_taken_by_index() -> None:
    first, second = new_lock(Level.RECORDS, 1), new_lock(Level.RECORDS, 2)

    with first, second:
        pass
    with second, pytest.raises(LockOrderError):
        first.acquire()


@pytest.mark.parametrize("blocking", [True, False])
def test_a_thread_does_not_take_its_own_lock_again(*, blocking: bool) -> None:
    lock = new_lock(Level.CONVERSATIONS, 7)

    with (
        lock,
        pytest.raises(LockOrderError, match=r"CONVERSATIONS\[7\] is taken by a thread that holds CONVERSATIONS\[7\]"),
    ):
        lock.acquire(blocking)
    with lock:
        assert lock.locked()
    assert not lock.locked()


def test_what_another_thread_holds_is_waited_for() -> None:
    low, high = new_lock(Level.CONVERSATIONS), new_lock(Level.LEAF)
    with ThreadPoolExecutor(1) as another, high:
        assert not another.submit(high.acquire, blocking=False).result()
        assert another.submit(low.acquire).result(), "it holds nothing"
        another.submit(low.release).result()


def test_locks_are_let_go_in_any_order() -> None:
    low, high = new_lock(Level.CONVERSATIONS), new_lock(Level.RECORDS)
    low.acquire()
    high.acquire()
    low.release()
    with pytest.raises(LockOrderError):
        low.acquire()
    high.release()
    with low, high:
        pass


def test_a_condition_keeps_the_order_and_waits() -> None:
    condition, is_set = new_condition(Level.QUEUE), []

    def tell() -> None:
        with condition:
            is_set.append(True)
            condition.notify_all()

    with condition:
        another = threading.Thread(target=tell)
        another.start()
        assert condition.wait_for(lambda: bool(is_set), PATIENCE)
        with pytest.raises(LockOrderError):
            condition.acquire()
    another.join()


def test_a_thread_has_one_turn_or_all() -> None:
    turns = Turns(Level.READ, 2)

    for taking in (turns.one, turns.all):
        with taking():
            for again in (turns.one, turns.all):
                with pytest.raises(LockOrderError), again():
                    pass


def test_a_thread_that_wants_all_turns_waits_for_all_others() -> None:
    turns, had = Turns(Level.READ, 2), threading.Event()

    def have_all() -> None:
        with turns.all():
            had.set()

    with ThreadPoolExecutor(1) as another:
        with turns.one():
            waiting = another.submit(have_all)
            assert not had.wait(0.05)
        waiting.result(PATIENCE)
    assert had.is_set()


def test_threads_that_want_all_turns_at_once_have_them_one_after_the_other() -> None:
    turns, inside = Turns(Level.READ, 8), threading.Lock()

    def have_all(_number: int) -> None:
        with turns.all():
            assert inside.acquire(blocking=False), "another thread has all turns"
            inside.release()

    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(have_all, number) for number in range(400)]
        for one in waiting:
            one.result(PATIENCE)
