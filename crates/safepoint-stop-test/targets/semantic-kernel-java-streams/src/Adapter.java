import com.azure.ai.openai.OpenAIAsyncClient;
import com.azure.ai.openai.OpenAIClientBuilder;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.microsoft.semantickernel.aiservices.openai.chatcompletion.OpenAIChatCompletion;
import com.microsoft.semantickernel.services.chatcompletion.ChatCompletionService;
import com.microsoft.semantickernel.services.chatcompletion.ChatHistory;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.SignalType;

/**
 * Drives the streams of Semantic Kernel for Java, for {@code stop-test}. They cannot call functions ("Auto invoke is not supported for
 * streaming chat message contents"), so this one has no tools; what calls functions is the target {@code semantic-kernel-java}. The caller
 * keeps the {@code ChatHistory} and adds each answer to it. No key is set, because the client refuses to send one over plain http.
 *
 * <p>Its way to stop, "dispose", is that of every {@code Flux}: the {@code Disposable} of its subscription is disposed of. Then its caller
 * has control, and nothing says why: a subscriber that has cancelled gets no signal any more.
 */
public class Adapter {
    private static final ObjectMapper JSON = new ObjectMapper();

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
            StringBuilder answer = new StringBuilder();
            turn = chat.getStreamingChatMessageContentsAsync(history, null, null)
                    .doOnComplete(() -> history.addAssistantMessage(answer.toString()))
                    .doFinally(Adapter::told)
                    .subscribe(piece -> answer.append(Objects.toString(piece.getContent(), "")), error -> System.err.println(error));
        }
        System.exit(0);
    }
}
