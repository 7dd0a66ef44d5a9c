package peer;

import com.google.adk.agents.LlmAgent;
import com.google.adk.agents.RunConfig;
import com.google.adk.events.Event;
import com.google.adk.models.ApigeeLlm;
import com.google.adk.runner.InMemoryRunner;
import com.google.adk.sessions.SessionKey;
import com.google.adk.tools.Annotations.Schema;
import com.google.adk.tools.FunctionTool;
import com.google.genai.types.Content;
import com.google.genai.types.Part;
import io.a2a.server.PublicAgentCard;
import io.a2a.server.agentexecution.AgentExecutor;
import io.a2a.server.agentexecution.RequestContext;
import io.a2a.server.events.EventQueue;
import io.a2a.server.tasks.TaskUpdater;
import io.a2a.spec.AgentCard;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.disposables.CompositeDisposable;
import io.reactivex.rxjava3.disposables.Disposable;
import io.reactivex.rxjava3.schedulers.Schedulers;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.inject.Produces;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;

/** An ADK agent behind a2a-java. As in google-adk-a2a a cancel first says its word, and then disposes of the flow. */
@ApplicationScoped
public class Peer {
    public static Single<Map<String, Object>> sleep(
            @Schema(name = "run") int run, @Schema(name = "ticks") int ticks, @Schema(name = "deaf") boolean deaf) {
        return Single.fromCallable(() -> Map.<String, Object>of("result", Work.sleep(run, ticks, deaf)))
                .subscribeOn(Schedulers.io());
    }

    @Produces
    @PublicAgentCard
    AgentCard card() {
        return Cards.of("adk-java", "", true);
    }

    @Produces
    AgentExecutor executor() {
        LlmAgent agent = LlmAgent.builder().name("peer").description("sleeps").instruction("Do what you are asked.")
                .model(ApigeeLlm.builder().modelName("apigee/openai/m").proxyUrl(System.getenv("MODEL_URL") + "/v1").build())
                .tools(FunctionTool.create(Peer.class, "sleep")).build();
        return new Executor(new InMemoryRunner(agent), new ConcurrentHashMap<>());
    }

    record Executor(InMemoryRunner runner, Map<String, Disposable> running) implements AgentExecutor {
        private static final RunConfig STREAMS =
                RunConfig.builder().autoCreateSession(true).streamingMode(RunConfig.StreamingMode.SSE).build();

        @Override
        public void execute(RequestContext context, EventQueue queue) {
            Answer answer = new Answer(context, queue);
            SessionKey session = new SessionKey(runner.appName(), "a2a", context.getContextId());
            CompositeDisposable flow = new CompositeDisposable();
            running.put(context.getTaskId(), flow);
            CountDownLatch over = new CountDownLatch(1);
            flow.add(runner.runAsync(session, Content.fromParts(Part.fromText(answer.text)), STREAMS)
                    .doFinally(over::countDown)
                    .subscribe(event -> tell(answer, event), answer::fail, answer::complete));
            // google-adk-a2a returns at once; a2a-java 0.3.3 then ends the stream, and may lose the end of the task.
            try {
                over.await();
            } catch (InterruptedException interrupt) {
                flow.dispose();
            }
        }

        /** What is not partial says once more what was said. */
        private static void tell(Answer answer, Event event) {
            String text = event.content().flatMap(Content::parts).orElse(List.of()).stream()
                    .flatMap(part -> part.text().stream()).collect(Collectors.joining());
            if (!text.isEmpty() && event.partial().orElse(false)) {
                answer.piece(text);
            }
        }

        @Override
        public void cancel(RequestContext context, EventQueue queue) {
            Work.note("cancel");
            new TaskUpdater(context, queue).cancel();
            Disposable flow = running.remove(context.getTaskId());
            if (flow != null) {
                flow.dispose();
            }
        }
    }
}
