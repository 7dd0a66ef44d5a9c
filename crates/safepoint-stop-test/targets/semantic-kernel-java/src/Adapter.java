import com.azure.ai.openai.OpenAIAsyncClient;
import com.azure.ai.openai.OpenAIClientBuilder;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.microsoft.semantickernel.Kernel;
import com.microsoft.semantickernel.aiservices.openai.chatcompletion.OpenAIChatCompletion;
import com.microsoft.semantickernel.orchestration.InvocationContext;
import com.microsoft.semantickernel.orchestration.InvocationReturnMode;
import com.microsoft.semantickernel.orchestration.ToolCallBehavior;
import com.microsoft.semantickernel.plugin.KernelPluginFactory;
import com.microsoft.semantickernel.semanticfunctions.annotations.DefineKernelFunction;
import com.microsoft.semantickernel.semanticfunctions.annotations.KernelFunctionParameter;
import com.microsoft.semantickernel.services.chatcompletion.ChatCompletionService;
import com.microsoft.semantickernel.services.chatcompletion.ChatHistory;
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
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Mono;
import reactor.core.publisher.SignalType;

/**
 * Drives Semantic Kernel for Java as its quick start says, for {@code stop-test}: a chat completion service with automatic function calls,
 * whose turn is a {@code Mono}, for its streams cannot call functions; these are the target {@code semantic-kernel-java-streams}. The
 * caller keeps the {@code ChatHistory} and adds each answer to it. No key is set, because the client refuses to send one over plain http.
 *
 * <p>Its way to stop, "dispose", is that of every {@code Mono}: the {@code Disposable} of its subscription is disposed of. Then its caller
 * has control, and nothing says why: a subscriber that has cancelled gets no signal any more. {@code work} is a function that returns a
 * {@code Mono}, and gives up its request when that is cancelled.
 */
public class Adapter {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOOLS = System.getenv("STOP_TEST_TOOLS");

    public static class Tools {
        private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

        @DefineKernelFunction(name = "work", description = "Works.", returnType = "java.lang.String")
        public Mono<String> work(
                @KernelFunctionParameter(name = "what", description = "what", required = false, defaultValue = "") String what) {
            return Mono.create(sink -> {
                HttpRequest request = HttpRequest.newBuilder(URI.create(TOOLS + "/work")).header("content-type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofString(arguments(what))).build();
                var answer = client.sendAsync(request, HttpResponse.BodyHandlers.ofString());
                sink.onDispose(() -> answer.cancel(true));
                answer.thenAccept(response -> sink.success(response.body()));
            });
        }

        @DefineKernelFunction(name = "deaf", description = "Works, and looks at no stop.", returnType = "java.lang.String")
        public String deaf(
                @KernelFunctionParameter(name = "what", description = "what", required = false, defaultValue = "") String what)
                throws IOException {
            HttpURLConnection request = (HttpURLConnection) URI.create(TOOLS + "/deaf").toURL().openConnection();
            request.setRequestProperty("content-type", "application/json");
            request.setDoOutput(true);
            request.getOutputStream().write(arguments(what).getBytes());
            return new String(request.getInputStream().readAllBytes());
        }

        private static String arguments(String what) {
            return JSON.createObjectNode().put("what", what == null ? "" : what).toString();
        }
    }

    static synchronized void write(Map<String, ?> line) {
        System.out.println(JSON.valueToTree(line).toString());
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
        OpenAIAsyncClient client = new OpenAIClientBuilder().endpoint(System.getenv("OPENAI_BASE_URL")).buildAsyncClient();
        ChatCompletionService chat = OpenAIChatCompletion.builder().withModelId("stop-test").withOpenAIAsyncClient(client).build();
        Kernel kernel = Kernel.builder().withAIService(ChatCompletionService.class, chat)
                .withPlugin(KernelPluginFactory.createFromObject(new Tools(), "tools")).build();
        InvocationContext context = InvocationContext.builder().withReturnMode(InvocationReturnMode.LAST_MESSAGE_ONLY)
                .withToolCallBehavior(ToolCallBehavior.allowAllKernelFunctions(true)).build();
        ChatHistory history = new ChatHistory();
        write(Map.of("at", "ready", "stops", List.of("dispose")));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        Disposable turn = Disposables.disposed();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode wish = JSON.readTree(line);
            if (wish.path("do").asText().equals("stop")) {
                turn.dispose();
                continue;
            }
            history.addUserMessage(wish.path("text").asText());
            turn = chat.getChatMessageContentsAsync(history, kernel, context)
                    .doFinally(Adapter::told)
                    .subscribe(history::addAll, error -> System.err.println(error));
        }
        System.exit(0);
    }
}
