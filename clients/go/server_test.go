package remora_test

// A real server for tests, run by the Python of the clone.

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"remora.dev/remora"
	remorav1 "remora.dev/remora/v1"
)

// patience is for what ends by itself; only a hang takes it.
const patience = 300 * time.Second

const repository = "../.."

// startServer gives the endpoint of a healthy server that keeps all in memory and ends with the test.
func startServer(t *testing.T, endpoint string) string {
	t.Helper()
	return startServerWith(t, endpoint, nil)
}

// startServerWith gives it more arguments, and asks it with more options.
func startServerWith(t *testing.T, endpoint string, arguments []string, options ...remora.Option) string {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must(t, err)
	arguments = append([]string{"-m", "remora_server", "--listen", endpoint, "--data", ":memory:",
		"--model-dir", modelDirectory(t)}, arguments...)
	server := exec.Command(python(t), arguments...)
	server.Stdout, server.Stderr = log, log
	server.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "REMORA_PYTHON=") // no setting of the server
	})
	must(t, server.Start())
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() {
		server.Process.Kill()
		<-ended
	})
	healthy := make(chan error, 1)
	client := connect(t, append(options, remora.WithEndpoint(endpoint))...)
	go func() { healthy <- askStatus(client) }()
	select {
	case err := <-healthy:
		must(t, err)
	case err := <-ended:
		ended <- err
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("the server did not start: %v; it says: %s", err, said)
	}
	return endpoint
}

func askStatus(client *remora.Client) error {
	_, err := client.Admin.GetStatus(context.Background(), &remorav1.GetStatusRequest{})
	return err
}

// failureInTime is how a call fails that is given more and more time: a busy machine may need it to learn why. It is nil
// where the call does not fail.
func failureInTime(t *testing.T, call func(timeout time.Duration) error) *remora.Error {
	t.Helper()
	for timeout := 200 * time.Millisecond; ; timeout *= 4 {
		var failure *remora.Error
		if !errors.As(call(timeout), &failure) || failure.Code != codes.DeadlineExceeded || timeout > patience {
			return failure
		}
	}
}

// connect makes a client with patience that ends with the test.
func connect(t *testing.T, options ...remora.Option) *remora.Client {
	t.Helper()
	client, err := remora.New(append([]remora.Option{remora.WithTimeout(patience)}, options...)...)
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func overUnix(t *testing.T) string {
	return "unix:" + filepath.Join(shortFolder(t), "s")
}

// shortFolder is not t.TempDir: with a test's long name in it, a path is longer than a socket's may be.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "r-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

func overTCP(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func python(t *testing.T) string { return fromClone(t, "REMORA_PYTHON", ".venv/bin/python") }

func modelDirectory(t *testing.T) string { return fromClone(t, "REMORA_MODEL_DIR", ".cache/model") }

func fromClone(t *testing.T, variable, place string) string {
	if given := os.Getenv(variable); given != "" {
		return given
	}
	path, err := filepath.Abs(filepath.Join(repository, place))
	must(t, err)
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
