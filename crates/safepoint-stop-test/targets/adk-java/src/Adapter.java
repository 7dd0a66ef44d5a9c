import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.adk.agents.LlmAgent;
import com.google.adk.agents.RunConfig;
import com.google.adk.models.Gemini;
import com.google.adk.runner.InMemoryRunner;
import com.google.adk.tools.Annotations.Schema;
import com.google.adk.tools.FunctionTool;
import com.google.genai.Client;
import com.google.genai.types.Content;
import com.google.genai.types.HttpOptions;
import com.google.genai.types.Part;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.disposables.Disposable;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Drives Google's ADK for Java as its documentation says, for {@code stop-test}: an {@code LlmAgent} on Gemini with function tools, in an
 * {@code InMemoryRunner}, whose session keeps the conversation. A turn is the {@code Flowable} of {@code runAsync}, with the
 * streaming mode SSE.
 *
 * <p>Its way to stop, "dispose", is that of every {@code Flowable}: the {@code Disposable} of its subscription is disposed of. Then its
 * caller has control, and nothing says why: a subscriber that has cancelled gets no signal any more. {@code work} returns a {@code Single},
 * and gives up its request when that is disposed of. The turn is subscribed to on a thread of its own, for ADK reads its model's answer,
 * and runs a tool that blocks, on the thread that subscribes.
 */
public class Adapter {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOOLS = System.getenv("STOP_TEST_TOOLS");
    private static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    @Schema(description = "Works.")
    public static Single<Map<String, Object>> work(@Schema(name = "what", optional = true) String what) {
        return Single.create(emitter -> {
            HttpRequest request = HttpRequest.newBuilder(URI.create(TOOLS + "/work")).header("content-type", "application/json")
                    .POST(HttpRequest.BodyPublishers.ofString(arguments(what))).build();
            var answer = CLIENT.sendAsync(request, HttpResponse.BodyHandlers.ofString());
            emitter.setCancellable(() -> answer.cancel(true));
            answer.thenAccept(response -> emitter.onSuccess(Map.of("result", response.body())));
        });
    }

    @Schema(description = "Works, and looks at no stop.")
    public static Map<String, Object> deaf(@Schema(name = "what", optional = true) String what) throws IOException {
        HttpURLConnection request = (HttpURLConnection) URI.create(TOOLS + "/deaf").toURL().openConnection();
        request.setRequestProperty("content-type", "application/json");
        request.setDoOutput(true);
        request.getOutputStream().write(arguments(what).getBytes());
        return Map.of("result", new String(request.getInputStream().readAllBytes()));
    }

    private static String arguments(String what) {
        return JSON.createObjectNode().put("what", what == null ? "" : what).toString();
    }

    static synchronized void write(Map<String, ?> line) {
        System.out.println(JSON.valueToTree(line).toString());
    }

    public static void main(String[] arguments) throws IOException {
        HttpOptions options = HttpOptions.builder().baseUrl(System.getenv("GOOGLE_GEMINI_BASE_URL")).build();
        Gemini model = new Gemini("stop-test", Client.builder().apiKey(System.getenv("GEMINI_API_KEY")).httpOptions(options).build());
        LlmAgent agent = LlmAgent.builder().name("agent").model(model).instruction("Do what you are asked.")
                .tools(FunctionTool.create(Adapter.class, "work"), FunctionTool.create(Adapter.class, "deaf")).build();
        InMemoryRunner runner = new InMemoryRunner(agent);
        RunConfig config = RunConfig.builder().autoCreateSession(true).streamingMode(RunConfig.StreamingMode.SSE).build();
        write(Map.of("at", "ready", "stops", List.of("dispose")));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        Disposable turn = Disposable.disposed();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode wish = JSON.readTree(line);
            if (wish.path("do").asText().equals("stop")) {
                turn.dispose();
                continue;
            }
            AtomicReference<String> says = new AtomicReference<>("nothing");
            turn = runner.runAsync("user", "1", Content.fromParts(Part.fromText(wish.path("text").asText())), config)
                    .subscribeOn(Schedulers.newThread())
                    .doOnComplete(() -> says.set("done"))
                    .doOnError(error -> says.set("failed"))
                    .doFinally(() -> write(Map.of("at", "told", "says", says.get())))
                    .subscribe(event -> {}, error -> System.err.println(error));
        }
        System.exit(0);
    }
}
