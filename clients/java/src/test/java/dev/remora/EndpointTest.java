package dev.remora;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonParser;
import com.sun.security.auth.module.UnixSystem;
import dev.remora.v1.GetStatusRequest;
import dev.remora.v1.GetStatusResponse;
import io.grpc.Status;
import java.io.IOException;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Where a client looks for a server, and what it is not made with. */
class EndpointTest {
    private static final int ANOTHER_USER = 4_242;

    @TempDir
    private Path runtime;

    @Test
    void theEndpointIsByDefaultInTheRuntimeDirectory() {
        assertEquals("unix:" + runtime + "/remora/remora.sock", Endpoint.ofEnvironment(environment()));
        String own = "unix:/tmp/remora-" + new UnixSystem().getUid() + "/remora.sock";
        for (String unset : List.of("", "run", "./run")) {
            assertEquals(own, Endpoint.ofEnvironment(Map.of("XDG_RUNTIME_DIR", unset, "REMORA_ENDPOINT", "")));
        }
    }

    @Test
    void theEnvironmentNamesAnEndpoint() {
        assertEquals("sidecar:7411", Endpoint.ofEnvironment(Map.of("REMORA_ENDPOINT", "sidecar:7411")));
        RemoraException wrong = assertThrows(
                RemoraException.class, () -> Endpoint.ofEnvironment(Map.of("REMORA_ENDPOINT", "localhost")));
        assertEquals("$REMORA_ENDPOINT is \"localhost\"; it must be unix:/path or host:port", wrong.getMessage());
    }

    @ParameterizedTest
    @MethodSource("accepted")
    void anEndpointHasAKnownForm(String endpoint) {
        try (Remora remora = Remora.builder().endpoint(endpoint).build()) {
            assertEquals(endpoint, remora.endpoint());
        }
    }

    @ParameterizedTest
    @MethodSource("refused")
    void anEndpointHasNoOtherForm(String endpoint) {
        assertTrue(assertThrows(RemoraException.class, () -> Remora.builder().endpoint(endpoint)).is(Reason.INVALID_FIELD));
    }

    static List<String> accepted() throws IOException {
        return endpoints("accepted");
    }

    static List<String> refused() throws IOException {
        return endpoints("refused");
    }

    /** Those in the table of all clients. */
    private static List<String> endpoints(String which) throws IOException {
        String text = Files.readString(RealServer.REPOSITORY.resolve("tests/conformance/tables/endpoints.json"));
        JsonArray table = JsonParser.parseString(text).getAsJsonObject().getAsJsonArray(which);
        return StreamSupport.stream(table.spliterator(), false).map(JsonElement::getAsString).toList();
    }

    @ParameterizedTest
    @ValueSource(strings = {"h%zz:7411", "u@h:7411", "under_score:7411"})
    void anEndpointThatGrpcCannotCallIsRefused(String endpoint) {
        RemoraException refused =
                assertThrows(RemoraException.class, () -> Remora.builder().endpoint(endpoint).build().close());
        assertEquals("endpoint", refused.fields().get(0).field());
        assertTrue(refused.getMessage().startsWith("endpoint is \"" + endpoint + "\""), refused.getMessage());
    }

    @Test
    void aPathThatNoSocketCanHaveIsRefusedAtOnce() {
        RemoraException given = assertThrows(
                RemoraException.class, () -> Remora.builder().endpoint("unix:/" + "d".repeat(200)));
        assertTrue(given.getMessage().startsWith("endpoint has a path of 201 bytes"), given.getMessage());
        Map<String, String> environment = Map.of("XDG_RUNTIME_DIR", "/" + "d".repeat(100));
        RemoraException usual = assertThrows(RemoraException.class, () -> Endpoint.ofEnvironment(environment));
        assertTrue(usual.getMessage().endsWith("set $XDG_RUNTIME_DIR to a shorter one, or $REMORA_ENDPOINT"), usual.getMessage());
    }

    @Test
    void anIpv6AddressIsCalledInBrackets() throws Exception {
        try (ScriptedServer server = new ScriptedServer(GetStatusResponse.getDefaultInstance())) {
            int port = Integer.parseInt(server.endpoint().replaceFirst(".*:", ""));
            Assumptions.assumeTrue(hasIpv6(port), "this machine has no IPv6");
            try (Remora remora = RealServer.client("[::1]:" + port)) {
                remora.admin().getStatus(GetStatusRequest.getDefaultInstance());
            }
        }
    }

    private static boolean hasIpv6(int port) {
        try (Socket socket = new Socket("::1", port)) {
            return socket.isConnected();
        } catch (IOException error) {
            return false;
        }
    }

    @Test
    void aSocketIsFoundHoweverItsPathIsWritten() throws IOException {
        try (RealServer server = RealServer.start(RealServer.overUnix())) {
            String path = server.endpoint().substring("unix:".length());
            Path odd = Files.createSymbolicLink(runtime.resolve("100%?# é"), Path.of(path));
            for (String endpoint : new String[] {"unix://" + path, "unix:" + Path.of("").toAbsolutePath().relativize(Path.of(path)), "unix:" + odd}) {
                try (Remora client = RealServer.client(endpoint)) {
                    client.admin().getStatus(GetStatusRequest.getDefaultInstance());
                }
            }
        }
    }

    @Test
    void theDefaultSocketInAnotherUsersDirectoryIsNotCalled() throws IOException {
        Path directory = Files.createDirectory(runtime.resolve("remora"));
        giveAway(directory);
        refuses("unix:" + directory + "/remora.sock");
        refuses("unix://" + directory + "/remora.sock");
        Files.delete(directory);
        Files.createSymbolicLink(directory, runtime);
        giveAway(directory);
        refuses("unix:" + directory + "/remora.sock");
    }

    @Test
    void onesOwnDirectoryAndOtherSocketsMayBeCalled() throws IOException {
        Path directory = Files.createDirectory(runtime.resolve("remora"));
        Endpoint.requireOwnDefault("unix:" + directory + "/remora.sock", environment());
        giveAway(directory);
        Endpoint.requireOwnDefault("unix:" + directory + "/another.sock", environment());
    }

    @Test
    void anOptionThatNoCallCouldBeMadeWithIsRefused() {
        Map<String, Runnable> options = Map.of(
                "tenant", () -> Remora.builder().tenant(""),
                "token", () -> Remora.builder().token("s\nx"),
                "timeout", () -> Remora.builder().timeout(Duration.ZERO));
        options.forEach((field, option) -> {
            RemoraException refused = assertThrows(RemoraException.class, option::run);
            assertEquals(field, refused.fields().get(0).field());
            assertFalse(refused.getMessage().contains("s\nx"));
        });
    }

    @Test
    void anOptionThatIsNullIsRefusedByItsName() {
        Map<String, Runnable> options = Map.of(
                "endpoint", () -> Remora.builder().endpoint(null),
                "tenant", () -> Remora.builder().tenant(null),
                "token", () -> Remora.builder().token(null),
                "timeout", () -> Remora.builder().timeout(null),
                "credentials", () -> Remora.builder().credentials(null),
                "runId", () -> Remora.builder().origin("planner", null));
        options.forEach((field, option) -> assertEquals(
                field + " is null; give one, or leave it out",
                assertThrows(RemoraException.class, option::run).getMessage()));
    }

    private void refuses(String endpoint) {
        RemoraException refused =
                assertThrows(RemoraException.class, () -> Endpoint.requireOwnDefault(endpoint, environment()));
        assertEquals(Status.Code.PERMISSION_DENIED, refused.code());
        assertTrue(refused.getMessage().contains("belongs to user 4242"), refused.getMessage());
    }

    private Map<String, String> environment() {
        return Map.of("XDG_RUNTIME_DIR", runtime.toString());
    }

    private static void giveAway(Path path) throws IOException {
        Assumptions.assumeTrue(new UnixSystem().getUid() == 0, "only root can give a directory to another user");
        Files.setAttribute(path, "unix:uid", ANOTHER_USER, LinkOption.NOFOLLOW_LINKS);
    }
}
