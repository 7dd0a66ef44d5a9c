import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.langchain4j.agent.tool.P;
import dev.langchain4j.agent.tool.Tool;
import dev.langchain4j.memory.chat.MessageWindowChatMemory;
import dev.langchain4j.model.chat.response.StreamingHandle;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.service.AiServices;
import dev.langchain4j.service.TokenStream;
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
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Drives LangChain4j as its documentation says, for {@code stop-test}: an AI Service with tools and a chat memory, whose turns are
 * streamed by {@code TokenStream}.
 *
 * <p>Its way to stop, "cancel", is {@code StreamingHandle.cancel()} ("Response Streaming", "Streaming Cancellation"). A handle comes with
 * each piece of an answer and not before: a stop that has no handle yet is remembered, and the first piece is cancelled. Once that was
 * called, "StreamingChatResponseHandler will not receive any further callbacks", so the caller has control back when it returns, and
 * nothing says why. LangChain4j gives its tools nothing that would tell them of a stop; {@code work} at least heeds an interrupt.
 */
public class Adapter {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOOLS = System.getenv("STOP_TEST_TOOLS");

    public static class Tools {
        private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

        @Tool("Works.")
        public String work(@P(value = "what", required = false) String what) throws IOException, InterruptedException {
            HttpRequest request = HttpRequest.newBuilder(URI.create(TOOLS + "/work")).header("content-type", "application/json")
                    .POST(HttpRequest.BodyPublishers.ofString(arguments(what))).build();
            return client.send(request, HttpResponse.BodyHandlers.ofString()).body();
        }

        @Tool("Works, and looks at no stop.")
        public String deaf(@P(value = "what", required = false) String what) throws IOException {
            HttpURLConnection request = (HttpURLConnection) URI.create(TOOLS + "/deaf").toURL().openConnection();
            request.setRequestProperty("content-type", "application/json");
            request.setDoOutput(true);
            request.getOutputStream().write(arguments(what).getBytes());
            return new String(request.getInputStream().readAllBytes());
        }

        private static String arguments(String what) throws IOException {
            return JSON.writeValueAsString(Map.of("what", what == null ? "" : what));
        }
    }

    interface Assistant {
        TokenStream chat(String text);
    }

    /** What the caller knows of a turn. */
    static class Turn {
        private final AtomicBoolean isOver = new AtomicBoolean();
        private volatile boolean isStopped;
        private volatile StreamingHandle handle;

        void piece(StreamingHandle handle) {
            this.handle = handle;
            if (isStopped) {
                cancel();
            }
        }

        void stop() {
            isStopped = true;
            if (handle != null) {
                cancel();
            }
        }

        private void cancel() {
            handle.cancel();
            over("nothing");
        }

        /** The answer of which it was the handle is whole: it cancels nothing any more. */
        void answered() {
            handle = null;
        }

        void over(String says) {
            if (isOver.compareAndSet(false, true)) {
                write(Map.of("at", "told", "says", says));
            }
        }
    }

    static synchronized void write(Map<String, ?> line) {
        try {
            System.out.println(JSON.writeValueAsString(line));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] arguments) throws IOException {
        OpenAiStreamingChatModel model = OpenAiStreamingChatModel.builder().baseUrl(System.getenv("OPENAI_BASE_URL"))
                .apiKey(System.getenv("OPENAI_API_KEY")).modelName("stop-test").build();
        Assistant assistant = AiServices.builder(Assistant.class).streamingChatModel(model).tools(new Tools())
                .chatMemory(MessageWindowChatMemory.withMaxMessages(100)).build();
        write(Map.of("at", "ready", "stops", List.of("cancel")));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        Turn turn = new Turn();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode wish = JSON.readTree(line);
            if (wish.path("do").asText().equals("stop")) {
                turn.stop();
                continue;
            }
            Turn next = new Turn();
            turn = next;
            assistant.chat(wish.path("text").asText())
                    .onPartialResponseWithContext((piece, context) -> next.piece(context.streamingHandle()))
                    .onPartialToolCallWithContext((piece, context) -> next.piece(context.streamingHandle()))
                    .onIntermediateResponse(response -> next.answered())
                    .onCompleteResponse(response -> next.over("done"))
                    .onError(error -> {
                        System.err.println(error);
                        next.over("failed");
                    })
                    .start();
        }
        System.exit(0);
    }
}
