package dev.remora;

import com.sun.security.auth.module.UnixSystem;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.util.NetUtil;
import io.grpc.Status;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Which server a client calls, by the rules that all clients and the server share. */
final class Endpoint {
    static final String VARIABLE = "REMORA_ENDPOINT";

    private static final String UNIX = "unix:";
    /** A host by its name or its IPv4 address, or what is in brackets without and with a zone, and a port. */
    private static final Pattern HOST_AND_PORT =
            Pattern.compile("(?:\\[([^%\\]]+)(?:%[^%\\]]+)?\\]|[^\\s\\p{Z}:/\\[\\]]+):(\\d{1,5})");
    private static final int LARGEST_PORT = 65_535;

    /** Bytes of a socket's path, from the system's {@code sockaddr_un}. */
    private static final int LONGEST_PATH = System.getProperty("os.name").startsWith("Mac") ? 103 : 107;

    private Endpoint() {}

    /** The endpoint that the environment names, else that in the runtime directory. */
    static String ofEnvironment(Map<String, String> environment) {
        String named = environment.getOrDefault(VARIABLE, "");
        if (!named.isEmpty()) {
            return require(named, "$" + VARIABLE);
        }
        String usual = UNIX + runtimeDirectory(environment).resolve("remora.sock");
        return requireShort(usual, "the usual endpoint", "set $XDG_RUNTIME_DIR to a shorter one, or $" + VARIABLE);
    }

    static String require(String endpoint, String field) {
        if (!isEndpoint(endpoint)) {
            throw RemoraException.invalidField(field, "is \"" + endpoint + "\"; it must be unix:/path or host:port");
        }
        return requireShort(endpoint, field, "give a shorter one");
    }

    /** The endpoint itself, unless no socket can have its path. */
    private static String requireShort(String endpoint, String field, String remedy) {
        int bytes = endpoint.startsWith(UNIX) ? socketOf(endpoint).toString().getBytes(StandardCharsets.UTF_8).length : 0;
        if (bytes > LONGEST_PATH) {
            String told = "has a path of %d bytes, and a socket's has at most %d: %s";
            throw RemoraException.invalidField(field, told.formatted(bytes, LONGEST_PATH, remedy));
        }
        return endpoint;
    }

    private static boolean isEndpoint(String text) {
        if (text.indexOf('\0') >= 0) {
            return false;
        }
        if (text.startsWith(UNIX)) { // unix://folder/x has a host, as a URL
            return text.length() > UNIX.length() && (!text.startsWith(UNIX + "//") || text.startsWith(UNIX + "///"));
        }
        Matcher form = HOST_AND_PORT.matcher(text);
        if (!form.matches() || form.group(1) != null && !NetUtil.isValidIpV6Address(form.group(1))) {
            return false;
        }
        int port = Integer.parseInt(form.group(2));
        return port > 0 && port <= LARGEST_PORT;
    }

    /** Those that are given, which are for a port, or none. */
    static ChannelCredentials credentialsFor(String endpoint, ChannelCredentials given) {
        if (given == null) {
            return InsecureChannelCredentials.create();
        }
        if (endpoint.startsWith(UNIX)) {
            throw RemoraException.invalidField("credentials", "are for host:port, and the endpoint is \"" + endpoint + "\"; leave them out");
        }
        return given;
    }

    /** A channel to the endpoint, made by {@code channel}. Refuses one that gRPC cannot call, such as a host with an underscore. */
    static ManagedChannel connect(String endpoint, Supplier<ManagedChannel> channel) {
        try {
            return channel.get();
        } catch (IllegalArgumentException error) {
            String told = "is \"" + endpoint + "\", which gRPC cannot call: " + error.getMessage();
            throw RemoraException.invalidField("endpoint", told);
        }
    }

    static ManagedChannelBuilder<?> channelTo(String endpoint, ChannelCredentials credentials) {
        ManagedChannelBuilder<?> channel =
                Grpc.newChannelBuilder(targetOf(endpoint), credentials).overrideAuthority(authorityOf(endpoint));
        if (endpoint.startsWith(UNIX) && channel instanceof NettyChannelBuilder netty) {
            netty.withOption(ChannelOption.SO_KEEPALIVE, null); // gRPC sets it, and Netty warns that these sockets have none
        }
        return channel;
    }

    private static String targetOf(String endpoint) {
        try {
            URI target = endpoint.startsWith(UNIX)
                    ? new URI("unix", null, socketOf(endpoint).toString(), null)
                    : new URI("dns", "", "/" + endpoint, null, null); // which escapes the brackets of an IPv6 address
            return target.toASCIIString();
        } catch (URISyntaxException error) {
            throw new IllegalStateException(error); // an absolute path always has a URI
        }
    }

    private static String authorityOf(String endpoint) {
        return endpoint.startsWith(UNIX) ? "localhost" : endpoint;
    }

    /**
     * Refuses the default endpoint if its directory is another user's, who would be told all that is sent. Root may own it, as the
     * server allows; a directory that is not there is nobody's.
     */
    static void requireOwnDefault(String endpoint, Map<String, String> environment) {
        if (!endpoint.startsWith(UNIX)) {
            return; // and without a question about users, which not every system answers
        }
        Path directory = runtimeDirectory(environment);
        if (!socketOf(endpoint).equals(directory.resolve("remora.sock").toAbsolutePath().normalize())) {
            return;
        }
        OptionalInt other = otherOwner(directory);
        if (other.isPresent()) {
            String told = "%s, where the socket of a Remora server would be, belongs to user %d, not to user %d: set $XDG_RUNTIME_DIR, "
                    + "or say with $%s where the server listens";
            throw new RemoraException(Status.Code.PERMISSION_DENIED, "", told.formatted(directory, other.getAsInt(), ownUser(), VARIABLE));
        }
    }

    /** The user, neither this process's nor root, to whom a directory belongs, or a symbolic link to one. */
    private static OptionalInt otherOwner(Path directory) {
        OptionalInt ofLink = otherOwner(directory, LinkOption.NOFOLLOW_LINKS);
        return ofLink.isPresent() ? ofLink : otherOwner(directory, new LinkOption[0]);
    }

    private static OptionalInt otherOwner(Path directory, LinkOption... follows) {
        try {
            int owner = (Integer) Files.getAttribute(directory, "unix:uid", follows);
            return owner == 0 || owner == ownUser() ? OptionalInt.empty() : OptionalInt.of(owner);
        } catch (IOException error) {
            return OptionalInt.empty(); // it is not there, or may not be looked at, nor connected to
        }
    }

    private static Path runtimeDirectory(Map<String, String> environment) {
        Path runtime = Path.of(environment.getOrDefault("XDG_RUNTIME_DIR", ""));
        return runtime.isAbsolute() ? runtime.resolve("remora") : Path.of("/tmp/remora-" + ownUser()); // XDG ignores relative ones
    }

    private static long ownUser() {
        return new UnixSystem().getUid();
    }

    /** The path, made absolute; one that begins with several slashes begins with one. */
    private static Path socketOf(String endpoint) {
        return Path.of(endpoint.substring(UNIX.length())).toAbsolutePath().normalize();
    }
}
