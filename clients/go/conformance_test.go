package remora_test

// The conformance cases through this client. tests/conformance/cases.py says what a case means.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"remora.dev/remora"
	remorav1 "remora.dev/remora/v1"
)

type rpcCall struct {
	RPC     string          `json:"rpc"`
	Request json.RawMessage `json:"request"`
	Reply   any             `json:"reply"`
}

type conformanceCase struct {
	rpcCall
	Refusal *refusal `json:"refusal"`
	Then    *rpcCall `json:"then"`
}

type refusal struct {
	Code   codes.Code    `json:"code"`
	Reason remora.Reason `json:"reason"`
}

type document struct {
	Given []rpcCall         `json:"given"`
	Cases []conformanceCase `json:"cases"`
}

func TestEveryRPCRepliesAsTheContractSays(t *testing.T) {
	for name, listening := range map[string]func(*testing.T) string{"unix": overUnix, "tcp": overTCP} {
		t.Run(name, func(t *testing.T) {
			endpoint := startServer(t, listening(t))
			for _, all := range documents(t) {
				for number, expected := range all.Cases {
					t.Run(fmt.Sprint(number, expected.RPC), func(t *testing.T) {
						t.Parallel()
						client := connect(t, remora.WithEndpoint(endpoint), remora.WithTenant(rand.Text()))
						for _, write := range all.Given {
							_, err := ask(t, client, write)
							must(t, err)
						}
						check(t, client, expected)
					})
				}
			}
		})
	}
}

func TestEveryRPCHasACase(t *testing.T) {
	cased := map[string]bool{}
	for _, all := range documents(t) {
		for _, expected := range all.Cases {
			cased[expected.RPC] = true
		}
	}
	methods := methodsOfTheContract()
	if len(methods) < 40 {
		t.Fatalf("there are only %d RPCs", len(methods))
	}
	for name := range methods {
		if !cased[name] {
			t.Errorf("%s has no case", name)
		}
	}
}

func TestTheClientHasEveryService(t *testing.T) {
	client := connect(t, remora.WithEndpoint("localhost:1"))
	var served []string
	for field := range reflect.ValueOf(client).Elem().Fields() {
		if strings.HasSuffix(field.Type.Name(), "ServiceClient") {
			served = append(served, strings.TrimSuffix(field.Type.Name(), "Client"))
		}
	}
	slices.Sort(served)
	var services []string
	for _, method := range methodsOfTheContract() {
		services = append(services, string(method.Parent().Name()))
	}
	slices.Sort(services)
	if services = slices.Compact(services); len(services) < 8 || !slices.Equal(served, services) {
		t.Fatalf("the client has %v of %v", served, services)
	}
}

func TestADifferenceIsSeenWhereverItIs(t *testing.T) {
	found := map[string]any{"a": []any{map[string]any{"b": 1.0}}, "c": "x"}
	for expected, told := range map[string]string{
		`{"a": [{"b": "<any>"}], "d": "<none>"}`: "",
		`{"a": [{"b": 2}]}`:                      "reply.a[0].b is 1 instead of 2",
		`{"a": []}`:                              "reply.a is [map[b:1]] instead of []",
		`{"d": "<any>"}`:                         "reply.d is missing",
		`{"c": "<none>"}`:                        "reply.c is x",
	} {
		var wanted any
		must(t, json.Unmarshal([]byte(expected), &wanted))
		if said := difference(wanted, found, "reply"); said != told {
			t.Errorf("%s: %q instead of %q", expected, said, told)
		}
	}
}

func check(t *testing.T, client *remora.Client, expected conformanceCase) {
	t.Helper()
	reply, err := ask(t, client, expected.rpcCall)
	if expected.Refusal != nil {
		var failure *remora.Error
		if !errors.As(err, &failure) || *expected.Refusal != (refusal{failure.Code, failure.Reason}) {
			t.Fatalf("%v instead of %v", err, *expected.Refusal)
		}
		return
	}
	must(t, err)
	if told := difference(expected.Reply, reply, "reply"); told != "" {
		t.Fatal(told)
	}
	if expected.Then == nil {
		return
	}
	reply, err = ask(t, client, *expected.Then)
	must(t, err)
	if told := difference(expected.Then.Reply, reply, "reply"); told != "" {
		t.Fatal(told)
	}
}

// ask makes a call by its name alone, and gives the reply as JSON.
func ask(t *testing.T, client *remora.Client, call rpcCall) (any, error) {
	t.Helper()
	method, ok := methodsOfTheContract()[call.RPC]
	if !ok {
		t.Fatalf("there is no RPC %s", call.RPC)
	}
	request, reply := made(t, method.Input()), made(t, method.Output())
	must(t, protojson.Unmarshal(call.Request, request))
	path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	if err := client.Invoke(context.Background(), path, request, reply); err != nil {
		return nil, err
	}
	encoded, err := protojson.Marshal(reply)
	must(t, err)
	var decoded any
	must(t, json.Unmarshal(encoded, &decoded))
	return decoded, nil
}

func made(t *testing.T, kind protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	found, err := protoregistry.GlobalTypes.FindMessageByName(kind.FullName())
	must(t, err)
	return found.New().Interface()
}

func methodsOfTheContract() map[string]protoreflect.MethodDescriptor {
	methods := map[string]protoreflect.MethodDescriptor{}
	contract := remorav1.File_remora_v1_calls_proto.Package()
	protoregistry.GlobalFiles.RangeFilesByPackage(contract, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				methods[string(method.FullName())] = method
			}
		}
		return true
	})
	return methods
}

func documents(t *testing.T) []document {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "tests/conformance/*.json"))
	must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no cases")
	}
	read := make([]document, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		must(t, json.Unmarshal(text, &read[i]))
	}
	return read
}

// difference says where what was found is not as expected; it is empty where it is.
func difference(expected, found any, path string) string {
	switch wanted := expected.(type) {
	case string:
		if wanted == "<any>" && found == nil {
			return path + " is missing"
		}
		if wanted == "<none>" && found != nil {
			return fmt.Sprintf("%s is %v", path, found)
		}
		if wanted == "<any>" || wanted == "<none>" {
			return ""
		}
	case map[string]any:
		if fields, ok := found.(map[string]any); ok {
			return firstDifference(wanted, func(key string) string { return difference(wanted[key], fields[key], path+"."+key) })
		}
	case []any:
		if items, ok := found.([]any); ok && len(items) == len(wanted) {
			for i := range wanted {
				if told := difference(wanted[i], items[i], fmt.Sprintf("%s[%d]", path, i)); told != "" {
					return told
				}
			}
			return ""
		}
	}
	if reflect.DeepEqual(expected, found) {
		return ""
	}
	return fmt.Sprintf("%s is %v instead of %v", path, found, expected)
}

func firstDifference(fields map[string]any, told func(key string) string) string {
	for key := range fields {
		if difference := told(key); difference != "" {
			return difference
		}
	}
	return ""
}
