package remora_test

// Who a client is to its server: as it is told, else as the environment says.

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"remora.dev/remora"
	remorav1 "remora.dev/remora/v1"
)

// TestMain clears what other tests would send unasked.
func TestMain(m *testing.M) {
	for _, variable := range []string{"REMORA_TOKEN", "REMORA_TENANT"} {
		if err := os.Unsetenv(variable); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// sent are the tokens and the tenants of a call of a client with these options.
func sent(t *testing.T, options ...remora.Option) (tokens, tenants []string) {
	t.Helper()
	server := startScripted(t, &remorav1.GetStatusResponse{})
	must(t, askStatus(connect(t, append(options, remora.WithEndpoint(server.endpoint))...)))
	metadata := server.received()[0].metadata
	return metadata.Get("authorization"), metadata.Get("remora-tenant")
}

func TestTheTokenAndTheTenantMayComeFromTheEnvironment(t *testing.T) {
	bob, bobs := remora.WithTenant("bob"), remora.WithToken("of-bob")
	cases := map[string]struct {
		token, tenant string // of the environment
		options       []remora.Option
		sentToken     []string
		sentTenant    []string
	}{
		"none is given":                      {"of-ana", "ana", nil, []string{"Bearer of-ana"}, []string{"ana"}},
		"the token is given":                 {"of-ana", "ana", []remora.Option{bobs}, []string{"Bearer of-bob"}, nil},
		"the tenant is given":                {"of-ana", "ana", []remora.Option{bob}, []string{"Bearer of-ana"}, []string{"bob"}},
		"both are given":                     {"of-ana", "ana", []remora.Option{bob, bobs}, []string{"Bearer of-bob"}, []string{"bob"}},
		"only the tenant is there":           {"", "ana", nil, nil, []string{"ana"}},
		"both are there, but they are empty": {"", "", nil, nil, nil},
	}
	for name, each := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("REMORA_TOKEN", each.token)
			t.Setenv("REMORA_TENANT", each.tenant)
			tokens, tenants := sent(t, each.options...)
			if !reflect.DeepEqual(tokens, each.sentToken) || !reflect.DeepEqual(tenants, each.sentTenant) {
				t.Fatalf("token %v, tenant %v", tokens, tenants)
			}
		})
	}
}

func TestAVariableThatCannotBeSentIsRefusedByItsName(t *testing.T) {
	for _, variable := range []string{"REMORA_TOKEN", "REMORA_TENANT"} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "s\nx")
			_, err := remora.New(remora.WithEndpoint("localhost:7411"))
			if !errors.Is(err, remora.InvalidField) || !strings.HasSuffix(err.Error(), ": $"+variable+" must be printable ASCII") {
				t.Fatal(err)
			}
		})
	}
}
