package remora

// Reads what ended a call: gRPC's status in, an Error out.

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const domain = "remora.dev"

var sentenceBegins = regexp.MustCompile(`^(are|cannot|has|have|is|must) `)

// callContext is the call that failed.
type callContext struct {
	endpoint string
	// Whether the client speaks TLS.
	tls bool
	// How long it had.
	allowed time.Duration
	// The request id of a write; empty for a read.
	requestID string
	// Whether this attempt, or one before it, may have reached a server.
	sent bool
	// Whether the client was closed meanwhile.
	closed bool
	// Why the attempt before failed.
	previous *Error
}

func toError(err error, asked callContext) *Error {
	said := status.Convert(err)
	failure := &Error{Code: said.Code(), Message: said.Message(), RequestID: asked.requestID, cause: err}
	for _, detail := range said.Details() {
		failure.take(detail)
	}
	switch {
	case asked.closed && (failure.Code == codes.Canceled || failure.Code == codes.Unavailable && failure.Reason == ""):
		failure.clientClosed()
	case failure.Code == codes.DeadlineExceeded && isPassing(asked.previous):
		return toError(asked.previous.cause, asked.first()) // during a reconnect, or a repeat for the model
	case failure.Code == codes.DeadlineExceeded:
		failure.deadlineExceeded(asked.allowed)
	case failure.Code == codes.Unavailable && failure.Reason == "":
		failure.connectionFailed(asked)
	case len(failure.Fields) > 0:
		failure.Message = sentences(failure.Fields)
	}
	failure.Message += repeat(failure.Code, asked)
	return failure
}

// first is the context of an attempt with none before it.
func (c callContext) first() callContext {
	c.previous = nil
	return c
}

func (e *Error) take(detail any) {
	switch detail := detail.(type) {
	case *errdetails.ErrorInfo:
		if detail.GetDomain() == domain {
			e.Reason, e.Metadata = Reason(detail.GetReason()), detail.GetMetadata()
		}
	case *errdetails.BadRequest:
		for _, violation := range detail.GetFieldViolations() {
			e.Fields = append(e.Fields, FieldViolation{Field: violation.GetField(), Description: violation.GetDescription()})
		}
	case *errdetails.RetryInfo:
		e.RetryDelay = detail.GetRetryDelay().AsDuration()
	}
}

func isPassing(failure *Error) bool {
	return failure != nil && (errors.Is(failure, ConnectionFailed) || errors.Is(failure, ModelUnreachable))
}

func (e *Error) clientClosed() {
	e.Code, e.Reason, e.Message = codes.Canceled, ClientClosed, "the client was closed"
	e.cause = status.Error(e.Code, e.Message)
}

// deadlineExceeded has the same reason whether the client or the server saw the deadline pass first.
func (e *Error) deadlineExceeded(allowed time.Duration) {
	e.Reason = DeadlineExceeded
	e.Message = fmt.Sprintf("no answer within %v, which the call may take", allowed.Round(time.Millisecond))
	if allowed <= 0 {
		e.Message = "the deadline had passed before the call"
	}
}

func (e *Error) connectionFailed(asked callContext) {
	e.Reason = ConnectionFailed
	e.Metadata = map[string]string{"endpoint": asked.endpoint}
	if told := ofTLS(e.Message, asked.endpoint, asked.tls); told != "" {
		e.Message = told
		return
	}
	why := e.Message
	if strings.HasSuffix(why, "produced zero addresses") {
		why = "its host is unknown" // gRPC does not pass on what the resolver said
	}
	e.Message = fmt.Sprintf("no Remora server answers at %s (%s); `remora serve` starts one, and WithEndpoint or $%s says where it listens",
		asked.endpoint, why, EndpointVariable)
}

func sentences(violations []FieldViolation) string {
	texts := make([]string, len(violations))
	for i, violation := range violations {
		between := ": "
		if sentenceBegins.MatchString(violation.Description) {
			between = " "
		}
		texts[i] = violation.Field + between + violation.Description
	}
	return strings.Join(texts, "; ")
}

// repeat says what to do about a write of which nobody knows whether it took effect.
func repeat(code codes.Code, asked callContext) string {
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown:
	default:
		return ""
	}
	if asked.requestID == "" {
		return ""
	}
	if !asked.sent {
		return "; nothing was sent"
	}
	return fmt.Sprintf("; it may have taken effect: the same call with RequestId %q takes effect once", asked.requestID)
}
