package peer;

import com.fasterxml.jackson.databind.JsonNode;
import io.a2a.server.ServerCallContext;
import io.a2a.server.requesthandlers.RequestHandler;
import io.a2a.spec.JSONRPCError;
import io.a2a.spec.MessageSendParams;
import io.a2a.spec.StreamingEventKind;
import io.a2a.spec.TaskIdParams;
import io.a2a.spec.TaskQueryParams;
import io.a2a.util.Utils;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Flow;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;

/** JSON-RPC of A2A 0.3 over the request handler of a2a-java; spring-ai-a2a-server serves message/send alone. */
@RestController
class Rpc {
    private final RequestHandler handler;

    Rpc(RequestHandler handler) {
        this.handler = handler;
    }

    @PostMapping("/rpc")
    Object call(@RequestBody String body) throws IOException {
        JsonNode request = Utils.OBJECT_MAPPER.readTree(body);
        JsonNode id = request.path("id");
        JsonNode params = request.path("params");
        ServerCallContext context = new ServerCallContext(null, new HashMap<>(), Set.of());
        try {
            return switch (request.path("method").asText()) {
                case "message/send" -> json(id, handler.onMessageSend(read(params, MessageSendParams.class), context));
                case "tasks/get" -> json(id, handler.onGetTask(read(params, TaskQueryParams.class), context));
                case "tasks/cancel" -> json(id, handler.onCancelTask(read(params, TaskIdParams.class), context));
                case "message/stream" ->
                    stream(id, handler.onMessageSendStream(read(params, MessageSendParams.class), context));
                case "tasks/resubscribe" ->
                    stream(id, handler.onResubscribeToTask(read(params, TaskIdParams.class), context));
                default -> throw new JSONRPCError(-32601, "Method not found", null);
            };
        } catch (JSONRPCError error) {
            return answer(Map.of("jsonrpc", "2.0", "id", id, "error", error));
        }
    }

    private static <T> T read(JsonNode node, Class<T> kind) throws IOException {
        return Utils.OBJECT_MAPPER.treeToValue(node, kind);
    }

    private static ResponseEntity<String> json(JsonNode id, Object result) throws IOException {
        return answer(Map.of("jsonrpc", "2.0", "id", id, "result", result));
    }

    private static ResponseEntity<String> answer(Object whole) throws IOException {
        return ResponseEntity.ok().contentType(MediaType.APPLICATION_JSON)
                .body(Utils.OBJECT_MAPPER.writeValueAsString(whole));
    }

    private static SseEmitter stream(JsonNode id, Flow.Publisher<StreamingEventKind> events) {
        SseEmitter emitter = new SseEmitter(0L);
        // a2a-java publishes in the thread that subscribes, until the stream ends.
        new Thread(() -> events.subscribe(new Flow.Subscriber<>() {
            private Flow.Subscription subscription;

            @Override
            public void onSubscribe(Flow.Subscription subscription) {
                this.subscription = subscription;
                emitter.onError(gone -> subscription.cancel());
                subscription.request(Long.MAX_VALUE);
            }

            @Override
            public void onNext(StreamingEventKind event) {
                try {
                    emitter.send(Utils.OBJECT_MAPPER.writeValueAsString(
                            Map.of("jsonrpc", "2.0", "id", id, "result", event)));
                } catch (IOException | IllegalStateException gone) {
                    subscription.cancel();
                }
            }

            @Override
            public void onError(Throwable error) {
                emitter.completeWithError(error);
            }

            @Override
            public void onComplete() {
                emitter.complete();
            }
        })).start();
        return emitter;
    }
}
