package dev.remora;

import dev.remora.v1.AdminServiceGrpc;
import dev.remora.v1.CheckpointServiceGrpc;
import dev.remora.v1.ConversationServiceGrpc;
import dev.remora.v1.HistoryServiceGrpc;
import dev.remora.v1.MemoryServiceGrpc;
import dev.remora.v1.Origin;
import dev.remora.v1.StoreServiceGrpc;
import dev.remora.v1.TextServiceGrpc;
import dev.remora.v1.TransferServiceGrpc;
import dev.remora.v1.UserServiceGrpc;
import dev.remora.v1.VectorServiceGrpc;
import dev.remora.v1.WorkflowServiceGrpc;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.Metadata;
import java.time.Duration;
import java.util.Map;

/**
 * A connection to one Remora server, as one tenant. It connects with its first call, and again after the connection broke. It
 * may be used by many threads.
 *
 * <p>Calls are repeated within their deadline while the server is unavailable; a write takes effect once. A read that failed may
 * be made again as it is. A write that failed may have taken effect: make the same call again with
 * {@link RemoraException#requestId()} as its request id, and it takes effect once. Reads see all earlier writes of this client.
 *
 * <p>Calls throw {@link io.grpc.StatusRuntimeException}; {@link RemoraException#of} tells its reason.
 */
public final class Remora implements AutoCloseable {
    private final String endpoint;
    private final RemoraChannel channel;

    private Remora(String endpoint, RemoraChannel channel) {
        this.endpoint = endpoint;
        this.channel = channel;
    }

    /** What a client is made with; everything has a default. */
    public static Builder builder() {
        return new Builder();
    }

    /** Conversations and their messages. */
    public ConversationServiceGrpc.ConversationServiceBlockingStub conversations() {
        return ConversationServiceGrpc.newBlockingStub(channel);
    }

    /** Searches, contexts and working memories. */
    public MemoryServiceGrpc.MemoryServiceBlockingStub memory() {
        return MemoryServiceGrpc.newBlockingStub(channel);
    }

    /** Steps of conversations, and what agents did. */
    public HistoryServiceGrpc.HistoryServiceBlockingStub history() {
        return HistoryServiceGrpc.newBlockingStub(channel);
    }

    /** Runs of workflows and their steps. */
    public WorkflowServiceGrpc.WorkflowServiceBlockingStub workflows() {
        return WorkflowServiceGrpc.newBlockingStub(channel);
    }

    /** Vectors and their collections. */
    public VectorServiceGrpc.VectorServiceBlockingStub vectors() {
        return VectorServiceGrpc.newBlockingStub(channel);
    }

    /** Items: JSON values under keys in namespaces. */
    public StoreServiceGrpc.StoreServiceBlockingStub store() {
        return StoreServiceGrpc.newBlockingStub(channel);
    }

    /** Checkpoints of graphs, and their threads. */
    public CheckpointServiceGrpc.CheckpointServiceBlockingStub checkpoints() {
        return CheckpointServiceGrpc.newBlockingStub(channel);
    }

    /** Users. */
    public UserServiceGrpc.UserServiceBlockingStub users() {
        return UserServiceGrpc.newBlockingStub(channel);
    }

    /** Token counts and embeddings. */
    public TextServiceGrpc.TextServiceBlockingStub text() {
        return TextServiceGrpc.newBlockingStub(channel);
    }

    /** Exports and imports. */
    public TransferServiceGrpc.TransferServiceBlockingStub transfer() {
        return TransferServiceGrpc.newBlockingStub(channel);
    }

    /** The server's status, and backups. */
    public AdminServiceGrpc.AdminServiceBlockingStub admin() {
        return AdminServiceGrpc.newBlockingStub(channel);
    }

    /** The channel, for generated clients of another kind, such as those with futures. */
    public Channel channel() {
        return channel;
    }

    /** Where the server listens. */
    public String endpoint() {
        return endpoint;
    }

    /** The least revision of reads: the greatest that this client wrote or was given, at first 0. */
    public long revision() {
        return channel.revision();
    }

    /** Makes later reads see at least this revision, such as one that another client wrote. A smaller one changes nothing. */
    public void advanceTo(long revision) {
        channel.advanceTo(revision);
    }

    /**
     * Closes the connection and cancels calls in progress; they and later ones fail with {@link Reason#CLIENT_CLOSED}. Closing again
     * does nothing.
     */
    @Override
    public void close() {
        channel.close();
    }

    /** Options of a client. */
    public static final class Builder {
        private String endpoint;
        private String token;
        private String tenant;
        private Duration timeout = Duration.ofSeconds(2);
        private Origin origin;
        private ChannelCredentials credentials;

        private Builder() {}

        /** The server, {@code unix:/path} or {@code host:port}; by default {@code $REMORA_ENDPOINT}, else where it listens by default. */
        public Builder endpoint(String endpoint) {
            this.endpoint = Endpoint.require(requireGiven(endpoint, "endpoint"), "endpoint");
            return this;
        }

        /**
         * The tenant, 1 to 512 printable ASCII characters, if the server requires no token; else it must be the token's. By default
         * {@code $REMORA_TENANT}, unless a token is given; else the token's or, without a token, {@code default}.
         */
        public Builder tenant(String tenant) {
            this.tenant = Credentials.requireSendable(requireGiven(tenant, "tenant"), "tenant");
            return this;
        }

        /**
         * Authenticates. It is printable ASCII, and sent as it is: over a network, use {@link #credentials}. By default
         * {@code $REMORA_TOKEN}. An empty variable is as good as none.
         */
        public Builder token(String token) {
            this.token = Credentials.requireSendable(requireGiven(token, "token"), "token");
            return this;
        }

        /**
         * How long a call may take, repeats included, if it has no deadline of its own. Greater than 0; by default 2 seconds, which is too
         * short for a call that waits for a chat model, or for the embeddings of many texts.
         */
        public Builder timeout(Duration timeout) {
            requireGiven(timeout, "timeout");
            if (timeout.isNegative() || timeout.isZero()) {
                throw RemoraException.invalidField("timeout", "is " + timeout + "; it must be greater than 0");
            }
            this.timeout = timeout;
            return this;
        }

        /** Is kept in the records of writes: the agent and its run, each up to 512 bytes in UTF-8; empty if there is none. */
        public Builder origin(String agentId, String runId) {
            origin = Origin.newBuilder()
                    .setAgentId(requireGiven(agentId, "agentId"))
                    .setRunId(requireGiven(runId, "runId"))
                    .build();
            return this;
        }

        /**
         * How it connects to a host and port that speak TLS: {@link io.grpc.TlsChannelCredentials} with the authorities of the server
         * and, if the server requires one, the client's certificate. By default it speaks no TLS.
         */
        public Builder credentials(ChannelCredentials credentials) {
            this.credentials = requireGiven(credentials, "credentials");
            return this;
        }

        /**
         * Makes the client. It does not connect yet.
         *
         * @throws RemoraException with {@link Reason#INVALID_FIELD} if no call could be made with an option, as the options themselves do
         */
        public Remora build() {
            return build(System.getenv());
        }

        Remora build(Map<String, String> environment) {
            String chosen = endpoint != null ? endpoint : Endpoint.ofEnvironment(environment);
            Metadata identity = Credentials.resolve(token, tenant, environment);
            return new Remora(chosen, new RemoraChannel(chosen, Endpoint.credentialsFor(chosen, credentials), identity, timeout, origin));
        }

        private static <T> T requireGiven(T value, String field) {
            if (value == null) {
                throw RemoraException.invalidField(field, "is null; give one, or leave it out");
            }
            return value;
        }
    }
}
