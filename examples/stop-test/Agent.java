import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * An agent that can be stopped, with the protocol of {@code stop-test}: Java 17, nothing beyond its standard library.
 *
 * <p>A turn is a thread. A stop closes each answer for which the turn waits, and each call without a result gets one.
 */
public class Agent implements Runnable {
    private static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private static final ExecutorService POOL = Executors.newCachedThreadPool();
    private static final List<Object> HISTORY = new ArrayList<>();
    private static final Object TOOLS = Json.read("""
            [{"type": "function", "function": {"name": "work", "description": "Works.",
              "parameters": {"type": "object", "properties": {"what": {"type": "string"}}}}}]""");

    private final CountDownLatch stopped = new CountDownLatch(1);
    private final List<AutoCloseable> open = new ArrayList<>();

    /** Closes this when the turn is stopped, which may be so already. */
    private synchronized void closeOnStop(AutoCloseable one) {
        open.add(one);
        if (isStopped()) {
            close(one);
        }
    }

    private static void close(AutoCloseable one) {
        try {
            one.close();
        } catch (Exception error) {
            System.err.println("it is closed already: " + error);
        }
    }

    private boolean isStopped() {
        return stopped.getCount() == 0;
    }

    synchronized void stop() {
        stopped.countDown();
        open.forEach(Agent::close);
        open.clear();
    }

    private HttpResponse<InputStream> post(String url, String body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).POST(HttpRequest.BodyPublishers.ofString(body))
                .header("Content-Type", "application/json")
                .header("Authorization", "Bearer " + System.getenv("OPENAI_API_KEY")).build();
        CompletableFuture<HttpResponse<InputStream>> sent = CLIENT.sendAsync(request, HttpResponse.BodyHandlers.ofInputStream());
        closeOnStop(() -> sent.cancel(true));
        HttpResponse<InputStream> answer = sent.join();
        closeOnStop(answer.body());
        return answer;
    }

    /** Streams one answer of the model, and returns it as a message. */
    private Map<String, Object> ask() throws IOException, InterruptedException {
        String body = Json.write(Map.of("model", "m", "stream", true, "messages", HISTORY, "tools", TOOLS));
        HttpResponse<InputStream> answer = post(System.getenv("OPENAI_BASE_URL") + "/chat/completions", body);
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(answer.body()))) {
            if (answer.statusCode() == 429) {
                boolean isOver = stopped.await(answer.headers().firstValueAsLong("retry-after").orElse(1), TimeUnit.SECONDS);
                if (isOver) {
                    throw new IOException("stopped before it was asked again");
                }
                return ask();
            }
            StringBuilder text = new StringBuilder();
            Map<Object, Map<String, String>> calls = new TreeMap<>();
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String data = line.startsWith("data:") ? line.substring(5).strip() : "";
                if (data.equals("[DONE]")) {
                    return message(text.toString(), calls);
                }
                for (Object choice : data.isEmpty() ? List.of() : list(map(Json.read(data)), "choices")) {
                    Map<String, Object> delta = map(map(choice).get("delta"));
                    text.append(string(delta, "content"));
                    for (Object each : list(delta, "tool_calls")) {
                        Map<String, Object> piece = map(each);
                        Map<String, String> call = calls.computeIfAbsent(piece.get("index"), index -> new HashMap<>());
                        call.merge("id", string(piece, "id"), String::concat);
                        call.merge("name", string(map(piece.get("function")), "name"), String::concat);
                        call.merge("arguments", string(map(piece.get("function")), "arguments"), String::concat);
                    }
                }
            }
        }
        throw new IOException("the model's answer was cut, with status " + answer.statusCode());
    }

    private static Map<String, Object> message(String text, Map<Object, Map<String, String>> calls) {
        Map<String, Object> message = new HashMap<>(Map.of("role", "assistant", "content", text));
        if (!calls.isEmpty()) {
            message.put("tool_calls", calls.values().stream().map(call -> Map.of("id", call.get("id"), "type", "function",
                    "function", Map.of("name", call.get("name"), "arguments", call.get("arguments")))).toList());
        }
        return message;
    }

    /** Runs a call of the tool, and returns its result. A provider refuses a history in which a call has none. */
    private Object run(Map<String, Object> call) {
        String result;
        Map<String, Object> function = map(call.get("function"));
        try (InputStream body = post(System.getenv("STOP_TEST_TOOLS") + "/" + function.get("name"), string(function, "arguments")).body()) {
            result = new String(body.readAllBytes());
        } catch (Exception error) {
            result = isStopped() ? "stopped before it was done" : "it failed: " + error;
        }
        return Map.of("role", "tool", "tool_call_id", call.get("id"), "content", result);
    }

    /** Asks the model, and runs what it calls, until it calls nothing; says what the caller learns then. */
    @Override
    public void run() {
        String says = "done";
        try {
            for (boolean isOver = false; !isOver && !isStopped();) {
                Map<String, Object> message = ask();
                List<CompletableFuture<Object>> running = new ArrayList<>();
                list(message, "tool_calls").forEach(call -> running.add(CompletableFuture.supplyAsync(() -> run(map(call)), POOL)));
                HISTORY.add(message);
                running.forEach(result -> HISTORY.add(result.join()));
                isOver = running.isEmpty();
            }
        } catch (Exception error) {
            says = "failed";
            System.err.println(error);
        }
        tell(Map.of("at", "told", "says", isStopped() ? "stopped" : says));
    }

    private static void tell(Map<String, ?> line) {
        System.out.println(Json.write(line));
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    private static List<Object> list(Map<String, Object> map, String name) {
        return map.get(name) instanceof List<?> list ? (List<Object>) list : List.of();
    }

    private static String string(Map<String, Object> map, String name) {
        return map.get(name) instanceof String string ? string : "";
    }

    public static void main(String[] arguments) throws IOException {
        tell(Map.of("at", "ready", "stops", List.of("close")));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        Agent turn = new Agent();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, Object> wish = map(Json.read(line));
            if (wish.get("do").equals("stop")) {
                turn.stop();
            } else {
                HISTORY.add(Map.of("role", "user", "content", wish.get("text")));
                turn = new Agent();
                new Thread(turn).start();
            }
        }
        System.exit(0);
    }
}
