package dev.remora;

import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.remora.v1.GetStatusRequest;
import io.grpc.ChannelCredentials;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/** A real server for tests, run by the Python of the clone. It keeps all in memory. */
record RealServer(String endpoint, Process process) implements AutoCloseable {
    /** For what ends by itself; only a hang takes it. */
    static final Duration PATIENCE = Duration.ofSeconds(300);

    static final Path REPOSITORY = Path.of("../..").toAbsolutePath().normalize();

    static RealServer start(String endpoint) throws IOException {
        return start(endpoint, List.of(), null);
    }

    /** One with more arguments, that is asked with these credentials; null: without TLS. */
    static RealServer start(String endpoint, List<String> arguments, ChannelCredentials credentials) throws IOException {
        Path log = Files.createTempFile("remora-", ".log");
        List<String> command = new ArrayList<>(List.of(
                python(), "-m", "remora_server", "--listen", endpoint,
                "--data", ":memory:", "--model-dir", fromClone("REMORA_MODEL_DIR", ".cache/model")));
        command.addAll(arguments);
        ProcessBuilder server = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
        server.environment().remove("REMORA_PYTHON"); // no setting of the server
        Process process = server.start();
        Remora.Builder asking = Remora.builder().endpoint(endpoint).timeout(PATIENCE);
        try (Remora client = (credentials == null ? asking : asking.credentials(credentials)).build()) {
            CompletableFuture<Void> healthy = CompletableFuture.runAsync(() -> client.admin().getStatus(GetStatusRequest.getDefaultInstance()));
            CompletableFuture.anyOf(healthy, process.onExit()).join();
        }
        String said = Files.readString(log);
        Files.delete(log);
        if (!process.isAlive()) {
            throw new IllegalStateException("the server did not start; it says: " + said);
        }
        return new RealServer(endpoint, process);
    }

    /** A client with patience. */
    static Remora client(String endpoint) {
        return Remora.builder().endpoint(endpoint).timeout(PATIENCE).build();
    }

    /** How a call fails that is given more and more time: a busy machine may need it to learn why. */
    static StatusRuntimeException failureInTime(Consumer<Duration> call) {
        for (Duration timeout = Duration.ofMillis(200);; timeout = timeout.multipliedBy(4)) {
            Duration given = timeout;
            StatusRuntimeException failure = assertThrows(StatusRuntimeException.class, () -> call.accept(given));
            if (failure.getStatus().getCode() != Status.Code.DEADLINE_EXCEEDED || timeout.compareTo(PATIENCE) > 0) {
                return failure;
            }
        }
    }

    static String overUnix() throws IOException {
        return "unix:" + Files.createTempDirectory("remora-").resolve("s");
    }

    static String overTcp() throws IOException {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return "127.0.0.1:" + free.getLocalPort();
        }
    }

    @Override
    public void close() {
        process.destroyForcibly().onExit().join();
    }

    static String python() {
        return fromClone("REMORA_PYTHON", ".venv/bin/python");
    }

    private static String fromClone(String variable, String place) {
        String given = System.getenv(variable);
        return given != null ? given : REPOSITORY.resolve(place).toString();
    }
}
