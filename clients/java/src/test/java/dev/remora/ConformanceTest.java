package dev.remora;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServiceDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoMethodDescriptorSupplier;
import io.grpc.stub.AbstractStub;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** The conformance cases through this client. tests/conformance/cases.py says what a case means. */
class ConformanceTest {
    private static final String ANY = "<any>";
    private static final String NONE = "<none>";
    private static final Path CONTRACT = Path.of("src/main/contract/remora.binpb");
    private static final Metadata.Key<String> TENANT = Metadata.Key.of("remora-tenant", Metadata.ASCII_STRING_MARSHALLER);
    private static final Path CASES = RealServer.REPOSITORY.resolve("tests/conformance/every_rpc.json");

    @TestFactory
    Stream<DynamicTest> everyRpcRepliesAsTheContractSaysOverTcp() throws IOException {
        return cases(RealServer.start(RealServer.overTcp()));
    }

    @TestFactory
    Stream<DynamicTest> everyRpcRepliesAsTheContractSaysOverAUnixSocket() throws IOException {
        return cases(RealServer.start(RealServer.overUnix()));
    }

    @Test
    void everyRpcHasACase() throws IOException {
        Set<String> cased = StreamSupport.stream(document().getAsJsonArray("cases").spliterator(), false)
                .map(one -> one.getAsJsonObject().get("rpc").getAsString())
                .collect(Collectors.toCollection(TreeSet::new));
        assertTrue(methods().size() >= 40);
        assertEquals(new TreeSet<>(methods().keySet()), cased);
    }

    @Test
    void theClientHasEveryService() throws IOException {
        Set<String> declared = FileDescriptorSet.parseFrom(Files.readAllBytes(CONTRACT)).getFileList().stream()
                .flatMap(file -> file.getServiceList().stream().map(service -> file.getPackage() + "." + service.getName()))
                .collect(Collectors.toCollection(TreeSet::new));
        Set<String> served = services().stream().map(ServiceDescriptor::getName).collect(Collectors.toCollection(TreeSet::new));
        assertTrue(declared.size() >= 10);
        assertEquals(declared, served);
    }

    @Test
    void aDifferenceIsSeenWhereverItIs() {
        JsonElement found = JsonParser.parseString("{\"a\": [{\"b\": 1}], \"c\": \"x\"}");
        Map<String, String> told = Map.of(
                "{\"a\": [{\"b\": \"<any>\"}], \"d\": \"<none>\"}", "",
                "{\"a\": [{\"b\": 2}]}", "reply.a[0].b is 1 instead of 2",
                "{\"a\": []}", "reply.a is [{\"b\":1}] instead of []",
                "{\"d\": \"<any>\"}", "reply.d is missing",
                "{\"c\": \"<none>\"}", "reply.c is \"x\"");
        told.forEach((expected, said) -> assertEquals(said, difference(JsonParser.parseString(expected), found, "reply")));
    }

    private static Stream<DynamicTest> cases(RealServer server) throws IOException {
        JsonObject all = document();
        Remora client = RealServer.client(server.endpoint());
        return StreamSupport.stream(all.getAsJsonArray("cases").spliterator(), false)
                .map(JsonElement::getAsJsonObject)
                .map(one -> DynamicTest.dynamicTest(one.get("rpc").getAsString(), () -> run(newTenant(client), all.getAsJsonArray("given"), one)))
                .onClose(client::close)
                .onClose(server::close);
    }

    /** The client's channel, for a tenant that nobody has used. */
    private static Channel newTenant(Remora client) {
        Metadata identity = new Metadata();
        identity.put(TENANT, UUID.randomUUID().toString());
        return ClientInterceptors.intercept(client.channel(), MetadataUtils.newAttachHeadersInterceptor(identity));
    }

    private static void run(Channel tenant, JsonArray given, JsonObject expected) throws InvalidProtocolBufferException {
        for (JsonElement write : given) {
            ask(tenant, write.getAsJsonObject());
        }
        if (expected.has("refusal")) {
            JsonObject refusal = expected.getAsJsonObject("refusal");
            RemoraException failure = RemoraException.of(assertThrows(StatusRuntimeException.class, () -> ask(tenant, expected)));
            assertEquals(refusal.get("code").getAsString(), failure.code().name());
            assertEquals(refusal.get("reason").getAsString(), failure.reason());
            return;
        }
        check(tenant, expected);
        if (expected.has("then")) {
            check(tenant, expected.getAsJsonObject("then"));
        }
    }

    private static void check(Channel tenant, JsonObject call) throws InvalidProtocolBufferException {
        assertEquals("", difference(call.get("reply"), ask(tenant, call), "reply"));
    }

    /** Makes a call by its name alone, and gives the reply as JSON. */
    private static JsonElement ask(Channel tenant, JsonObject call) throws InvalidProtocolBufferException {
        MethodDescriptor<Message, Message> method = methods().get(call.get("rpc").getAsString());
        var marshaller = (MethodDescriptor.PrototypeMarshaller<Message>) method.getRequestMarshaller();
        Message.Builder request = marshaller.getMessagePrototype().newBuilderForType();
        JsonFormat.parser().merge(call.get("request").toString(), request);
        Message reply = ClientCalls.blockingUnaryCall(tenant, method, CallOptions.DEFAULT, request.build());
        return JsonParser.parseString(JsonFormat.printer().print(reply));
    }

    /** The RPCs of the services that a client has. */
    @SuppressWarnings("unchecked") // all of the contract's methods take and give messages
    private static Map<String, MethodDescriptor<Message, Message>> methods() {
        Map<String, MethodDescriptor<Message, Message>> methods = new HashMap<>();
        for (ServiceDescriptor service : services()) {
            for (MethodDescriptor<?, ?> method : service.getMethods()) {
                String name = ((ProtoMethodDescriptorSupplier) method.getSchemaDescriptor()).getMethodDescriptor().getFullName();
                methods.put(name, (MethodDescriptor<Message, Message>) method);
            }
        }
        return methods;
    }

    private static List<ServiceDescriptor> services() {
        return Arrays.stream(Remora.class.getMethods())
                .filter(method -> AbstractStub.class.isAssignableFrom(method.getReturnType()))
                .map(ConformanceTest::serviceOf)
                .toList();
    }

    private static ServiceDescriptor serviceOf(Method method) {
        try {
            return (ServiceDescriptor) method.getReturnType().getEnclosingClass().getMethod("getServiceDescriptor").invoke(null);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static JsonObject document() throws IOException {
        return JsonParser.parseString(Files.readString(CASES)).getAsJsonObject();
    }

    /** Where what was found is not as expected; empty where it is. */
    private static String difference(JsonElement expected, JsonElement found, String path) {
        if (expected.equals(new JsonPrimitive(ANY))) {
            return found != null ? "" : path + " is missing";
        }
        if (expected.equals(new JsonPrimitive(NONE))) {
            return found == null ? "" : path + " is " + found;
        }
        if (expected instanceof JsonObject wanted && found instanceof JsonObject fields) {
            return first(wanted.keySet().stream(), key -> difference(wanted.get(key), fields.get(key), path + "." + key));
        }
        if (expected instanceof JsonArray wanted && found instanceof JsonArray items && wanted.size() == items.size()) {
            return first(
                    IntStream.range(0, wanted.size()).boxed(),
                    place -> difference(wanted.get(place), items.get(place), path + "[" + place + "]"));
        }
        return expected.equals(found) ? "" : path + " is " + found + " instead of " + expected;
    }

    private static <T> String first(Stream<T> places, Function<T, String> told) {
        return places.map(told).filter(said -> !said.isEmpty()).findFirst().orElse("");
    }
}
