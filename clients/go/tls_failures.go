package remora

// Tells what went wrong with TLS from what gRPC says of a connection that failed, and what to do about it. The findings are the
// Python client's.

import (
	"fmt"
	"regexp"
	"strings"
)

// tlsFailure is what is told of the server, and what to do about it. In the finding, %s is the group of said.
type tlsFailure struct {
	said            *regexp.Regexp
	finding, remedy string
}

// closedAtOnce is how a connection ends that the server closes: in TLS 1.3 it looks at the certificate after the client's part.
const closedAtOnce = `(remote error: tls: .*?|error reading server preface.*?|[^:]*: (?:broken pipe|connection reset by peer))"?$`

// The first that fits counts.
var withTLS = []tlsFailure{
	{regexp.MustCompile(`x509: (certificate is (?:valid for|not valid for any names).*?)"?$`),
		"has a TLS certificate for another name (%s)", "ServerName of WithTLS says which name it must have"},
	{regexp.MustCompile(`failed to verify certificate: (?:x509: )?(.*?)"?$`),
		"has a TLS certificate that cannot be verified (%s)", "RootCAs of WithTLS has who signed it"},
	{regexp.MustCompile(`tls: (first record does not look like a TLS handshake)`),
		"speaks no TLS (%s)", "leave out WithTLS, or start it with --tls-cert and --tls-key"},
	{regexp.MustCompile(closedAtOnce),
		"ended the TLS connection (%s)", "if it requires certificates, Certificates of WithTLS has a valid one"},
}

var withoutTLS = []tlsFailure{
	{regexp.MustCompile(`((?:error reading server|failed to write client) preface.*?|failed to write initial settings frame.*?)"?$`),
		"closed the connection at once (%s)", "if it speaks TLS, the client needs WithTLS"},
}

// ofTLS is what to say of a connection that failed for TLS; empty if that is not why.
func ofTLS(said, endpoint string, speaksTLS bool) string {
	if strings.HasPrefix(endpoint, unixPrefix) {
		return ""
	}
	failures := withoutTLS
	if speaksTLS {
		failures = withTLS
	}
	for _, failure := range failures {
		if found := failure.said.FindStringSubmatch(said); found != nil {
			return fmt.Sprintf("the server at %s "+failure.finding+"; %s", endpoint, found[1], failure.remedy)
		}
	}
	return ""
}
