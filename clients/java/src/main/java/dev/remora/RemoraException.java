package dev.remora;

import io.grpc.Metadata;
import io.grpc.Status;
import java.io.Serializable;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * A call that failed, and why. Texts are for people and may change; codes and reasons do not.
 *
 * <p>It is the cause of the {@link io.grpc.StatusRuntimeException} that a call throws; {@link #of} finds it:
 *
 * <pre>{@code
 * catch (StatusRuntimeException failed) {
 *     if (!RemoraException.of(failed).is(Reason.CONVERSATION_NOT_FOUND)) throw failed;
 * }
 * }</pre>
 */
public final class RemoraException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final Status.Code code;
    private final Details details;

    /** One field of a request that was refused, as the contract names it, and what is wrong with it. */
    public record FieldViolation(String field, String description) implements Serializable {}

    /** What a status says beside its code and text. */
    record Details(String reason, Map<String, String> metadata, List<FieldViolation> fields, Duration retryDelay, String requestId)
            implements Serializable {
        static Details ofReason(String reason) {
            return new Details(reason, Map.of(), List.of(), Duration.ZERO, "");
        }
    }

    RemoraException(Status.Code code, String message, Details details, Throwable cause) {
        super(message, cause);
        this.code = code;
        this.details = details;
    }

    RemoraException(Status.Code code, String reason, String message) {
        this(code, message, Details.ofReason(reason), null);
    }

    /** An argument that no call could be made with. */
    static RemoraException invalidField(String field, String description) {
        List<FieldViolation> fields = List.of(new FieldViolation(field, description));
        Details details = new Details(Reason.INVALID_FIELD, Map.of(), fields, Duration.ZERO, "");
        return new RemoraException(Status.Code.INVALID_ARGUMENT, field + " " + description, details, null);
    }

    /** What a call's exception tells, whichever it is: of a call, of a stream, or of a future. */
    public static RemoraException of(Throwable failed) {
        for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
            if (cause instanceof RemoraException known) {
                return known;
            }
        }
        Metadata trailers = Status.trailersFromThrowable(failed);
        return Statuses.read(Status.fromThrowable(failed), trailers == null ? new Metadata() : trailers, "");
    }

    /** Whether this is why, one of {@link Reason}. */
    public boolean is(String reason) {
        return reason.equals(details.reason());
    }

    /** The canonical code. */
    public Status.Code code() {
        return code;
    }

    /** Why, one of {@link Reason}; empty if the failure did not come from Remora itself. */
    public String reason() {
        return details.reason();
    }

    /** What the reason is about, such as the conversation's id. */
    public Map<String, String> metadata() {
        return details.metadata();
    }

    /** The fields of the request that were refused. */
    public List<FieldViolation> fields() {
        return details.fields();
    }

    /** How long the server asks to wait before a repeat; zero if it says nothing. */
    public Duration retryDelay() {
        return details.retryDelay();
    }

    /**
     * The request id of a write that failed. The same call with it takes effect once, even if the failed one did. Empty for reads,
     * which may always be repeated, and for calls that were not made.
     */
    public String requestId() {
        return details.requestId();
    }
}
