package remora

// How a client calls: deadlines, repeats, request ids and the revision that reads must see.

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	requestIDField   protoreflect.Name = "request_id"
	originField      protoreflect.Name = "origin"
	minRevisionField protoreflect.Name = "min_revision"
	revisionField    protoreflect.Name = "revision"
)

var _ grpc.ClientConnInterface = (*Client)(nil)

// Invoke makes a unary call, as the generated clients do. What fails is an [*Error].
func (c *Client) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	given, ok := args.(proto.Message)
	if !ok {
		return c.conn.Invoke(ctx, method, args, reply, options...)
	}
	if err := c.mayCall(); err != nil {
		return err
	}
	request, requestID := c.filled(given)
	err := c.repeated(ctx, call{method: method, request: request, reply: reply, requestID: requestID, options: options})
	switch {
	case errors.Is(err, RevisionUnknown):
		c.revision.Store(0) // the store of that revision is gone
	case err == nil && requestID != "":
		c.AdvanceTo(revisionOf(reply))
	}
	return err
}

// NewStream opens a stream with the client's identity, and adds nothing else.
func (c *Client) NewStream(ctx context.Context, stream *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	if err := c.mayCall(); err != nil {
		return nil, err
	}
	return c.conn.NewStream(ctx, stream, method, options...)
}

func (c *Client) mayCall() error {
	if c.isClosed() {
		return &Error{Code: codes.FailedPrecondition, Reason: ClientClosed, Message: "the client is closed; make another"}
	}
	return requireOwnDefault(c.settings.endpoint)
}

// filled is the request with what the client adds, and its request id. The caller's own message stays as it is.
func (c *Client) filled(given proto.Message) (proto.Message, string) {
	request := proto.Clone(given)
	if !given.ProtoReflect().IsValid() { // nil, which gRPC sends as an empty request
		request = given.ProtoReflect().New().Interface()
	}
	message := request.ProtoReflect()
	fields := message.Descriptor().Fields()
	if field := fields.ByName(minRevisionField); field != nil && !message.Has(field) {
		message.Set(field, protoreflect.ValueOfUint64(c.Revision()))
	}
	field := fields.ByName(requestIDField)
	if field == nil {
		return request, ""
	}
	if !message.Has(field) {
		message.Set(field, protoreflect.ValueOfString(rand.Text()))
	}
	if origin := fields.ByName(originField); origin != nil && !message.Has(origin) && c.settings.origin != nil {
		message.Set(origin, protoreflect.ValueOfMessage(c.settings.origin.ProtoReflect()))
	}
	return request, message.Get(field).String()
}

func revisionOf(reply any) uint64 {
	message, ok := reply.(proto.Message)
	if !ok {
		return 0
	}
	field := message.ProtoReflect().Descriptor().Fields().ByName(revisionField)
	if field == nil {
		return 0
	}
	return message.ProtoReflect().Get(field).Uint()
}

// call is one call, whatever its number of attempts.
type call struct {
	method    string
	request   proto.Message
	reply     any
	requestID string
	options   []grpc.CallOption
}

func (c *Client) repeated(ctx context.Context, asked call) error {
	if _, has := ctx.Deadline(); !has {
		limited, cancel := context.WithTimeout(ctx, c.settings.timeout)
		defer cancel()
		ctx = limited
	}
	began := time.Now()
	deadline, _ := ctx.Deadline()
	context := callContext{
		endpoint: c.settings.endpoint, tls: c.settings.tls != nil, allowed: deadline.Sub(began), requestID: asked.requestID,
	}
	for attempt := 0; ; attempt++ {
		reached, err := c.once(ctx, asked)
		if err == nil {
			return nil
		}
		if field := notUTF8(err, asked.request); field != "" {
			return invalidField(field, "is not UTF-8: was it cut within a character, or is it in another encoding?")
		}
		context.sent = context.sent || reached
		context.closed = c.isClosed() && ctx.Err() == nil
		failure := toError(err, context)
		pause, again := pauseBeforeRetry(failure, attempt, time.Since(began), time.Until(deadline))
		if !again {
			return failure
		}
		context.previous = failure
		c.sleep(ctx, pause)
	}
}

// once makes one attempt, and says whether it may have reached a server.
func (c *Client) once(ctx context.Context, asked call) (reached bool, err error) {
	var other peer.Peer
	options := append(asked.options[:len(asked.options):len(asked.options)], grpc.Peer(&other))
	err = c.conn.Invoke(ctx, asked.method, asked.request, asked.reply, options...)
	return other.Addr != nil, err
}

// notUTF8 is the field because of which a request could not be encoded; empty if that is not why a call failed.
func notUTF8(err error, request proto.Message) (field string) {
	if said := status.Convert(err); said.Code() != codes.Internal || !strings.HasPrefix(said.Message(), "grpc: error while marshaling") {
		return ""
	}
	_ = protorange.Range(request.ProtoReflect(), func(values protopath.Values) error {
		if text, ok := values.Index(-1).Value.Interface().(string); ok && !utf8.ValidString(text) {
			field = strings.TrimPrefix(values.Path[1:].String(), ".")
			return protorange.Terminate
		}
		return nil
	})
	return field
}

// sleep ends early with the context or the client, which the next attempt sees.
func (c *Client) sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-c.closed:
	}
}
