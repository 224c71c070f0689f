package dev.remora;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import dev.remora.v1.Origin;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.ConnectivityState;
import io.grpc.Context;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.stub.MetadataUtils;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Stands between the generated clients and gRPC's channel, and adds what each call needs. Streams get the identity alone. */
final class RemoraChannel extends Channel {
    private static final int LARGEST_REPLY = 64 << 20; // a server may be set to send larger replies than gRPC's usual ones

    private final String endpoint;
    private final Duration timeout;
    private final Origin origin;
    private final ManagedChannel connection;
    private final Channel identified;
    private final AtomicLong revision = new AtomicLong();
    private final Context.CancellableContext lifetime = Context.ROOT.withCancellation();

    RemoraChannel(String endpoint, ChannelCredentials credentials, Metadata identity, Duration timeout, Origin origin) {
        this.endpoint = endpoint;
        this.timeout = timeout;
        this.origin = origin;
        Metadata sent = new Metadata();
        sent.merge(identity); // the builder may be used again
        connection = Endpoint.connect(endpoint, () -> Endpoint.channelTo(endpoint, credentials)
                .disableRetry() // calls are repeated here
                .disableServiceConfigLookUp()
                .proxyDetector(address -> null)
                // A connection whose other end is gone without a word breaks after both.
                .keepAliveTime(10, TimeUnit.SECONDS)
                .keepAliveTimeout(5, TimeUnit.SECONDS)
                .maxInboundMessageSize(LARGEST_REPLY)
                .build());
        identified = ClientInterceptors.intercept(connection, MetadataUtils.newAttachHeadersInterceptor(sent));
    }

    @Override
    public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
        if (method.getType() != MethodDescriptor.MethodType.UNARY) {
            mayCall();
            return identified.newCall(method, options);
        }
        return new RepeatedCall<>(this, method, options, timeout);
    }

    @Override
    public String authority() {
        return identified.authority();
    }

    /** Throws if no call may be made. */
    void mayCall() {
        if (isClosed()) {
            throw new RemoraException(Status.Code.FAILED_PRECONDITION, Reason.CLIENT_CLOSED, "the client is closed; make another");
        }
        Endpoint.requireOwnDefault(endpoint, System.getenv());
    }

    <Q, R> ClientCall<Q, R> attempt(MethodDescriptor<Q, R> method, CallOptions options) {
        if (connection.getState(false) == ConnectivityState.TRANSIENT_FAILURE) {
            connection.resetConnectBackoff(); // the pauses of repeats are waited already, and are shorter
        }
        return identified.newCall(method, options);
    }

    /** The request with what the client adds. */
    Message filled(Message given) {
        Message.Builder request = given.toBuilder();
        setIfMissing(request, "min_revision", revision());
        if (field(given, "request_id") == null) {
            return request.build();
        }
        setIfMissing(request, "request_id", UUID.randomUUID().toString());
        if (origin != null) {
            setIfMissing(request, "origin", origin);
        }
        return request.build();
    }

    /** The request id of a write; empty for a read. */
    static String requestIdOf(Message request) {
        FieldDescriptor field = field(request, "request_id");
        return field == null ? "" : (String) request.getField(field);
    }

    void wrote(Message reply) {
        FieldDescriptor field = field(reply, "revision");
        if (field != null) {
            advanceTo((Long) reply.getField(field));
        }
    }

    private static void setIfMissing(Message.Builder request, String name, Object value) {
        FieldDescriptor field = request.getDescriptorForType().findFieldByName(name);
        if (field != null && !request.hasField(field)) {
            request.setField(field, value);
        }
    }

    private static FieldDescriptor field(Message message, String name) {
        return message.getDescriptorForType().findFieldByName(name);
    }

    long revision() {
        return revision.get();
    }

    void advanceTo(long other) {
        revision.accumulateAndGet(other, Math::max);
    }

    /** The store of the client's revision is gone. */
    void forgetRevision() {
        revision.set(0);
    }

    String endpoint() {
        return endpoint;
    }

    boolean isClosed() {
        return lifetime.isCancelled();
    }

    /** Is cancelled when the client is closed. */
    Context lifetime() {
        return lifetime;
    }

    void close() {
        lifetime.cancel(null);
        connection.shutdownNow();
    }
}
