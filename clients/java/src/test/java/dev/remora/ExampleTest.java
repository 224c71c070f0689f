package dev.remora;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class ExampleTest {
    @Test
    void theExampleRuns() throws Exception {
        try (RealServer server = RealServer.start(RealServer.overUnix())) {
            String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
            String classes = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
            Path told = Files.createTempFile("remora-", ".log");
            ProcessBuilder command = new ProcessBuilder(java, "-cp", classes, "example.Example").redirectError(told.toFile());
            command.environment().put(Endpoint.VARIABLE, server.endpoint());
            Process example = command.start();
            String said = new String(example.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertEquals(0, example.waitFor(), Files.readString(told));
            assertEquals("", Files.readString(told));
            assertEquals("a new conversation\nuser: Can I work abroad?\n", said);
        }
    }
}
