package dev.remora;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ExampleTest {
    @Test
    void theExampleRuns() throws Exception {
        runsAt(RealServer.overUnix());
    }

    /** As in a trimmed run time, or on a system whose users have no numbers. */
    @Test
    void theExampleRunsOverTcpWithoutTheModuleThatKnowsUsers() throws Exception {
        runsAt(RealServer.overTcp(), "--limit-modules", "java.logging,java.management,java.naming,jdk.unsupported");
    }

    private static void runsAt(String endpoint, String... options) throws Exception {
        try (RealServer server = RealServer.start(endpoint)) {
            List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
            command.addAll(List.of(options));
            String classes = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
            command.addAll(List.of("-cp", classes, "example.Example"));
            Path told = Files.createTempFile("remora-", ".log");
            ProcessBuilder builder = new ProcessBuilder(command).redirectError(told.toFile());
            builder.environment().put(Endpoint.VARIABLE, server.endpoint());
            builder.environment().remove("XDG_RUNTIME_DIR");
            Process example = builder.start();
            String said = new String(example.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertEquals(0, example.waitFor(), Files.readString(told));
            assertEquals("", Files.readString(told));
            assertEquals("a new conversation\nuser: Can I work abroad?\n", said);
        }
    }
}
