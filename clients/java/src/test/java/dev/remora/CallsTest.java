package dev.remora;

import static dev.remora.ScriptedServer.failure;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.rpc.BadRequest;
import com.google.rpc.RetryInfo;
import dev.remora.v1.AdminServiceGrpc;
import dev.remora.v1.AppendMessagesRequest;
import dev.remora.v1.AppendMessagesResponse;
import dev.remora.v1.GetStatusRequest;
import dev.remora.v1.GetStatusResponse;
import dev.remora.v1.ListMessagesRequest;
import dev.remora.v1.ListMessagesResponse;
import dev.remora.v1.Message;
import dev.remora.v1.Scalar;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientStreamTracer;
import io.grpc.Context;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Deadlines, repeats, request ids, revisions, what travels with a call, and what a failed one says. */
class CallsTest {
    private static final String DOMAIN = "remora.dev";
    private static final AppendMessagesRequest WRITE = AppendMessagesRequest.newBuilder().setConversationId("c").build();
    private static final ListMessagesRequest READ = ListMessagesRequest.newBuilder().setConversationId("c").build();

    @Test
    void aCallCarriesTenantAndToken() throws Exception {
        try (ScriptedServer server = new ScriptedServer(GetStatusResponse.getDefaultInstance());
                Remora client = Remora.builder().endpoint(server.endpoint()).tenant("acme").token("secret")
                        .timeout(RealServer.PATIENCE).build()) {
            askStatus(client);
            assertEquals("acme", server.calls.get(0).header("remora-tenant"));
            assertEquals("Bearer secret", server.calls.get(0).header("authorization"));
        }
    }

    @Test
    void aWriteIsRepeatedWithItsRequestId() throws Exception {
        try (ScriptedServer server = new ScriptedServer(
                        failure(Status.Code.UNAVAILABLE, DOMAIN, "STORE_FAILED"), AppendMessagesResponse.newBuilder().setRevision(7).build());
                Remora client = Remora.builder().endpoint(server.endpoint()).origin("planner", "r1").timeout(RealServer.PATIENCE).build()) {
            client.conversations().appendMessages(WRITE);
            assertEquals(2, server.calls.size());
            AppendMessagesRequest first = server.calls.get(0).as(AppendMessagesRequest.parser());
            assertEquals(first, server.calls.get(1).as(AppendMessagesRequest.parser()));
            assertFalse(first.getRequestId().isEmpty());
            assertEquals("planner", first.getOrigin().getAgentId());
        }
    }

    @Test
    void aTextThatIsCutWithinACharacterIsNamedAndNothingIsSent() throws Exception {
        Message whole = Message.newBuilder().setRole("user").setText("\ud83d\ude80 ahoy").build();
        Message cut = whole.toBuilder().setText("\ud83d").build();
        Message attributed = whole.toBuilder().putAttributes("mood", Scalar.newBuilder().setText("\ude80").build()).build();
        try (ScriptedServer server = new ScriptedServer(AppendMessagesResponse.getDefaultInstance());
                Remora client = RealServer.client(server.endpoint())) {
            for (var refused : Map.of("messages[1].text", cut, "messages[1].attributes[\"mood\"].text", attributed).entrySet()) {
                AppendMessagesRequest request = WRITE.toBuilder().addMessages(whole).addMessages(refused.getValue()).build();
                RemoraException error = failed(() -> client.conversations().appendMessages(request));
                assertTrue(error.is(Reason.INVALID_FIELD));
                assertEquals(
                        refused.getKey() + " has half of a surrogate pair: was it cut within a character?", error.getMessage());
            }
            client.conversations().appendMessages(WRITE.toBuilder().addMessages(whole).build());
            assertEquals(1, server.calls.size());
            assertEquals(whole, server.calls.get(0).as(AppendMessagesRequest.parser()).getMessages(0));
        }
    }

    @Test
    void aTimeoutMayBeAsLongAsADurationIs() throws Exception {
        try (ScriptedServer server = new ScriptedServer(GetStatusResponse.getDefaultInstance());
                Remora client = Remora.builder().endpoint(server.endpoint()).timeout(Duration.ofSeconds(Long.MAX_VALUE)).build()) {
            assertEquals(GetStatusResponse.getDefaultInstance(), client.admin().getStatus(GetStatusRequest.getDefaultInstance()));
        }
    }

    @Test
    void aReadWaitsForWhatTheClientHasWritten() throws Exception {
        try (ScriptedServer server = new ScriptedServer(
                        AppendMessagesResponse.newBuilder().setRevision(7).build(), ListMessagesResponse.newBuilder().setRevision(9).build());
                Remora client = RealServer.client(server.endpoint())) {
            client.conversations().appendMessages(WRITE);
            client.conversations().listMessages(READ);
            assertEquals(7, server.calls.get(1).as(ListMessagesRequest.parser()).getMinRevision());
            client.advanceTo(8);
            client.advanceTo(5);
            client.conversations().listMessages(READ.toBuilder().setMinRevision(3).build());
            assertEquals(3, server.calls.get(2).as(ListMessagesRequest.parser()).getMinRevision());
            assertEquals(8, client.revision());
        }
    }

    @Test
    void aRevisionThatTheStoreNeverAssignedIsForgotten() throws Exception {
        try (ScriptedServer server = new ScriptedServer(failure(Status.Code.OUT_OF_RANGE, DOMAIN, "REVISION_UNKNOWN"));
                Remora client = RealServer.client(server.endpoint())) {
            client.advanceTo(7);
            assertTrue(failed(() -> askStatus(client)).is(Reason.REVISION_UNKNOWN));
            assertEquals(0, client.revision());
        }
    }

    @Test
    void anOverloadedServerIsAskedAgainOnlyIfItSaysWhen() throws Exception {
        try (ScriptedServer server = new ScriptedServer(
                        failure(Status.Code.RESOURCE_EXHAUSTED, DOMAIN, "OVERLOADED", after(Duration.ofMillis(1))),
                        failure(Status.Code.RESOURCE_EXHAUSTED, DOMAIN, "STORE_FULL"));
                Remora client = RealServer.client(server.endpoint())) {
            assertTrue(failed(() -> askStatus(client)).is(Reason.STORE_FULL));
            assertEquals(2, server.calls.size());
        }
    }

    @Test
    void anErrorSaysWhatTheServerSays() throws Exception {
        BadRequest refused = BadRequest.newBuilder()
                .addFieldViolations(BadRequest.FieldViolation.newBuilder().setField("messages[2].role").setDescription("is empty"))
                .addFieldViolations(BadRequest.FieldViolation.newBuilder().setField("page_size").setDescription("100 is the most"))
                .build();
        StatusRuntimeException said =
                failure(Status.Code.INVALID_ARGUMENT, DOMAIN, "INVALID_FIELD", refused, after(Duration.ofMillis(250)));
        try (ScriptedServer server = new ScriptedServer(said); Remora client = RealServer.client(server.endpoint())) {
            RemoraException error = failed(() -> askStatus(client));
            assertTrue(error.is(Reason.INVALID_FIELD));
            assertEquals(Status.Code.INVALID_ARGUMENT, error.code());
            assertEquals(Map.of("id", "c"), error.metadata());
            assertEquals(Duration.ofMillis(250), error.retryDelay());
            assertEquals("messages[2].role is empty; page_size: 100 is the most", error.getMessage());
            assertEquals(List.of("messages[2].role", "page_size"), error.fields().stream().map(field -> field.field()).toList());
        }
    }

    @Test
    void aReasonOfAnotherDomainIsNone() throws Exception {
        try (ScriptedServer server = new ScriptedServer(failure(Status.Code.NOT_FOUND, "example.com", "CONVERSATION_NOT_FOUND"));
                Remora client = RealServer.client(server.endpoint())) {
            RemoraException error = failed(() -> askStatus(client));
            assertEquals("", error.reason());
            assertEquals("it failed", error.getMessage());
        }
    }

    @Test
    void futuresFailWithReasonsToo() throws Exception {
        try (ScriptedServer server = new ScriptedServer(failure(Status.Code.NOT_FOUND, DOMAIN, "CONVERSATION_NOT_FOUND"));
                Remora client = RealServer.client(server.endpoint())) {
            var asked = AdminServiceGrpc.newFutureStub(client.channel()).getStatus(GetStatusRequest.getDefaultInstance());
            assertTrue(RemoraException.of(assertThrows(ExecutionException.class, asked::get)).is(Reason.CONVERSATION_NOT_FOUND));
        }
    }

    @Test
    void aDeadlineEndsACallThatGetsNoAnswer() throws Exception {
        try (ScriptedServer server = new ScriptedServer(ScriptedServer.SILENCE); Remora client = RealServer.client(server.endpoint())) {
            RemoraException error = failed(() -> client.conversations()
                    .withDeadlineAfter(20, TimeUnit.MILLISECONDS)
                    .appendMessages(WRITE.toBuilder().setRequestId("mine").build()));
            assertEquals(Status.Code.DEADLINE_EXCEEDED, error.code());
            assertEquals("mine", error.requestId());
        }
    }

    @Test
    void aDeadlineHasAReasonWhoeverSawItPass() throws Exception {
        try (ScriptedServer server = new ScriptedServer(failure(Status.Code.DEADLINE_EXCEEDED, DOMAIN, "DEADLINE_EXCEEDED"));
                Remora client = Remora.builder().endpoint(server.endpoint()).timeout(RealServer.PATIENCE).build()) {
            RemoraException byServer = failed(() -> askStatus(client));
            assertTrue(byServer.is(Reason.DEADLINE_EXCEEDED));
            assertEquals("no answer within 300000 ms, which the call may take", byServer.getMessage());
            RemoraException byClient = failed(() ->
                    client.admin().withDeadlineAfter(-1, TimeUnit.HOURS).getStatus(GetStatusRequest.getDefaultInstance()));
            assertTrue(byClient.is(Reason.DEADLINE_EXCEEDED));
            assertEquals("the deadline had passed before the call", byClient.getMessage());
        }
    }

    @Test
    void anErrorThatIsSerialisedTellsTheSame() throws Exception {
        BadRequest refused = BadRequest.newBuilder()
                .addFieldViolations(BadRequest.FieldViolation.newBuilder().setField("messages[2].role").setDescription("is empty"))
                .build();
        StatusRuntimeException said =
                failure(Status.Code.INVALID_ARGUMENT, DOMAIN, "INVALID_FIELD", refused, after(Duration.ofMillis(250)));
        try (ScriptedServer server = new ScriptedServer(said); Remora client = RealServer.client(server.endpoint())) {
            RemoraException error = failed(() -> askStatus(client));
            ByteArrayOutputStream written = new ByteArrayOutputStream();
            new ObjectOutputStream(written).writeObject(error);
            RemoraException read = (RemoraException)
                    new ObjectInputStream(new ByteArrayInputStream(written.toByteArray())).readObject();
            assertEquals(error.getMessage(), read.getMessage());
            assertEquals(
                    List.of(error.code(), error.reason(), error.metadata(), error.fields(), error.retryDelay(), error.requestId()),
                    List.of(read.code(), read.reason(), read.metadata(), read.fields(), read.retryDelay(), read.requestId()));
        }
    }

    @Test
    void aContextCancelsACallThatWaitsForItsRepeat() throws Exception {
        try (ScriptedServer server = new ScriptedServer(overloadedForLong());
                Remora client = RealServer.client(server.endpoint());
                Context.CancellableContext context = Context.current().withCancellation()) {
            CompletableFuture<RemoraException> ended =
                    CompletableFuture.supplyAsync(() -> failed(() -> context.run(() -> askStatus(client))));
            server.called.join();
            context.cancel(null);
            assertEquals(Status.Code.CANCELLED, ended.get().code());
        }
    }

    @Test
    void aCancelledFutureIsRepeatedNoMore() throws Exception {
        try (ScriptedServer server = new ScriptedServer(overloadedForLong()); Remora client = RealServer.client(server.endpoint())) {
            var asked = AdminServiceGrpc.newFutureStub(client.channel()).getStatus(GetStatusRequest.getDefaultInstance());
            asked.cancel(true);
            assertTrue(asked.isCancelled());
        }
    }

    @Test
    void withoutAServerTheErrorSaysHowToGetOne() throws Exception {
        for (String endpoint : List.of(RealServer.overUnix(), RealServer.overTcp())) {
            RemoraException error = failureToWrite(endpoint);
            assertTrue(error.is(Reason.CONNECTION_FAILED), error.getMessage());
            assertEquals(Map.of("endpoint", endpoint), error.metadata());
            assertTrue(error.getMessage().contains("`remora serve` starts one"), error.getMessage());
            assertTrue(error.getMessage().endsWith("; nothing was sent"), error.getMessage());
        }
    }

    @Test
    void aSocketThatIsNotThereIsSaidToBeMissing() throws Exception {
        RemoraException error = failureToWrite(RealServer.overUnix());
        assertTrue(error.getMessage().contains("(there is no such socket)"), error.getMessage());
    }

    @Test
    void aHostThatHasNoAddressIsSaidToBeUnknown() {
        RemoraException error = failureToWrite("host.invalid:7411");
        assertTrue(error.getMessage().contains("at host.invalid:7411 (its host is unknown);"), error.getMessage());
    }

    @Test
    void aServerThatStartsLateIsFound() throws Exception {
        String endpoint = RealServer.overUnix();
        try (Remora client = RealServer.client(endpoint)) {
            CompletableFuture<Void> answered = CompletableFuture.runAsync(() -> askStatus(client));
            try (RealServer server = RealServer.start(endpoint)) {
                answered.join();
            }
        }
    }

    @Test
    void aClosedClientCallsNoMore() {
        Remora client = RealServer.client("localhost:1");
        client.close();
        assertTrue(failed(() -> askStatus(client)).is(Reason.CLIENT_CLOSED));
    }

    @Test
    void aCallThatCloseEndsSaysSo() throws Exception {
        for (Object answer : List.of(ScriptedServer.SILENCE, overloadedForLong())) {
            try (ScriptedServer server = new ScriptedServer(answer); Remora client = RealServer.client(server.endpoint())) {
                CompletableFuture<RemoraException> ended = CompletableFuture.supplyAsync(
                        () -> failed(() -> client.conversations().appendMessages(WRITE.toBuilder().setRequestId("mine").build())));
                server.called.join();
                client.close();
                RemoraException error = ended.join();
                assertTrue(error.is(Reason.CLIENT_CLOSED), error.getMessage());
                assertEquals(Status.Code.CANCELLED, error.code());
                assertEquals(
                        "the client was closed; it may have taken effect: the same call with request id \"mine\" takes effect once",
                        error.getMessage());
            }
        }
    }

    @Test
    void aRepeatThatCannotBeMadeEndsTheCall() throws Exception {
        try (ScriptedServer server = new ScriptedServer(failure(Status.Code.UNAVAILABLE, DOMAIN, "STORE_FAILED"));
                Remora client = RealServer.client(server.endpoint())) {
            RemoraException error = failed(() -> client.conversations()
                    .withInterceptors(new TracedOnce())
                    .appendMessages(WRITE.toBuilder().setRequestId("mine").build()));
            assertEquals(Status.Code.UNKNOWN, error.code());
            assertEquals("mine", error.requestId());
            assertEquals(
                    "the call could not be repeated: java.lang.IllegalStateException: traced already; "
                            + "it may have taken effect: the same call with request id \"mine\" takes effect once",
                    error.getMessage());
            assertEquals(1, server.calls.size());
        }
    }

    /** Has gRPC call a tracer, which fails at the second attempt of a call. */
    private static final class TracedOnce implements ClientInterceptor {
        @Override
        public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
            AtomicInteger attempts = new AtomicInteger();
            return next.newCall(method, options.withStreamTracerFactory(new ClientStreamTracer.Factory() {
                @Override
                public ClientStreamTracer newClientStreamTracer(ClientStreamTracer.StreamInfo info, Metadata headers) {
                    if (attempts.getAndIncrement() > 0) {
                        throw new IllegalStateException("traced already");
                    }
                    return new ClientStreamTracer() {};
                }
            }));
        }
    }

    private static void askStatus(Remora client) {
        client.admin().getStatus(GetStatusRequest.getDefaultInstance());
    }

    private static RemoraException failureToWrite(String endpoint) {
        return RemoraException.of(RealServer.failureInTime(timeout -> {
            try (Remora client = Remora.builder().endpoint(endpoint).timeout(timeout).build()) {
                client.conversations().appendMessages(WRITE);
            }
        }));
    }

    private static RemoraException failed(Runnable call) {
        return RemoraException.of(assertThrows(StatusRuntimeException.class, call::run));
    }

    private static StatusRuntimeException overloadedForLong() {
        return failure(Status.Code.UNAVAILABLE, DOMAIN, "OVERLOADED", after(RealServer.PATIENCE.minusSeconds(10)));
    }

    private static RetryInfo after(Duration delay) {
        return RetryInfo.newBuilder()
                .setRetryDelay(com.google.protobuf.Duration.newBuilder().setSeconds(delay.toSeconds()).setNanos(delay.toNanosPart()))
                .build();
    }
}
