package dev.remora;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.remora.RemoraException.Details;
import dev.remora.RemoraException.FieldViolation;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.netty.shaded.io.netty.handler.ssl.NotSslRecordException;
import io.grpc.protobuf.StatusProto;
import java.io.FileNotFoundException;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.net.ssl.SSLException;

/** Reads what ended a call: gRPC's status in, an exception out. */
final class Statuses {
    private static final String DOMAIN = "remora.dev";
    private static final Pattern SENTENCE_BEGINS = Pattern.compile("(are|cannot|has|have|is|must) .*", Pattern.DOTALL);
    /** After these nobody knows whether a write took effect. */
    private static final Set<Status.Code> OPEN = EnumSet.of(
            Status.Code.UNAVAILABLE, Status.Code.DEADLINE_EXCEEDED, Status.Code.CANCELLED, Status.Code.INTERNAL, Status.Code.UNKNOWN);

    /** How gRPC's text begins for what answers in another protocol than HTTP/2. */
    private static final String OTHER_PROTOCOL = "First received frame was not SETTINGS";
    /** That of a server with TLS: the alert is 0x15, and the version begins with 3. */
    private static final Pattern TLS_ALERT = Pattern.compile(OTHER_PROTOCOL + ".*: 1503.*", Pattern.DOTALL);

    private Statuses() {}

    static RemoraException read(Status status, Metadata trailers, String requestId) {
        Details details = detailsOf(status, trailers, requestId);
        String message = details.fields().isEmpty() ? textOf(status) : sentences(details.fields());
        return new RemoraException(status.getCode(), message, details, status.getCause());
    }

    /** Whether there was no connection to a server of gRPC, or it broke. */
    static boolean isOfConnection(RemoraException failure) {
        boolean broke = failure.code() == Status.Code.UNAVAILABLE && failure.reason().isEmpty();
        return broke || String.valueOf(innermostOf(failure).getMessage()).startsWith(OTHER_PROTOCOL);
    }

    static RemoraException connectionFailed(RemoraException failure, String endpoint) {
        Details details = new Details(
                Reason.CONNECTION_FAILED, Map.of("endpoint", endpoint), List.of(), failure.retryDelay(), failure.requestId());
        Throwable innermost = innermostOf(failure);
        String message = toldOf(failure, innermost).formatted(endpoint, whyOf(failure, innermost), Endpoint.VARIABLE);
        return new RemoraException(Status.Code.UNAVAILABLE, message, details, failure.getCause());
    }

    /** What is told of a connection that failed: to where, why, and the environment's variable. */
    private static String toldOf(RemoraException failure, Throwable innermost) {
        if (innermost instanceof NotSslRecordException) {
            return "the server at %s speaks no TLS; leave out the credentials, or start it with --tls-cert and --tls-key";
        }
        if (TLS_ALERT.matcher(String.valueOf(innermost.getMessage())).matches()) {
            return "the server at %s speaks TLS; the client needs credentials, such as TlsChannelCredentials";
        }
        return isOfTls(failure)
                ? "the TLS connection to %s failed (%s); do both sides trust the other's certificate?"
                : "no Remora server answers at %s (%s); `remora serve` starts one, and endpoint or $%s says where it listens";
    }

    /** Not that of gRPC, which is the one of a server that cannot be reached. */
    static RemoraException clientClosed(RemoraException failure) {
        Details details = new Details(Reason.CLIENT_CLOSED, Map.of(), List.of(), Duration.ZERO, failure.requestId());
        return new RemoraException(Status.Code.CANCELLED, "the client was closed", details, failure.getCause());
    }

    /** Has the same reason whether the client or the server saw the deadline pass first. */
    static RemoraException deadlineExceeded(RemoraException failure, Duration allowed) {
        String message = allowed.isNegative() || allowed.isZero()
                ? "the deadline had passed before the call"
                : "no answer within " + allowed.plusNanos(500_000).toMillis() + " ms, which the call may take";
        Details details =
                new Details(Reason.DEADLINE_EXCEEDED, failure.metadata(), List.of(), failure.retryDelay(), failure.requestId());
        return new RemoraException(failure.code(), message, details, failure.getCause());
    }

    private static String whyOf(RemoraException failure, Throwable innermost) {
        if (innermost instanceof FileNotFoundException) {
            return "there is no such socket"; // Netty's has no message, and that of gRPC is "io exception"
        }
        if (innermost instanceof UnknownHostException) {
            return "its host is unknown"; // its message is the host alone
        }
        return innermost.getMessage() == null ? failure.getMessage() : innermost.getMessage();
    }

    private static Throwable innermostOf(Throwable failure) {
        return failure.getCause() == null ? failure : innermostOf(failure.getCause());
    }

    private static boolean isOfTls(Throwable failure) {
        return failure instanceof SSLException || failure.getCause() != null && isOfTls(failure.getCause());
    }

    static RemoraException withMessage(RemoraException failure, String message) {
        Details same = new Details(
                failure.reason(), failure.metadata(), failure.fields(), failure.retryDelay(), failure.requestId());
        return new RemoraException(failure.code(), message, same, failure.getCause());
    }

    /** Says what to do about a write of which nobody knows whether it took effect. */
    static RemoraException withRepeat(RemoraException failure, boolean sent) {
        if (failure.requestId().isEmpty() || !OPEN.contains(failure.code())) {
            return failure;
        }
        String told = sent
                ? "; it may have taken effect: the same call with request id \"" + failure.requestId() + "\" takes effect once"
                : "; nothing was sent";
        return withMessage(failure, failure.getMessage() + told);
    }

    private static Details detailsOf(Status status, Metadata trailers, String requestId) {
        String reason = "";
        Map<String, String> metadata = Map.of();
        List<FieldViolation> fields = new ArrayList<>();
        Duration delay = Duration.ZERO;
        try {
            for (Any detail : StatusProto.fromStatusAndTrailers(status, trailers).getDetailsList()) {
                if (detail.is(ErrorInfo.class) && detail.unpack(ErrorInfo.class).getDomain().equals(DOMAIN)) {
                    reason = detail.unpack(ErrorInfo.class).getReason();
                    metadata = Map.copyOf(detail.unpack(ErrorInfo.class).getMetadataMap());
                } else if (detail.is(BadRequest.class)) {
                    detail.unpack(BadRequest.class).getFieldViolationsList()
                            .forEach(wrong -> fields.add(new FieldViolation(wrong.getField(), wrong.getDescription())));
                } else if (detail.is(RetryInfo.class)) {
                    com.google.protobuf.Duration asked = detail.unpack(RetryInfo.class).getRetryDelay();
                    delay = Duration.ofSeconds(asked.getSeconds(), asked.getNanos());
                }
            }
        } catch (InvalidProtocolBufferException malformed) {
            return new Details("", Map.of(), List.of(), Duration.ZERO, requestId); // not from Remora; its code and text are left
        }
        return new Details(reason, metadata, List.copyOf(fields), delay, requestId);
    }

    private static String textOf(Status status) {
        return status.getDescription() == null ? status.getCode().toString() : status.getDescription();
    }

    private static String sentences(List<FieldViolation> fields) {
        return fields.stream()
                .map(wrong -> wrong.field() + (SENTENCE_BEGINS.matcher(wrong.description()).matches() ? " " : ": ") + wrong.description())
                .collect(Collectors.joining("; "));
    }
}
