package dev.remora;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.remora.v1.GetStatusRequest;
import dev.remora.v1.GetStatusResponse;
import java.io.IOException;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Who a client is to its server: as it is told, else as the environment says. */
class CredentialsTest {
    private static final Map<String, String> OF_ANA = Map.of("REMORA_TOKEN", "of-ana", "REMORA_TENANT", "ana");

    /** The token and the tenant of a call; null for one that is not sent. */
    private record Sent(String authorization, String tenant) {}

    @Test
    void theTokenAndTheTenantAreThoseOfTheEnvironment() throws IOException {
        assertEquals(new Sent("Bearer of-ana", "ana"), sent(OF_ANA, builder -> builder));
        assertEquals(new Sent(null, "ana"), sent(Map.of("REMORA_TENANT", "ana"), builder -> builder));
    }

    @Test
    void aGivenTokenGoesBeforeTheEnvironmentsTokenAndTenant() throws IOException {
        assertEquals(new Sent("Bearer of-bob", null), sent(OF_ANA, builder -> builder.token("of-bob")));
        assertEquals(new Sent("Bearer of-bob", "bob"), sent(OF_ANA, builder -> builder.token("of-bob").tenant("bob")));
    }

    @Test
    void aGivenTenantIsSentBesideTheEnvironmentsToken() throws IOException {
        assertEquals(new Sent("Bearer of-ana", "bob"), sent(OF_ANA, builder -> builder.tenant("bob")));
    }

    @Test
    void anEmptyVariableIsAsGoodAsNone() throws IOException {
        assertEquals(new Sent(null, null), sent(Map.of("REMORA_TOKEN", "", "REMORA_TENANT", ""), builder -> builder));
    }

    @ParameterizedTest
    @ValueSource(strings = {"REMORA_TOKEN", "REMORA_TENANT"})
    void aVariableThatCannotBeSentIsRefusedByItsName(String name) {
        Remora.Builder builder = Remora.builder().endpoint("localhost:7411");
        RemoraException refused = assertThrows(RemoraException.class, () -> builder.build(Map.of(name, "s\nx")));
        assertTrue(refused.is(Reason.INVALID_FIELD));
        assertEquals("$" + name + " must be printable ASCII", refused.getMessage());
    }

    /** What a call sends of a client that is made in this environment, with these options. */
    private static Sent sent(Map<String, String> environment, UnaryOperator<Remora.Builder> options) throws IOException {
        try (ScriptedServer server = new ScriptedServer(GetStatusResponse.getDefaultInstance());
                Remora client = options.apply(Remora.builder().endpoint(server.endpoint()).timeout(RealServer.PATIENCE)).build(environment)) {
            client.admin().getStatus(GetStatusRequest.getDefaultInstance());
            ScriptedServer.Received call = server.calls.get(0);
            return new Sent(call.header("authorization"), call.header("remora-tenant"));
        }
    }
}
