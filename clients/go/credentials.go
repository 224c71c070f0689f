package remora

// Who a client is to its server: the token and the tenant that are given, else those of the environment.

import (
	"context"
	"os"
)

const (
	tokenVariable  = "REMORA_TOKEN"
	tenantVariable = "REMORA_TENANT"
)

// resolveCredentials takes what was not given from the environment. Beside a given token, $REMORA_TENANT is not read; an
// empty variable is as good as none.
func (s *settings) resolveCredentials() error {
	if s.token != "" {
		return nil
	}
	if err := fromEnvironment(&s.tenant, tenantVariable); err != nil {
		return err
	}
	return fromEnvironment(&s.token, tokenVariable)
}

// fromEnvironment gives an empty value that of the variable, which may be empty, too.
func fromEnvironment(value *string, variable string) error {
	if *value != "" {
		return nil
	}
	if *value = os.Getenv(variable); *value == "" {
		return nil
	}
	return requireSendable(*value, "$"+variable)
}

func (s *settings) headers() headers {
	identity := headers{}
	if s.token != "" {
		identity["authorization"] = "Bearer " + s.token
	}
	if s.tenant != "" {
		identity["remora-tenant"] = s.tenant
	}
	return identity
}

// headers identify the caller.
type headers map[string]string

// GetRequestMetadata gives them to each call.
func (h headers) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return h, nil
}

// RequireTransportSecurity is false: a sidecar's socket has none, and needs none.
func (h headers) RequireTransportSecurity() bool { return false }

// requireSendable refuses what metadata cannot hold. The refusal does not show it: a token is a secret.
func requireSendable(value, field string) error {
	if value == "" {
		return invalidField(field, "is empty; give one, or leave it out")
	}
	for _, letter := range []byte(value) {
		if letter < 0x20 || letter > 0x7e {
			return invalidField(field, "must be printable ASCII")
		}
	}
	return nil
}
