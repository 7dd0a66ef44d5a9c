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
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.client.advisor.MessageChatMemoryAdvisor;
import org.springframework.ai.chat.memory.ChatMemory;
import org.springframework.ai.chat.memory.MessageWindowChatMemory;
import org.springframework.ai.openai.OpenAiChatModel;
import org.springframework.ai.openai.OpenAiChatOptions;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.annotation.ToolParam;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.SignalType;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Drives Spring AI as its documentation says, for {@code stop-test}: a {@code ChatClient} with tools and a chat memory, whose turns are
 * streamed by {@code stream().content()}, a {@code Flux}.
 *
 * <p>Its way to stop, "dispose", is that of every {@code Flux}: the {@code Disposable} of its subscription is disposed of. Then its caller
 * has control, and nothing says why: a subscriber that has cancelled gets no signal any more. Spring AI gives its tools nothing that would
 * tell them of a stop; {@code work} at least heeds an interrupt, which is how Reactor's schedulers end a task that is disposed of.
 */
public class Adapter {
    private static final JsonMapper JSON = new JsonMapper();
    private static final String TOOLS = System.getenv("STOP_TEST_TOOLS");

    public static class Tools {
        private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

        @Tool(description = "Works.")
        public String work(@ToolParam(required = false) String what) throws IOException, InterruptedException {
            HttpRequest request = HttpRequest.newBuilder(URI.create(TOOLS + "/work")).header("content-type", "application/json")
                    .POST(HttpRequest.BodyPublishers.ofString(arguments(what))).build();
            return client.send(request, HttpResponse.BodyHandlers.ofString()).body();
        }

        @Tool(description = "Works, and looks at no stop.")
        public String deaf(@ToolParam(required = false) String what) throws IOException {
            HttpURLConnection request = (HttpURLConnection) URI.create(TOOLS + "/deaf").toURL().openConnection();
            request.setRequestProperty("content-type", "application/json");
            request.setDoOutput(true);
            request.getOutputStream().write(arguments(what).getBytes());
            return new String(request.getInputStream().readAllBytes());
        }

        private static String arguments(String what) {
            return JSON.writeValueAsString(Map.of("what", what == null ? "" : what));
        }
    }

    static synchronized void write(Map<String, ?> line) {
        System.out.println(JSON.writeValueAsString(line));
    }

    static void told(SignalType signal) {
        String says = switch (signal) {
            case ON_COMPLETE -> "done";
            case CANCEL -> "nothing";
            default -> "failed";
        };
        write(Map.of("at", "told", "says", says));
    }

    public static void main(String[] arguments) throws IOException {
        OpenAiChatOptions options = OpenAiChatOptions.builder().baseUrl(System.getenv("OPENAI_BASE_URL"))
                .apiKey(System.getenv("OPENAI_API_KEY")).model("stop-test").build();
        ChatMemory memory = MessageWindowChatMemory.builder().build();
        ChatClient client = ChatClient.builder(OpenAiChatModel.builder().options(options).build()).defaultTools(new Tools())
                .defaultAdvisors(MessageChatMemoryAdvisor.builder(memory).build()).build();
        write(Map.of("at", "ready", "stops", List.of("dispose")));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        Disposable turn = Disposables.disposed();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode wish = JSON.readTree(line);
            if (wish.path("do").asString().equals("stop")) {
                turn.dispose();
                continue;
            }
            turn = client.prompt().user(wish.path("text").asString())
                    .advisors(advisor -> advisor.param(ChatMemory.CONVERSATION_ID, "1"))
                    .stream().content()
                    .doFinally(Adapter::told)
                    .subscribe(piece -> {}, error -> System.err.println(error));
        }
        System.exit(0);
    }
}
