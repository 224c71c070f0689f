// Package remora is a client of Remora, a memory sidecar for AI agents.
//
// A [Client] has a generated client for each service of the contract, which package remorav1 holds. It adds what each
// call needs: the tenant, a deadline, repeats while the server is unavailable, request ids, and reads that see what this
// client has written.
package remora

import (
	"crypto/tls"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	remorav1 "remora.dev/remora/v1"
)

const (
	defaultTimeout = 2 * time.Second
	// A server may be set to send larger replies than gRPC's usual ones.
	largestReply = 64 << 20
)

// Client is a connection to one server, as one tenant. It connects with its first call, and again after the connection
// broke. It may be used by many goroutines.
//
// Calls are repeated within their deadline while the server is unavailable; a write takes effect once. A read that failed
// may be made again as it is. A write that failed may have taken effect: make the same call again with [Error].RequestID
// as its RequestId, and it takes effect once. Reads see all earlier writes of this client.
//
// A Client is also a [grpc.ClientConnInterface], for clients that were generated elsewhere.
type Client struct {
	// Conversations and their messages.
	Conversations remorav1.ConversationServiceClient
	// Searches, contexts and working memories.
	Memory remorav1.MemoryServiceClient
	// Steps of conversations, and what agents did.
	History remorav1.HistoryServiceClient
	// Runs of workflows and their steps.
	Workflows remorav1.WorkflowServiceClient
	// Vectors and their collections.
	Vectors remorav1.VectorServiceClient
	// Items: JSON values under keys in namespaces.
	Store remorav1.StoreServiceClient
	// Checkpoints of graphs, and their threads.
	Checkpoints remorav1.CheckpointServiceClient
	// Users.
	Users remorav1.UserServiceClient
	// Token counts and embeddings.
	Text remorav1.TextServiceClient
	// Exports and imports.
	Transfer remorav1.TransferServiceClient
	// The server's status, and backups.
	Admin remorav1.AdminServiceClient

	settings settings
	conn     *grpc.ClientConn
	revision atomic.Uint64
	closed   chan struct{}
	close    func() error
}

type settings struct {
	endpoint string
	token    string
	tenant   string
	timeout  time.Duration
	origin   *remorav1.Origin
	tls      *tls.Config
}

// Option says how a client is made.
type Option func(*settings) error

// WithEndpoint names the server, unix:/path or host:port. Without it, that is $REMORA_ENDPOINT, else the socket where
// `remora serve` listens.
func WithEndpoint(endpoint string) Option {
	return func(s *settings) error {
		s.endpoint = endpoint
		return requireEndpoint(endpoint, "endpoint")
	}
}

// WithTenant names the tenant, 1 to 512 printable ASCII characters, if the server requires no token; else it must be the token's.
// Without it: $REMORA_TENANT, unless [WithToken] is given; else the token's or, without a token, `default`.
func WithTenant(tenant string) Option {
	return func(s *settings) error {
		s.tenant = tenant
		return requireSendable(tenant, "tenant")
	}
}

// WithToken authenticates. The token is printable ASCII. It is sent as it is: over a network, use [WithTLS]. Without it:
// $REMORA_TOKEN. An empty variable is as good as none.
func WithToken(token string) Option {
	return func(s *settings) error {
		s.token = token
		return requireSendable(token, "token")
	}
}

// WithTimeout says how long a call may take, repeats included, if its context has no deadline. It is greater than 0. Without it:
// 2 seconds, which is too short for a call that waits for a chat model, or for the embeddings of many texts.
func WithTimeout(timeout time.Duration) Option {
	return func(s *settings) error {
		if timeout <= 0 {
			return invalidField("timeout", fmt.Sprintf("is %v; it must be greater than 0", timeout))
		}
		s.timeout = timeout
		return nil
	}
}

// WithOrigin is kept in the records of writes: the agent and its run, each up to 512 bytes in UTF-8; empty if there is none.
func WithOrigin(agentID, runID string) Option {
	return func(s *settings) error {
		s.origin = &remorav1.Origin{AgentId: agentID, RunId: runID}
		return nil
	}
}

// WithTLS speaks TLS with a host and port: the configuration has the authorities of the server (RootCAs) and, if the
// server requires one, the client's certificate.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) error {
		if config == nil {
			return invalidField("tls", "is nil; leave it out to connect without TLS")
		}
		s.tls = config
		return nil
	}
}

// New makes a client. It does not connect yet. Options that no call could be made with are an [*Error] with [InvalidField].
func New(options ...Option) (*Client, error) {
	chosen := settings{timeout: defaultTimeout}
	for _, option := range options {
		if err := option(&chosen); err != nil {
			return nil, err
		}
	}
	if err := chosen.resolveEndpoint(); err != nil {
		return nil, err
	}
	if err := chosen.resolveCredentials(); err != nil {
		return nil, err
	}
	transport, err := chosen.transportCredentials()
	if err != nil {
		return nil, err
	}
	target, dial := targetOf(chosen.endpoint)
	conn, err := grpc.NewClient(target, append(dialOptions(chosen.headers(), transport), dial...)...)
	if err != nil {
		return nil, invalidField("endpoint", fmt.Sprintf("is %q, which gRPC cannot call: %v", chosen.endpoint, err))
	}
	return newClient(chosen, conn), nil
}

func newClient(chosen settings, conn *grpc.ClientConn) *Client {
	client := &Client{settings: chosen, conn: conn, closed: make(chan struct{})}
	client.close = sync.OnceValue(func() error {
		close(client.closed)
		return conn.Close()
	})
	client.Conversations = remorav1.NewConversationServiceClient(client)
	client.Memory = remorav1.NewMemoryServiceClient(client)
	client.History = remorav1.NewHistoryServiceClient(client)
	client.Workflows = remorav1.NewWorkflowServiceClient(client)
	client.Vectors = remorav1.NewVectorServiceClient(client)
	client.Store = remorav1.NewStoreServiceClient(client)
	client.Checkpoints = remorav1.NewCheckpointServiceClient(client)
	client.Users = remorav1.NewUserServiceClient(client)
	client.Text = remorav1.NewTextServiceClient(client)
	client.Transfer = remorav1.NewTransferServiceClient(client)
	client.Admin = remorav1.NewAdminServiceClient(client)
	return client
}

func (s *settings) transportCredentials() (credentials.TransportCredentials, error) {
	if s.tls == nil {
		return insecure.NewCredentials(), nil
	}
	if strings.HasPrefix(s.endpoint, unixPrefix) {
		return nil, invalidField("tls", fmt.Sprintf("is for host:port, and the endpoint is %q; leave it out", s.endpoint))
	}
	return credentials.NewTLS(s.tls), nil
}

func dialOptions(identity headers, transport credentials.TransportCredentials) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithPerRPCCredentials(identity),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), // the client repeats calls itself
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		// A connection whose other end is gone without a word breaks after both.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallSendMsgSize(math.MaxInt32), // the server's bound counts
			grpc.MaxCallRecvMsgSize(largestReply),
		),
	}
}

// Endpoint says where the server listens.
func (c *Client) Endpoint() string { return c.settings.endpoint }

// Revision is the least revision of reads: the greatest that this client wrote or was given, at first 0.
func (c *Client) Revision() uint64 { return c.revision.Load() }

// AdvanceTo makes later reads see at least this revision, such as one that another client wrote. A smaller one changes nothing.
func (c *Client) AdvanceTo(revision uint64) {
	for {
		known := c.revision.Load()
		if revision <= known || c.revision.CompareAndSwap(known, revision) {
			return
		}
	}
}

// Close closes the connection and cancels calls in progress; they and later ones fail with [ClientClosed]. Closing again
// does nothing.
func (c *Client) Close() error { return c.close() }

func (c *Client) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}
