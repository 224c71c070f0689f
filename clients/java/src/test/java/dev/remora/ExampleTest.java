package dev.remora;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ExampleTest {
    @TempDir
    private Path folder;

    @Test
    void theExampleRuns() throws Exception {
        assertEquals("a new conversation\nuser: Can I work abroad?\n", said(RealServer.overUnix(), "example.Example"));
    }

    @Test
    void theProgramOfTheReadmeRuns() throws Exception {
        Matcher program = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(Files.readString(Path.of("README.md")));
        assertTrue(program.find());
        Path source = Files.writeString(folder.resolve("Support.java"), program.group(1));
        assertEquals("user: Can I work abroad?\n", said(RealServer.overUnix(), source.toString()));
    }

    /** As in a trimmed run time, or on a system whose users have no numbers. */
    @Test
    void theExampleRunsOverTcpWithoutTheModuleThatKnowsUsers() throws Exception {
        String said = said(
                RealServer.overTcp(), "--limit-modules", "java.logging,java.management,java.naming,jdk.unsupported", "example.Example");
        assertEquals("a new conversation\nuser: Can I work abroad?\n", said);
    }

    /** What Java says with these arguments, for the server at the endpoint. */
    private static String said(String endpoint, String... arguments) throws Exception {
        try (RealServer server = RealServer.start(endpoint)) {
            String classes = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
            List<String> command =
                    new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp", classes));
            command.addAll(List.of(arguments));
            Path told = Files.createTempFile("remora-", ".log");
            ProcessBuilder builder = new ProcessBuilder(command).redirectError(told.toFile());
            builder.environment().put(Endpoint.VARIABLE, server.endpoint());
            builder.environment().remove("XDG_RUNTIME_DIR");
            Process program = builder.start();
            String said = new String(program.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertEquals(0, program.waitFor(), Files.readString(told));
            assertEquals("", Files.readString(told));
            return said;
        }
    }
}
