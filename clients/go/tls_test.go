package remora_test

// TLS with a real server, its certificate and the client's.

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"remora.dev/remora"
)

func TestAClientSpeaksTLSAndShowsItsCertificate(t *testing.T) {
	folder := certificates(t)
	pem := func(name string) string { return filepath.Join(folder, name+".pem") }
	pair, err := tls.LoadX509KeyPair(pem("client"), pem("client-key"))
	must(t, err)
	expired, err := tls.LoadX509KeyPair(pem("expired"), pem("expired-key"))
	must(t, err)
	known := &tls.Config{RootCAs: authorities(t, pem("authority")), Certificates: []tls.Certificate{pair}}
	endpoint := startServerWith(t, overTCP(t), []string{"--tls-cert", pem("server"), "--tls-key", pem("server-key"),
		"--tls-client-ca", pem("authority")}, remora.WithTLS(known))

	must(t, askStatus(connect(t, remora.WithEndpoint(endpoint), remora.WithTLS(known))))

	trusting := func(authority string, shown ...tls.Certificate) *tls.Config {
		return &tls.Config{RootCAs: authorities(t, pem(authority)), Certificates: shown}
	}
	anotherHost := trusting("authority", pair)
	anotherHost.ServerName = "other"
	for what, refused := range map[string]struct {
		config *tls.Config
		said   string
	}{
		"no certificate":    {trusting("authority"), "ended the TLS connection ("},
		"expired":           {trusting("authority", expired), "ended the TLS connection ("},
		"another authority": {trusting("stranger", pair), "has a TLS certificate that cannot be verified (certificate signed by unknown authority"},
		"another host":      {anotherHost, "has a TLS certificate for another name (certificate is valid for localhost, not other); ServerName of WithTLS"},
		"no TLS":            {nil, "closed the connection at once ("},
	} {
		failure := refusalOf(t, endpoint, refused.config)
		if !errors.Is(failure, remora.ConnectionFailed) || failure.Code != codes.Unavailable ||
			!strings.HasPrefix(failure.Message, "the server at "+endpoint+" "+refused.said) {
			t.Errorf("%s: %v", what, failure)
		}
	}
}

func TestAServerWithoutTLSIsSaidToSpeakNone(t *testing.T) {
	endpoint := startServer(t, overTCP(t))
	failure := refusalOf(t, endpoint, &tls.Config{})
	if failure == nil || !strings.HasPrefix(failure.Message, "the server at "+endpoint+" speaks no TLS (") {
		t.Fatal(failure)
	}
}

// refusalOf is what a client gets, without TLS if the configuration is nil.
func refusalOf(t *testing.T, endpoint string, config *tls.Config) *remora.Error {
	t.Helper()
	return failureInTime(t, func(timeout time.Duration) error {
		options := []remora.Option{remora.WithEndpoint(endpoint), remora.WithTimeout(timeout)}
		if config != nil {
			options = append(options, remora.WithTLS(config))
		}
		return askStatus(connect(t, options...))
	})
}

func TestAUnixSocketHasNoTLS(t *testing.T) {
	_, err := remora.New(remora.WithEndpoint("unix:/s"), remora.WithTLS(&tls.Config{}))
	var failure *remora.Error
	if !errors.As(err, &failure) || failure.Reason != remora.InvalidField {
		t.Fatal(err)
	}
}

// certificates makes them in a folder; tests/certificates.py says which.
func certificates(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	script, err := filepath.Abs(filepath.Join(repository, "tests", "certificates.py"))
	must(t, err)
	said, err := exec.Command(python(t), script, folder).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return folder
}

func authorities(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		t.Fatalf("%s holds no certificate", file)
	}
	return pool
}
