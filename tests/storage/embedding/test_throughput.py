"""How many messages are embedded a second."""

from remora_server.storage.embedding.throughput import WINDOW_SECONDS, Throughput


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_rate_is_of_the_time_since_work_began() -> None:
    clock = Clock()
    throughput = Throughput(clock)
    assert throughput.rate() == 0.0
    for _ in range(4):
        throughput.add(10)
        clock.now += 0.5

    assert throughput.rate() == 20.0


def test_what_was_long_ago_does_not_count() -> None:
    clock = Clock()
    throughput = Throughput(clock)
    throughput.add(1_000)
    clock.now += WINDOW_SECONDS + 1
    assert throughput.rate() == 0.0

    throughput.add(6)
    clock.now += 2

    assert throughput.rate() == 3.0
