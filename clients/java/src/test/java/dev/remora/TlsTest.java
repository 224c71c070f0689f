package dev.remora;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.remora.v1.GetStatusRequest;
import io.grpc.ChannelCredentials;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** TLS with a real server, its certificate and the client's. */
class TlsTest {
    @TempDir
    private Path folder;

    @Test
    void aClientSpeaksTlsAndShowsItsCertificate() throws Exception {
        makeCertificates();
        List<String> arguments = List.of(
                "--tls-cert", pem("server"), "--tls-key", pem("server-key"), "--tls-client-ca", pem("authority"));
        try (RealServer server = RealServer.start(RealServer.overTcp(), arguments, shown("authority", "client"))) {
            ask(server.endpoint(), shown("authority", "client"), RealServer.PATIENCE);

            String told = assertRefused(server.endpoint(), trusting("stranger").build());
            assertTrue(told.contains("the TLS connection to " + server.endpoint() + " failed ("), told);
            assertTrue(told.contains("certification path"), told);
            assertRefused(server.endpoint(), trusting("authority").build());
            assertRefused(server.endpoint(), shown("authority", "expired"));
            assertRefused(server.endpoint(), shown("stranger", "client"));
            assertTrue(assertRefused(server.endpoint(), null).endsWith(
                    ": the server at " + server.endpoint() + " speaks TLS; the client needs credentials, such as TlsChannelCredentials"));
        }
    }

    @Test
    void aServerWithoutTlsIsSaidToSpeakNone() throws Exception {
        makeCertificates();
        try (RealServer server = RealServer.start(RealServer.overTcp())) {
            String told = assertRefused(server.endpoint(), trusting("authority").build());
            assertTrue(told.contains(": the server at " + server.endpoint() + " speaks no TLS; leave out the credentials"), told);
        }
    }

    @Test
    void aUnixSocketHasNoTls() throws IOException {
        Remora.Builder builder = Remora.builder().endpoint("unix:/s").credentials(TlsChannelCredentials.create());

        assertTrue(assertThrows(RemoraException.class, builder::build).is(Reason.INVALID_FIELD));
    }

    private static void ask(String endpoint, ChannelCredentials credentials, Duration timeout) {
        Remora.Builder asking = Remora.builder().endpoint(endpoint).timeout(timeout);
        try (Remora client = (credentials == null ? asking : asking.credentials(credentials)).build()) {
            client.admin().getStatus(GetStatusRequest.getDefaultInstance());
        }
    }

    /** What the client is told. */
    private static String assertRefused(String endpoint, ChannelCredentials credentials) {
        StatusRuntimeException failure = RealServer.failureInTime(timeout -> ask(endpoint, credentials, timeout));
        assertEquals(Status.Code.UNAVAILABLE, failure.getStatus().getCode());
        return failure.getMessage();
    }

    private ChannelCredentials shown(String authority, String client) throws IOException {
        return trusting(authority).keyManager(file(client), file(client + "-key")).build();
    }

    private TlsChannelCredentials.Builder trusting(String authority) throws IOException {
        return TlsChannelCredentials.newBuilder().trustManager(file(authority));
    }

    private java.io.File file(String name) {
        return folder.resolve(name + ".pem").toFile();
    }

    private String pem(String name) {
        return file(name).toString();
    }

    private void makeCertificates() throws IOException, InterruptedException {
        Path script = RealServer.REPOSITORY.resolve("tests/certificates.py");
        Process made = new ProcessBuilder(RealServer.python(), script.toString(), folder.toString()).inheritIO().start();
        assertEquals(0, made.waitFor());
    }
}
