package remora_test

// TLS with a real server, its certificate and the client's.

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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

	for what, config := range map[string]*tls.Config{
		"no certificate":    {RootCAs: authorities(t, pem("authority"))},
		"expired":           {RootCAs: authorities(t, pem("authority")), Certificates: []tls.Certificate{expired}},
		"another authority": {RootCAs: authorities(t, pem("stranger")), Certificates: []tls.Certificate{pair}},
		"another host":      {RootCAs: authorities(t, pem("authority")), Certificates: []tls.Certificate{pair}, ServerName: "other"},
	} {
		if failure := refusalOf(t, endpoint, config); failure == nil || failure.Code != codes.Unavailable {
			t.Errorf("%s: %v", what, failure)
		}
	}
}

// refusalOf is what a client gets.
func refusalOf(t *testing.T, endpoint string, config *tls.Config) *remora.Error {
	t.Helper()
	return failureInTime(t, func(timeout time.Duration) error {
		return askStatus(connect(t, remora.WithEndpoint(endpoint), remora.WithTLS(config), remora.WithTimeout(timeout)))
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
