package dev.remora;

import io.grpc.Status;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;

/** Which failures are repeated, and after which pause. */
final class Repeats {
    private static final Duration FIRST = Duration.ofMillis(20);
    private static final Duration GREATEST = Duration.ofSeconds(1);
    /**
     * For so long a call is repeated because of the server's embedding model: an endpoint that is down is seldom up again within a
     * deadline, so callers are better told the reason at once.
     */
    private static final Duration MODEL_PATIENCE = Duration.ofSeconds(1);

    private Repeats() {}

    /**
     * How long to wait before the next attempt; nothing if there should be none. {@code attempt} counts the failed ones from 0.
     *
     * <p>The pause is drawn from [0, 20 ms * 2^attempt], at most 1 s (full jitter: Brooker, "Exponential Backoff And Jitter", AWS
     * Architecture Blog, 2015), and is at least what the server asks for.
     */
    static Optional<Duration> pauseBefore(RemoraException failure, int attempt, Duration elapsed, Duration remaining) {
        if (!passes(failure)) {
            return Optional.empty();
        }
        Duration ceiling = least(GREATEST, FIRST.multipliedBy(1L << Math.min(attempt, 16)));
        Duration drawn = Duration.ofNanos(ThreadLocalRandom.current().nextLong(ceiling.toNanos()));
        Duration pause = drawn.compareTo(failure.retryDelay()) < 0 ? failure.retryDelay() : drawn;
        Duration patience = failure.is(Reason.MODEL_UNREACHABLE) ? least(remaining, MODEL_PATIENCE.minus(elapsed)) : remaining;
        return pause.compareTo(patience) < 0 ? Optional.of(pause) : Optional.empty();
    }

    private static boolean passes(RemoraException failure) {
        return failure.code() == Status.Code.UNAVAILABLE
                || failure.code() == Status.Code.RESOURCE_EXHAUSTED && !failure.retryDelay().isZero();
    }

    private static Duration least(Duration one, Duration other) {
        return one.compareTo(other) < 0 ? one : other;
    }
}
