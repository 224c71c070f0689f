package dev.remora;

import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Grpc;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;

/** One unary call, whatever its number of attempts. */
final class RepeatedCall<Q, R> extends ClientCall<Q, R> {
    private final RemoraChannel channel;
    private final MethodDescriptor<Q, R> method;
    private final CallOptions options;
    private final Deadline deadline;
    private final Context context = Context.current();
    private final long began = System.nanoTime();
    private final Duration allowed;

    private Listener<R> listener;
    private Metadata headers;
    private Q request;
    private String requestId = "";
    private int attempts;
    /** Whether an attempt may have reached a server. */
    private boolean sent;
    private RemoraException previous;
    private ClientCall<Q, R> current;
    private Status cancelled;
    private boolean ended;

    /** One that may take {@code timeout}, unless the options have a deadline. */
    RepeatedCall(RemoraChannel channel, MethodDescriptor<Q, R> method, CallOptions options, Duration timeout) {
        this.channel = channel;
        this.method = method;
        boolean limited = options.getDeadline() != null;
        this.options = limited ? options : options.withDeadlineAfter(TimeUnit.NANOSECONDS.convert(timeout), TimeUnit.NANOSECONDS);
        Deadline own = this.options.getDeadline();
        Deadline ofContext = context.getDeadline();
        deadline = ofContext == null ? own : own.minimum(ofContext);
        allowed = limited || deadline != own ? Duration.ofNanos(deadline.timeRemaining(TimeUnit.NANOSECONDS)) : timeout;
    }

    @Override
    public void start(Listener<R> listener, Metadata headers) {
        this.listener = listener;
        this.headers = headers;
    }

    @Override
    public void request(int messages) {} // a unary call has one reply, which each attempt asks for

    @Override
    @SuppressWarnings("unchecked") // what is filled has the type of what was given
    public void sendMessage(Q given) {
        if (!(given instanceof Message message)) {
            request = given;
            return;
        }
        Message filled = channel.filled(message);
        requestId = RemoraChannel.requestIdOf(filled);
        request = (Q) filled;
    }

    @Override
    public void halfClose() {
        try {
            channel.mayCall();
            if (request instanceof Message message) {
                Texts.requireWhole(message);
            }
        } catch (RemoraException refused) {
            executor().execute(() -> fail(refused, new Metadata()));
            return;
        }
        attempt();
    }

    @Override
    public synchronized void cancel(String message, Throwable cause) {
        cancelled = Status.CANCELLED.withDescription(message == null ? "the call was cancelled" : message).withCause(cause);
        if (current != null) {
            current.cancel(message == null && cause == null ? cancelled.getDescription() : message, cause);
        } else {
            executor().execute(() -> closed(cancelled, new Metadata(), false));
        }
    }

    private synchronized void attempt() {
        if (cancelled != null) {
            return;
        }
        current = channel.attempt(method, options);
        Metadata copy = new Metadata();
        copy.merge(headers);
        current.start(new Attempt(current), copy);
        current.request(2); // one more than a reply, as gRPC's own stubs do
        current.sendMessage(request);
        current.halfClose();
    }

    /** Where the listener is called: a blocking stub waits for what runs there. */
    private Executor executor() {
        return options.getExecutor() == null ? ForkJoinPool.commonPool() : options.getExecutor();
    }

    private final class Attempt extends Listener<R> {
        private final ClientCall<Q, R> call;
        private Metadata received = new Metadata();
        private R reply;

        private Attempt(ClientCall<Q, R> call) {
            this.call = call;
        }

        @Override
        public void onHeaders(Metadata headers) {
            received = headers;
        }

        @Override
        public void onMessage(R message) {
            reply = message;
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            if (!status.isOk()) {
                closed(status, trailers, call.getAttributes().get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR) != null);
                return;
            }
            if (reply instanceof Message message && !requestId.isEmpty()) {
                channel.wrote(message);
            }
            listener.onHeaders(received);
            if (reply != null) {
                listener.onMessage(reply);
            }
            listener.onClose(status, trailers);
        }
    }

    private void closed(Status status, Metadata trailers, boolean reached) {
        sent |= reached;
        RemoraException failure = read(status, trailers);
        Duration elapsed = Duration.ofNanos(System.nanoTime() - began);
        Duration remaining = Duration.ofNanos(deadline.timeRemaining(TimeUnit.NANOSECONDS));
        Optional<Duration> pause = Repeats.pauseBefore(failure, attempts++, elapsed, remaining);
        if (pause.isEmpty() || !waits()) {
            fail(Statuses.withRepeat(failure, sent), trailers);
            return;
        }
        previous = failure;
        waitFor(pause.get()).thenRunAsync(context.wrap(this::attempt)).exceptionally(thrown -> {
            executor().execute(() -> failToRepeat(thrown.getCause())); // that of the CompletionException
            return null;
        });
    }

    /** Ends the call, of which no attempt is in progress that would. */
    private void failToRepeat(Throwable thrown) {
        Status status = Status.UNKNOWN.withDescription("the call could not be repeated: " + thrown).withCause(thrown);
        fail(Statuses.withRepeat(Statuses.read(status, new Metadata(), requestId), sent), new Metadata());
    }

    /** Ends early with the call's context or the client, which the next attempt sees. */
    private CompletableFuture<Void> waitFor(Duration pause) {
        CompletableFuture<Void> over = new CompletableFuture<>();
        Context.CancellationListener ends = ended -> over.complete(null);
        context.addListener(ends, Runnable::run);
        channel.lifetime().addListener(ends, Runnable::run);
        return over.completeOnTimeout(null, pause.toNanos(), TimeUnit.NANOSECONDS).whenComplete((nothing, never) -> {
            context.removeListener(ends);
            channel.lifetime().removeListener(ends);
        });
    }

    /** Whether the call goes on; from here to the next attempt there is nothing else to cancel. */
    private synchronized boolean waits() {
        current = null;
        return cancelled == null;
    }

    private RemoraException read(Status status, Metadata trailers) {
        RemoraException failure = Statuses.read(status, trailers, requestId);
        if (Statuses.isOfConnection(failure)) {
            return channel.isClosed() ? Statuses.clientClosed(failure) : Statuses.connectionFailed(failure, channel.endpoint());
        }
        if (failure.code() != Status.Code.DEADLINE_EXCEEDED) {
            return failure;
        }
        if (previous != null && (previous.is(Reason.CONNECTION_FAILED) || previous.is(Reason.MODEL_UNREACHABLE))) {
            return previous; // the deadline came during a reconnect, or a repeat for the model
        }
        return Statuses.deadlineExceeded(failure, allowed);
    }

    private void fail(RemoraException failure, Metadata trailers) {
        synchronized (this) {
            if (ended) {
                return;
            }
            ended = true;
        }
        if (failure.is(Reason.REVISION_UNKNOWN)) {
            channel.forgetRevision();
        }
        listener.onClose(Status.fromCode(failure.code()).withDescription(failure.getMessage()).withCause(failure), trailers);
    }
}
