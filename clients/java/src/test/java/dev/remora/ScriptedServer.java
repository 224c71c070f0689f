package dev.remora;

import com.google.protobuf.Any;
import com.google.protobuf.Empty;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.Parser;
import com.google.rpc.ErrorInfo;
import io.grpc.Grpc;
import io.grpc.HandlerRegistry;
import io.grpc.InsecureServerCredentials;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.StatusProto;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;

/** A gRPC server that answers with the outcomes that it was given, in turn, the last again and again. */
final class ScriptedServer extends HandlerRegistry implements AutoCloseable {
    /** An outcome that is never an answer. */
    static final Object SILENCE = new Object();

    /** One call that arrived. */
    record Received(Metadata headers, Message request) {
        String header(String name) {
            return headers.get(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER));
        }

        <M> M as(Parser<M> parser) throws InvalidProtocolBufferException {
            return parser.parseFrom(request.toByteString());
        }
    }

    final List<Received> calls = new CopyOnWriteArrayList<>();
    /** Is done once a call has arrived. */
    final CompletableFuture<Void> called = new CompletableFuture<>();
    private final List<Object> outcomes;
    private final Server server;

    ScriptedServer(Object... outcomes) throws IOException {
        this.outcomes = new ArrayList<>(List.of(outcomes));
        server = Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create()).fallbackHandlerRegistry(this).build().start();
    }

    String endpoint() {
        return "127.0.0.1:" + server.getPort();
    }

    /** A status with an ErrorInfo of a domain and further details. */
    static StatusRuntimeException failure(Status.Code code, String domain, String reason, Message... details) {
        ErrorInfo info = ErrorInfo.newBuilder().setDomain(domain).setReason(reason).putAllMetadata(Map.of("id", "c")).build();
        var status = com.google.rpc.Status.newBuilder().setCode(code.value()).setMessage("it failed").addDetails(Any.pack(info));
        for (Message detail : details) {
            status.addDetails(Any.pack(detail));
        }
        return StatusProto.toStatusRuntimeException(status.build());
    }

    @Override
    public ServerMethodDefinition<?, ?> lookupMethod(String name, String authority) {
        MethodDescriptor<Empty, Message> method = MethodDescriptor.<Empty, Message>newBuilder()
                .setType(MethodDescriptor.MethodType.UNARY)
                .setFullMethodName(name)
                .setRequestMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance())) // its unknown fields are all that was sent
                .setResponseMarshaller(ProtoUtils.marshaller((Message) Empty.getDefaultInstance()))
                .build();
        ServerCallHandler<Empty, Message> handler = (call, headers) -> {
            call.request(2);
            return new ServerCall.Listener<>() {
                @Override
                public void onMessage(Empty request) {
                    calls.add(new Received(headers, request));
                    called.complete(null);
                    answer(call, next());
                }
            };
        };
        return ServerMethodDefinition.create(method, handler);
    }

    @Override
    public void close() {
        server.shutdownNow();
    }

    private synchronized Object next() {
        return outcomes.size() > 1 ? outcomes.remove(0) : outcomes.get(0);
    }

    private static void answer(ServerCall<Empty, Message> call, Object outcome) {
        if (outcome instanceof StatusRuntimeException failure) {
            call.close(failure.getStatus(), failure.getTrailers());
        } else if (outcome instanceof Message reply) {
            call.sendHeaders(new Metadata());
            call.sendMessage(reply);
            call.close(Status.OK, new Metadata());
        }
    }
}
