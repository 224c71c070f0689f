package dev.remora;

import io.grpc.Metadata;
import java.util.Map;

/** Who a client is to its server: the token and the tenant that are given, else those of the environment. */
final class Credentials {
    private static final String TOKEN_VARIABLE = "REMORA_TOKEN";
    private static final String TENANT_VARIABLE = "REMORA_TENANT";

    private Credentials() {}

    /**
     * The metadata that identifies the caller; what is null is not given, and the environment's stands for it. Beside a given token,
     * {@code $REMORA_TENANT} is not read; an empty variable is as good as none.
     */
    static Metadata resolve(String token, String tenant, Map<String, String> environment) {
        Metadata identity = new Metadata();
        String knownTenant = tenant != null || token != null ? tenant : variable(TENANT_VARIABLE, environment);
        if (knownTenant != null) {
            put(identity, "remora-tenant", knownTenant);
        }
        String knownToken = token != null ? token : variable(TOKEN_VARIABLE, environment);
        if (knownToken != null) {
            put(identity, "authorization", "Bearer " + knownToken);
        }
        return identity;
    }

    /** What the environment has there; null where it is empty or missing. */
    private static String variable(String name, Map<String, String> environment) {
        String value = environment.getOrDefault(name, "");
        return value.isEmpty() ? null : requireSendable(value, "$" + name);
    }

    private static void put(Metadata identity, String name, String value) {
        identity.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value);
    }

    /** Refuses what metadata cannot hold. The refusal does not show it: a token is a secret. */
    static String requireSendable(String value, String field) {
        if (value.isEmpty()) {
            throw RemoraException.invalidField(field, "is empty; give one, or leave it out");
        }
        if (!value.chars().allMatch(letter -> letter >= 0x20 && letter <= 0x7e)) {
            throw RemoraException.invalidField(field, "must be printable ASCII");
        }
        return value;
    }
}
