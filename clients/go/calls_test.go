package remora_test

// Deadlines, repeats, request ids, revisions, what travels with a call, and what a failed one says.

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"remora.dev/remora"
	remorav1 "remora.dev/remora/v1"
)

var ctx = context.Background()

func TestACallCarriesTenantAndToken(t *testing.T) {
	server := startScripted(t, &remorav1.GetStatusResponse{})
	must(t, askStatus(connect(t, remora.WithEndpoint(server.endpoint), remora.WithTenant("acme"), remora.WithToken("secret"))))
	sent := server.received()[0].metadata
	if tenant, token := sent.Get("remora-tenant"), sent.Get("authorization"); !reflect.DeepEqual(tenant, []string{"acme"}) ||
		!reflect.DeepEqual(token, []string{"Bearer secret"}) {
		t.Fatalf("tenant %v, token %v", tenant, token)
	}
}

func TestAWriteIsRepeatedWithItsRequestIDAndKeepsTheCallersMessage(t *testing.T) {
	server := startScripted(t, failure(t, codes.Unavailable, "remora.dev", "STORE_FAILED"), &remorav1.AppendMessagesResponse{Revision: 7})
	client := connect(t, remora.WithEndpoint(server.endpoint), remora.WithOrigin("planner", "r1"))
	given := &remorav1.AppendMessagesRequest{ConversationId: "c"}
	_, err := client.Conversations.AppendMessages(ctx, given)
	must(t, err)

	calls := server.received()
	if len(calls) != 2 || given.RequestId != "" {
		t.Fatalf("%d calls; the caller's request id is %q", len(calls), given.RequestId)
	}
	first, second := request[remorav1.AppendMessagesRequest](t, calls[0]), request[remorav1.AppendMessagesRequest](t, calls[1])
	if first.RequestId == "" || first.RequestId != second.RequestId || first.Origin.GetAgentId() != "planner" {
		t.Fatalf("%v, then %v", first, second)
	}
}

func TestNoRequestIsAnEmptyOne(t *testing.T) {
	server := startScripted(t, &remorav1.AppendMessagesResponse{Revision: 7}, &remorav1.ListConversationsResponse{Revision: 9})
	client := connect(t, remora.WithEndpoint(server.endpoint))
	_, err := client.Conversations.AppendMessages(ctx, nil)
	must(t, err)
	_, err = client.Conversations.ListConversations(ctx, nil)
	must(t, err)
	written, read := request[remorav1.AppendMessagesRequest](t, server.received()[0]), request[remorav1.ListConversationsRequest](t, server.received()[1])
	if written.RequestId == "" || read.MinRevision != 7 {
		t.Fatalf("%v, then %v", written, read)
	}
}

func TestATextThatIsNotUTF8IsNamedAndNothingIsSent(t *testing.T) {
	server := startScripted(t)
	client := connect(t, remora.WithEndpoint(server.endpoint))
	_, err := client.Conversations.AppendMessages(ctx, &remorav1.AppendMessagesRequest{
		ConversationId: "c",
		Messages:       []*remorav1.Message{{Role: "user", Text: "hello"}, {Role: "user", Text: "Z\xc3"}},
	})
	said := "remora: INVALID_FIELD: messages[1].text is not UTF-8: was it cut within a character, or is it in another encoding?"
	if !errors.Is(err, remora.InvalidField) || err.Error() != said || len(server.received()) != 0 {
		t.Fatal(err)
	}
}

func TestAReadWaitsForWhatTheClientHasWritten(t *testing.T) {
	server := startScripted(t, &remorav1.AppendMessagesResponse{Revision: 7}, &remorav1.ListMessagesResponse{Revision: 9})
	client := connect(t, remora.WithEndpoint(server.endpoint))
	_, err := client.Conversations.AppendMessages(ctx, &remorav1.AppendMessagesRequest{ConversationId: "c"})
	must(t, err)
	_, err = client.Conversations.ListMessages(ctx, &remorav1.ListMessagesRequest{ConversationId: "c"})
	must(t, err)
	if read := request[remorav1.ListMessagesRequest](t, server.received()[1]); read.MinRevision != 7 || client.Revision() != 7 {
		t.Fatalf("the read waits for %d; the client's revision is %d", read.MinRevision, client.Revision())
	}
	client.AdvanceTo(5)
	client.AdvanceTo(8)
	_, err = client.Conversations.ListMessages(ctx, &remorav1.ListMessagesRequest{ConversationId: "c", MinRevision: 3})
	must(t, err)
	if read := request[remorav1.ListMessagesRequest](t, server.received()[2]); read.MinRevision != 3 || client.Revision() != 8 {
		t.Fatalf("the read waits for %d; the client's revision is %d", read.MinRevision, client.Revision())
	}
}

func TestAListGoesOnWhenTheClientHasWrittenBetweenItsPages(t *testing.T) {
	client := connect(t, remora.WithEndpoint(startServer(t, overUnix(t))))
	for _, id := range []string{"a", "b", "c"} {
		_, err := client.Conversations.CreateConversation(ctx, &remorav1.CreateConversationRequest{Conversation: &remorav1.Conversation{Id: id}})
		must(t, err)
	}
	request := &remorav1.ListConversationsRequest{PageSize: 1}
	var deleted []string
	for pages := 0; pages == 0 || request.PageToken != ""; pages++ {
		page, err := client.Conversations.ListConversations(ctx, request)
		must(t, err)
		for _, found := range page.GetConversations() {
			_, err := client.Conversations.DeleteConversation(ctx, &remorav1.DeleteConversationRequest{ConversationId: found.GetId()})
			must(t, err)
			deleted = append(deleted, found.GetId())
		}
		request.PageToken = page.GetNextPageToken()
	}
	if !reflect.DeepEqual(deleted, []string{"c", "b", "a"}) {
		t.Fatal(deleted)
	}
}

func TestARevisionThatTheStoreNeverAssignedIsForgotten(t *testing.T) {
	server := startScripted(t, failure(t, codes.OutOfRange, "remora.dev", "REVISION_UNKNOWN"))
	client := connect(t, remora.WithEndpoint(server.endpoint))
	client.AdvanceTo(7)
	if err := askStatus(client); !errors.Is(err, remora.RevisionUnknown) || client.Revision() != 0 {
		t.Fatalf("%v; the client's revision is %d", err, client.Revision())
	}
}

func TestAnOverloadedServerIsAskedAgainOnlyIfItSaysWhen(t *testing.T) {
	later := &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)}
	server := startScripted(t, failure(t, codes.ResourceExhausted, "remora.dev", "OVERLOADED", later),
		failure(t, codes.ResourceExhausted, "remora.dev", "STORE_FULL"))
	err := askStatus(connect(t, remora.WithEndpoint(server.endpoint)))
	if calls := server.received(); !errors.Is(err, remora.StoreFull) || len(calls) != 2 {
		t.Fatalf("%v after %d calls", err, len(calls))
	}
}

func TestAnErrorSaysWhatTheServerSays(t *testing.T) {
	refused := &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
		{Field: "messages[2].role", Description: "is empty"}, {Field: "page_size", Description: "100 is the most"}}}
	later := &errdetails.RetryInfo{RetryDelay: durationpb.New(250 * time.Millisecond)}
	server := startScripted(t, failure(t, codes.InvalidArgument, "remora.dev", "INVALID_FIELD", refused, later))
	err := askStatus(connect(t, remora.WithEndpoint(server.endpoint)))

	var said *remora.Error
	if !errors.As(err, &said) || !errors.Is(err, remora.InvalidField) || errors.Is(err, remora.StoreFull) {
		t.Fatalf("%#v", err)
	}
	fields := []remora.FieldViolation{{Field: "messages[2].role", Description: "is empty"}, {Field: "page_size", Description: "100 is the most"}}
	if said.Code != codes.InvalidArgument || said.Metadata["id"] != "c" || said.RetryDelay != 250*time.Millisecond ||
		!reflect.DeepEqual(said.Fields, fields) || said.Message != "messages[2].role is empty; page_size: 100 is the most" {
		t.Fatalf("%#v", said)
	}
}

func TestAnErrorIsAStatusOfGRPC(t *testing.T) {
	server := startScripted(t, failure(t, codes.NotFound, "remora.dev", "CONVERSATION_NOT_FOUND"))
	err := askStatus(connect(t, remora.WithEndpoint(server.endpoint)))
	if said := status.Convert(err); said.Code() != codes.NotFound || len(said.Details()) != 1 {
		t.Fatalf("%v", said)
	}
}

func TestAReasonOfAnotherDomainIsNone(t *testing.T) {
	server := startScripted(t, failure(t, codes.NotFound, "example.com", "CONVERSATION_NOT_FOUND"))
	err := askStatus(connect(t, remora.WithEndpoint(server.endpoint)))
	if errors.Is(err, remora.ConversationNotFound) || err.Error() != "remora: NotFound: it failed, 100 %" {
		t.Fatal(err)
	}
}

func TestADeadlineEndsACallThatGetsNoAnswer(t *testing.T) {
	server := startScripted(t, outcome(nil))
	client := connect(t, remora.WithEndpoint(server.endpoint), remora.WithTimeout(time.Millisecond))
	_, err := client.Conversations.AppendMessages(ctx, &remorav1.AppendMessagesRequest{ConversationId: "c", RequestId: "mine"})
	var said *remora.Error
	if !errors.As(err, &said) || said.RequestID != "mine" || !errors.Is(err, context.DeadlineExceeded) && said.Reason != remora.ConnectionFailed {
		t.Fatal(err)
	}
}

func TestADeadlineHasAReasonWhoeverSawItPass(t *testing.T) {
	server := startScripted(t, failure(t, codes.DeadlineExceeded, "remora.dev", "DEADLINE_EXCEEDED"), outcome(nil))
	client := connect(t, remora.WithEndpoint(server.endpoint))
	byServer := askStatus(client)
	passed, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Hour))
	defer cancel()
	_, byClient := client.Admin.GetStatus(passed, nil)
	for _, err := range []error{byServer, byClient} {
		if !errors.Is(err, remora.DeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if byClient.Error() != "remora: DEADLINE_EXCEEDED: the deadline had passed before the call" || len(server.received()) != 1 {
		t.Fatal(byClient)
	}
}

func TestTheContextCancelsACall(t *testing.T) {
	server := startScripted(t, outcome(nil))
	client := connect(t, remora.WithEndpoint(server.endpoint))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, err := client.Admin.GetStatus(cancelled, &remorav1.GetStatusRequest{})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestWithoutAServerTheErrorSaysHowToGetOne(t *testing.T) {
	for _, endpoint := range []string{overUnix(t), overTCP(t)} {
		said := failureInTime(t, func(timeout time.Duration) error {
			client := connect(t, remora.WithEndpoint(endpoint), remora.WithTimeout(timeout))
			_, err := client.Conversations.AppendMessages(ctx, &remorav1.AppendMessagesRequest{ConversationId: "c"})
			return err
		})
		if said == nil || !errors.Is(said, remora.ConnectionFailed) || said.Metadata["endpoint"] != endpoint ||
			!strings.Contains(said.Message, "`remora serve` starts one") || !strings.HasSuffix(said.Message, "; nothing was sent") {
			t.Fatal(said)
		}
	}
}

func TestAHostThatHasNoAddressIsSaidToBeUnknown(t *testing.T) {
	said := failureInTime(t, func(timeout time.Duration) error {
		return askStatus(connect(t, remora.WithEndpoint("host.invalid:7411"), remora.WithTimeout(timeout)))
	})
	if said == nil || !strings.Contains(said.Message, "at host.invalid:7411 (its host is unknown);") {
		t.Fatal(said)
	}
}

func TestAServerThatStartsLateIsFound(t *testing.T) {
	endpoint := overUnix(t)
	answered := make(chan error, 1)
	client := connect(t, remora.WithEndpoint(endpoint))
	go func() { answered <- askStatus(client) }()
	startServer(t, endpoint)
	must(t, <-answered)
}

func TestAClosedClientCallsNoMore(t *testing.T) {
	client := connect(t, remora.WithEndpoint("localhost:1"))
	must(t, client.Close())
	if err := askStatus(client); !errors.Is(err, remora.ClientClosed) {
		t.Fatal(err)
	}
}

func TestACallThatCloseEndsSaysSo(t *testing.T) {
	for what, answer := range map[string]outcome{
		"no answer":    nil,
		"a long pause": failure(t, codes.ResourceExhausted, "remora.dev", "OVERLOADED", &errdetails.RetryInfo{RetryDelay: durationpb.New(patience - time.Minute)}),
	} {
		server := startScripted(t, answer)
		client := connect(t, remora.WithEndpoint(server.endpoint))
		ended := make(chan error, 1)
		go func() {
			_, err := client.Conversations.AppendMessages(ctx, &remorav1.AppendMessagesRequest{ConversationId: "c", RequestId: "mine"})
			ended <- err
		}()
		<-server.arrived
		must(t, client.Close())
		err := <-ended
		var said *remora.Error
		if !errors.Is(err, remora.ClientClosed) || !errors.As(err, &said) || said.RequestID != "mine" || status.Code(err) != codes.Canceled ||
			!strings.Contains(said.Message, `the client was closed; it may have taken effect: the same call with RequestId "mine"`) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAClientMayBeClosedTwice(t *testing.T) {
	client := connect(t, remora.WithEndpoint("localhost:1"))
	must(t, client.Close())
	must(t, client.Close())
}

func TestAnOptionThatNoCallCouldBeMadeWithIsRefused(t *testing.T) {
	for field, option := range map[string]remora.Option{
		"tenant": remora.WithTenant(""), "token": remora.WithToken("s\nx"), "timeout": remora.WithTimeout(0), "endpoint": remora.WithEndpoint(""),
	} {
		_, err := remora.New(option)
		var said *remora.Error
		if !errors.As(err, &said) || said.Fields[0].Field != field || strings.Contains(said.Message, "s\nx") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
