package dev.remora;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import java.util.List;
import java.util.Map;

/** Finds what protobuf would not send as it is: it puts a question mark in the place of half a character. */
final class Texts {
    private Texts() {}

    /** Refuses a request with a text in which half of a surrogate pair stands alone. */
    static void requireWhole(Message request) {
        String field = broken(request, "");
        if (field != null) {
            throw RemoraException.invalidField(field, "has half of a surrogate pair: was it cut within a character?");
        }
    }

    /** The path to the first such text; null if there is none. */
    private static String broken(Message message, String prefix) {
        for (Map.Entry<FieldDescriptor, Object> entry : message.getAllFields().entrySet()) {
            FieldDescriptor field = entry.getKey();
            String path = prefix + field.getName();
            String found = field.isRepeated() ? brokenAmong((List<?>) entry.getValue(), field, path) : brokenIn(entry.getValue(), path);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    private static String brokenAmong(List<?> values, FieldDescriptor field, String path) {
        if (field.getJavaType() != FieldDescriptor.JavaType.MESSAGE && field.getJavaType() != FieldDescriptor.JavaType.STRING) {
            return null;
        }
        for (int index = 0; index < values.size(); index++) {
            String found = field.isMapField()
                    ? brokenInEntry((Message) values.get(index), path)
                    : brokenIn(values.get(index), path + "[" + index + "]");
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    private static String brokenInEntry(Message entry, String path) {
        Object key = entry.getField(entry.getDescriptorForType().findFieldByName("key"));
        Object value = entry.getField(entry.getDescriptorForType().findFieldByName("value"));
        String found = brokenIn(key, path);
        return found != null ? found : brokenIn(value, path + "[\"" + key + "\"]");
    }

    private static String brokenIn(Object value, String path) {
        if (value instanceof Message message) {
            return broken(message, path + ".");
        }
        return value instanceof String text && isBroken(text) ? path : null;
    }

    private static boolean isBroken(String text) {
        for (int index = 0; index < text.length(); index++) {
            char unit = text.charAt(index);
            if (!Character.isSurrogate(unit)) {
                continue;
            }
            boolean isPair = index + 1 < text.length() && Character.isSurrogatePair(unit, text.charAt(index + 1));
            if (!isPair) {
                return true;
            }
            index++;
        }
        return false;
    }
}
