import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON, of which Java's own library has none: in your agent, use the library that you have. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** A map, a list, a string, a double, a boolean, or null. */
    static Object read(String text) {
        return new Json(text).value();
    }

    static String write(Object value) {
        StringBuilder json = new StringBuilder();
        if (value instanceof Map<?, ?> map) {
            map.forEach((key, inner) -> json.append(json.isEmpty() ? "" : ",").append(write(key)).append(':').append(write(inner)));
            return "{" + json + "}";
        } else if (value instanceof List<?> list) {
            list.forEach(inner -> json.append(json.isEmpty() ? "" : ",").append(write(inner)));
            return "[" + json + "]";
        } else if (!(value instanceof String string)) {
            return String.valueOf(value);
        } else {
            for (char c : string.toCharArray()) {
                json.append(c == '"' || c == '\\' ? "\\" + c : c < ' ' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
            }
            return '"' + json.toString() + '"';
        }
    }

    private Object value() {
        char first = next();
        if (first == '"') {
            return string();
        } else if (first == '[') {
            List<Object> list = new ArrayList<>();
            while (more(']')) {
                list.add(value());
            }
            return list;
        } else if (first == '{') {
            Map<String, Object> map = new LinkedHashMap<>();
            while (more('}')) {
                String key = (String) value();
                next();
                map.put(key, value());
            }
            return map;
        }
        int begin = at - 1;
        while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(begin, at);
        return switch (word) {
            case "null" -> null;
            case "true", "false" -> word.equals("true");
            default -> Double.valueOf(word);
        };
    }

    private String string() {
        StringBuilder string = new StringBuilder();
        for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
            if (c == '\\') {
                c = text.charAt(at++);
                int place = "nrtbf".indexOf(c);
                c = place >= 0 ? "\n\r\t\b\f".charAt(place) : c;
                if (c == 'u') {
                    c = (char) Integer.parseInt(text.substring(at, at += 4), 16);
                }
            }
            string.append(c);
        }
        return string.toString();
    }

    /** The next letter that is no space. */
    private char next() {
        while (Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return text.charAt(at++);
    }

    /** Whether a list or a map has a next entry. */
    private boolean more(char end) {
        char c = next();
        if (c != end && c != ',') {
            at--;
        }
        return c != end;
    }
}
