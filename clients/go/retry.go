package remora

// Which failures are repeated, and after which pause.

import (
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
)

const (
	firstPause    = 20 * time.Millisecond
	greatestPause = time.Second
	// For so long a call is repeated because of the server's embedding model: an endpoint that is down is seldom up again
	// within a deadline, so callers are better told the reason at once.
	modelPatience = time.Second
)

// pauseBeforeRetry says how long to wait before the next attempt, and whether there should be one.
//
// attempt counts the failed ones from 0. The pause is drawn from [0, 20 ms * 2^attempt], at most 1 s (full jitter: Brooker,
// "Exponential Backoff And Jitter", AWS Architecture Blog, 2015), and is at least what the server asks for.
func pauseBeforeRetry(failure *Error, attempt int, elapsed, remaining time.Duration) (time.Duration, bool) {
	if !passes(failure) {
		return 0, false
	}
	ceiling := min(greatestPause, firstPause<<min(attempt, 16))
	pause := max(rand.N(ceiling), failure.RetryDelay)
	if failure.Reason == ModelUnreachable {
		remaining = min(remaining, modelPatience-elapsed)
	}
	return pause, pause < remaining
}

func passes(failure *Error) bool {
	return failure.Code == codes.Unavailable || failure.Code == codes.ResourceExhausted && failure.RetryDelay > 0
}
