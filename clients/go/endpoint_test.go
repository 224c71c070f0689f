package remora_test

// Where a client looks for a server.

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"remora.dev/remora"
	remorav1 "remora.dev/remora/v1"
)

const anotherUser = 4_242

// ownRuntime is the runtime directory of the test, and where a server's directory would be in it.
func ownRuntime(t *testing.T) (runtime, directory string) {
	t.Helper()
	runtime = shortFolder(t)
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv(remora.EndpointVariable, "")
	return runtime, filepath.Join(runtime, "remora")
}

func TestTheEndpointIsByDefaultInTheRuntimeDirectory(t *testing.T) {
	_, directory := ownRuntime(t)
	if found := connect(t).Endpoint(); found != "unix:"+directory+"/remora.sock" {
		t.Fatal(found)
	}
	for _, unset := range []string{"", "run", "./run"} {
		t.Setenv("XDG_RUNTIME_DIR", unset)
		if found := connect(t).Endpoint(); found != fmt.Sprintf("unix:/tmp/remora-%d/remora.sock", os.Getuid()) {
			t.Fatal(found)
		}
	}
}

func TestAGivenEndpointComesBeforeThatOfTheEnvironment(t *testing.T) {
	t.Setenv(remora.EndpointVariable, "sidecar:7411")
	if found := connect(t, remora.WithEndpoint("unix:/tmp/r.sock")).Endpoint(); found != "unix:/tmp/r.sock" {
		t.Fatal(found)
	}
	if found := connect(t).Endpoint(); found != "sidecar:7411" {
		t.Fatal(found)
	}
}

func TestAWrongEndpointOfTheEnvironmentIsNamed(t *testing.T) {
	t.Setenv(remora.EndpointVariable, "localhost")
	_, err := remora.New()
	if err == nil || !strings.Contains(err.Error(), `$REMORA_ENDPOINT is "localhost"; it must be unix:/path or host:port`) {
		t.Fatal(err)
	}
}

// The table is that of all clients.
func TestAnEndpointHasAKnownForm(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "tests/conformance/tables/endpoints.json"))
	must(t, err)
	var table struct{ Accepted, Refused []string }
	must(t, json.Unmarshal(text, &table))
	if len(table.Accepted) == 0 || len(table.Refused) == 0 {
		t.Fatal("the table is empty")
	}
	for _, endpoint := range table.Accepted {
		if found := connect(t, remora.WithEndpoint(endpoint)).Endpoint(); found != endpoint {
			t.Errorf("%q: %q", endpoint, found)
		}
	}
	for _, endpoint := range table.Refused {
		if _, err := remora.New(remora.WithEndpoint(endpoint)); !errors.Is(err, remora.InvalidField) {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

func TestAPathThatNoSocketCanHaveIsRefusedAtOnce(t *testing.T) {
	_, err := remora.New(remora.WithEndpoint("unix:/" + strings.Repeat("d", 200)))
	if !errors.Is(err, remora.InvalidField) || !strings.Contains(err.Error(), "endpoint has a path of 201 bytes") {
		t.Error(err)
	}
	t.Setenv(remora.EndpointVariable, "")
	t.Setenv("XDG_RUNTIME_DIR", "/"+strings.Repeat("d", 100))
	_, err = remora.New()
	if !errors.Is(err, remora.InvalidField) || !strings.Contains(err.Error(), "set $XDG_RUNTIME_DIR to a shorter one") {
		t.Error(err)
	}
}

func TestASocketIsFoundHoweverItsPathIsWritten(t *testing.T) {
	server := startScripted(t, &remorav1.GetStatusResponse{})
	path := strings.TrimPrefix(server.endpoint, "unix:")
	folder, name := filepath.Split(path)
	odd := filepath.Join(folder, "100%?#")
	must(t, os.Symlink(path, odd))
	t.Chdir(folder)
	for _, endpoint := range []string{"unix:" + path, "unix://" + path, "unix:" + name, "unix:" + odd} {
		must(t, askStatus(connect(t, remora.WithEndpoint(endpoint))))
	}
}

func TestAnIPv6AddressIsCalledInBracketsWithOrWithoutAZone(t *testing.T) {
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6")
	}
	endpoint := listener.Addr().String()
	listener.Close()
	must(t, askStatus(connect(t, remora.WithEndpoint(startServer(t, endpoint)))))
	must(t, askStatus(connect(t, remora.WithEndpoint(strings.Replace(endpoint, "]", "%"+loopback(t)+"]", 1)))))
}

// loopback is the name of the interface.
func loopback(t *testing.T) string {
	t.Helper()
	interfaces, err := net.Interfaces()
	must(t, err)
	for _, each := range interfaces {
		if each.Flags&net.FlagLoopback != 0 {
			return each.Name
		}
	}
	t.Fatal("an IPv6 address without a loopback interface")
	return ""
}

func TestTheDefaultSocketInAnotherUsersDirectoryIsNotCalled(t *testing.T) {
	runtime, directory := ownRuntime(t)
	must(t, os.Mkdir(directory, 0o700))
	giveAway(t, directory)
	refuses(t, remora.DefaultEndpoint())
	refuses(t, "unix://"+directory+"/remora.sock")
	must(t, os.Remove(directory))
	must(t, os.Symlink(runtime, directory))
	giveAway(t, directory)
	refuses(t, remora.DefaultEndpoint())
}

func TestTheDefaultSocketBehindOnesOwnLinkMayBeCalled(t *testing.T) {
	runtime, directory := ownRuntime(t)
	server := startScripted(t, &remorav1.GetStatusResponse{})
	elsewhere := filepath.Join(runtime, "elsewhere")
	must(t, os.Mkdir(elsewhere, 0o700))
	must(t, os.Symlink(elsewhere, directory))
	must(t, os.Symlink(strings.TrimPrefix(server.endpoint, "unix:"), filepath.Join(elsewhere, "remora.sock")))
	must(t, askStatus(connect(t)))
}

func giveAway(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	must(t, os.Lchown(path, anotherUser, 0))
}

func refuses(t *testing.T, endpoint string) {
	t.Helper()
	err := askStatus(connect(t, remora.WithEndpoint(endpoint)))
	var said *remora.Error
	if !errors.As(err, &said) || said.Code != codes.PermissionDenied || !strings.Contains(said.Message, "belongs to user 4242") {
		t.Fatalf("%s: %v", endpoint, err)
	}
}
