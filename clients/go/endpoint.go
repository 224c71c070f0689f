package remora

// Which server a client calls, by the rules that all clients and the server share.

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// EndpointVariable is the environment variable with the endpoint of the server.
const EndpointVariable = "REMORA_ENDPOINT"

const (
	socketName  = "remora.sock"
	unixPrefix  = "unix:"
	largestPort = 65_535
)

// A host by its name or its IPv4 address, or what is in brackets, and a port.
var hostAndPort = regexp.MustCompile(`^(?:\[([^\]]+)\]|[^\s\p{Z}:/\[\]]+):(\d{1,5})$`)

// DefaultEndpoint is unix:$XDG_RUNTIME_DIR/remora/remora.sock if that variable is set, else
// unix:/tmp/remora-<uid>/remora.sock, for server and clients. A relative $XDG_RUNTIME_DIR is ignored.
func DefaultEndpoint() string {
	return unixPrefix + filepath.Join(runtimeDirectory(), socketName)
}

// resolveEndpoint takes that of the environment or the default one if none was given.
func (s *settings) resolveEndpoint() error {
	if s.endpoint != "" {
		return nil
	}
	if s.endpoint = os.Getenv(EndpointVariable); s.endpoint == "" {
		s.endpoint = DefaultEndpoint()
		return requireShort(s.endpoint, "the usual endpoint", "set $XDG_RUNTIME_DIR to a shorter one, or $"+EndpointVariable)
	}
	return requireEndpoint(s.endpoint, "$"+EndpointVariable)
}

func requireEndpoint(endpoint, field string) error {
	if !isEndpoint(endpoint) {
		return invalidField(field, fmt.Sprintf("is %q; it must be unix:/path or host:port", endpoint))
	}
	return requireShort(endpoint, field, "give a shorter one")
}

// requireShort refuses a path that no socket can have.
func requireShort(endpoint, field, remedy string) error {
	if !strings.HasPrefix(endpoint, unixPrefix) {
		return nil
	}
	longest := len(syscall.RawSockaddrUnix{}.Path) - 1 // behind the path stands a zero
	size := len(socketPath(endpoint))
	if size <= longest {
		return nil
	}
	return invalidField(field, fmt.Sprintf("has a path of %d bytes, and a socket's has at most %d: %s", size, longest, remedy))
}

func isEndpoint(text string) bool {
	if strings.Contains(text, "\x00") {
		return false
	}
	if path, ok := strings.CutPrefix(text, unixPrefix); ok { // unix://folder/x has a host, as a URL
		return path != "" && (!strings.HasPrefix(path, "//") || strings.HasPrefix(path, "///"))
	}
	form := hostAndPort.FindStringSubmatch(text)
	if form == nil || form[1] != "" && !isIPv6(form[1]) {
		return false
	}
	port, err := strconv.Atoi(form[2])
	return err == nil && port > 0 && port <= largestPort
}

func isIPv6(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Is6()
}

// targetOf gives gRPC the target of an endpoint of a known form, and how to reach it.
func targetOf(endpoint string) (string, []grpc.DialOption) {
	if !strings.HasPrefix(endpoint, unixPrefix) {
		return "dns:///" + strings.ReplaceAll(endpoint, "%", "%25"), nil // the zone of an IPv6 address, in a URL
	}
	path := socketPath(endpoint)
	// Not gRPC's own unix targets: they are URLs, and a path may hold what a URL cannot.
	return "passthrough:///localhost", []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}),
	}
}

// requireOwnDefault refuses the default endpoint if its directory is another user's, who would be told all that is sent.
// Root may own it, as the server allows; a directory that is not there is nobody's.
func requireOwnDefault(endpoint string) error {
	directory := runtimeDirectory()
	if !strings.HasPrefix(endpoint, unixPrefix) || socketPath(endpoint) != filepath.Join(directory, socketName) {
		return nil
	}
	owner, isOther := otherOwner(directory)
	if !isOther {
		return nil
	}
	return &Error{
		Code: codes.PermissionDenied,
		Message: fmt.Sprintf("%s, where the socket of a Remora server would be, belongs to user %d, not to user %d: "+
			"set $XDG_RUNTIME_DIR, or say with $%s where the server listens", directory, owner, os.Geteuid(), EndpointVariable),
	}
}

// otherOwner is the user, neither this process's nor root, to whom a directory belongs, or a symbolic link to one.
func otherOwner(directory string) (uint32, bool) {
	for _, look := range []func(string) (os.FileInfo, error){os.Lstat, os.Stat} {
		info, err := look(directory)
		if err != nil {
			continue
		}
		status, ok := info.Sys().(*syscall.Stat_t)
		if ok && status.Uid != 0 && int(status.Uid) != os.Geteuid() {
			return status.Uid, true
		}
	}
	return 0, false
}

func runtimeDirectory() string {
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(runtime) {
		return filepath.Join(runtime, "remora")
	}
	return fmt.Sprintf("/tmp/remora-%d", os.Getuid())
}

// socketPath is the path, made absolute; one that begins with several slashes begins with one.
func socketPath(endpoint string) string {
	path, err := filepath.Abs(strings.TrimPrefix(endpoint, unixPrefix))
	if err != nil {
		return endpoint // there is no working directory, and no relative path
	}
	return path
}
