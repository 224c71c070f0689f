package remora_test

// A gRPC server that answers what it is told to.

import (
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/emptypb"
)

// received is one call that arrived.
type received struct {
	method   string
	metadata metadata.MD
	request  []byte
}

// outcome is the answer to a call: an error, or a reply. An outcome of nil is never an answer.
type outcome any

// scriptedServer answers with the outcomes that it was given, in turn, the last again and again.
type scriptedServer struct {
	endpoint string
	mutex    sync.Mutex
	outcomes []outcome
	calls    []received
	arrived  chan struct{} // has one if a call has arrived
}

func startScripted(t *testing.T, outcomes ...outcome) *scriptedServer {
	t.Helper()
	scripted := &scriptedServer{endpoint: overUnix(t), outcomes: outcomes, arrived: make(chan struct{}, 1)}
	listener, err := net.Listen("unix", strings.TrimPrefix(scripted.endpoint, "unix:"))
	must(t, err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(scripted.answer))
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return scripted
}

func (s *scriptedServer) answer(_ any, stream grpc.ServerStream) error {
	request := &emptypb.Empty{} // its unknown fields are all that was sent
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	switch next := s.next(stream, request).(type) {
	case error:
		return next
	case proto.Message:
		return stream.SendMsg(next)
	default:
		<-stream.Context().Done()
		return stream.Context().Err()
	}
}

func (s *scriptedServer) next(stream grpc.ServerStream, request *emptypb.Empty) outcome {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	method, _ := grpc.MethodFromServerStream(stream)
	sent, _ := metadata.FromIncomingContext(stream.Context())
	s.calls = append(s.calls, received{method: method, metadata: sent, request: request.ProtoReflect().GetUnknown()})
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	next := s.outcomes[0]
	if len(s.outcomes) > 1 {
		s.outcomes = s.outcomes[1:]
	}
	return next
}

func (s *scriptedServer) received() []received {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.calls
}

// request decodes what arrived with a call.
func request[M any, P interface {
	*M
	proto.Message
}](t *testing.T, call received) P {
	t.Helper()
	decoded := P(new(M))
	must(t, proto.Unmarshal(call.request, decoded))
	return decoded
}

// failure is a status with an ErrorInfo of a domain and further details.
func failure(t *testing.T, code codes.Code, domain, reason string, details ...protoadapt.MessageV1) error {
	t.Helper()
	info := &errdetails.ErrorInfo{Domain: domain, Reason: reason, Metadata: map[string]string{"id": "c"}}
	said, err := status.New(code, "it failed, 100 %").WithDetails(append(details, protoadapt.MessageV1Of(info))...)
	must(t, err)
	return said.Err()
}
