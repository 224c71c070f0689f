package remora

// The error of a call.

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Reason says why a call failed. It is an error itself, for errors.Is:
//
//	if errors.Is(err, remora.ConversationNotFound) { ... }
type Reason string

// Error is the reason's name.
func (r Reason) Error() string { return string(r) }

// FieldViolation is one field of a request that was refused.
type FieldViolation struct {
	// The field as the contract names it, such as messages[2].role.
	Field string
	// What is wrong with it, for people.
	Description string
}

// Error is a call that failed. Texts are for people and may change; codes and reasons do not.
type Error struct {
	// The canonical code.
	Code codes.Code
	// Why; empty if neither the server nor the client says so, such as of a call that its context cancelled.
	Reason Reason
	// What happened, for people.
	Message string
	// What the reason is about, such as the conversation's id.
	Metadata map[string]string
	// The fields of the request that were refused.
	Fields []FieldViolation
	// How long the server asks to wait before a repeat; 0 if it says nothing.
	RetryDelay time.Duration
	// The request id of a write that failed. The same call with it takes effect once, even if the failed one did. Empty for
	// reads, which may always be repeated, and for calls that were refused before they were made.
	RequestID string

	cause error
}

// Error is the text for people.
func (e *Error) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("remora: %s: %s", e.Reason, e.Message)
	}
	return fmt.Sprintf("remora: %s: %s", e.Code, e.Message)
}

// Is compares the reason with a Reason, and the code with the errors of contexts.
func (e *Error) Is(target error) bool {
	switch target {
	case context.Canceled:
		return e.Code == codes.Canceled
	case context.DeadlineExceeded:
		return e.Code == codes.DeadlineExceeded
	}
	reason, ok := target.(Reason)
	return ok && reason == e.Reason
}

// Unwrap is what gRPC said.
func (e *Error) Unwrap() error { return e.cause }

// GRPCStatus is for status.Code and status.FromError.
func (e *Error) GRPCStatus() *status.Status {
	if said, ok := status.FromError(e.cause); ok && e.cause != nil {
		return said
	}
	return status.New(e.Code, e.Message)
}

// invalidField is an argument that no call could be made with.
func invalidField(field, description string) *Error {
	return &Error{
		Code:    codes.InvalidArgument,
		Reason:  InvalidField,
		Message: field + " " + description,
		Fields:  []FieldViolation{{Field: field, Description: description}},
	}
}
