package peer;

import dev.langchain4j.agent.tool.Tool;
import dev.langchain4j.model.chat.StreamingChatModel;
import dev.langchain4j.model.chat.response.StreamingHandle;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.service.AiServices;
import dev.langchain4j.service.TokenStream;
import io.a2a.server.PublicAgentCard;
import io.a2a.server.agentexecution.AgentExecutor;
import io.a2a.server.agentexecution.RequestContext;
import io.a2a.server.events.EventQueue;
import io.a2a.server.tasks.TaskUpdater;
import io.a2a.spec.AgentCard;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.inject.Produces;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A LangChain4j AI service behind a2a-java. A cancel does all that LangChain4j has for it: StreamingHandle.cancel(), which
 * is there from the first piece on, and an interrupt to the threads of the executor in which its tools run.
 */
@ApplicationScoped
public class Peer {
    public static class Tools {
        @Tool("Sleeps this number of tenths of a second")
        public String sleep(int run, int ticks, boolean deaf) {
            return Work.sleep(run, ticks, deaf);
        }
    }

    interface Assistant {
        TokenStream chat(String text);
    }

    @Produces
    @PublicAgentCard
    AgentCard card() {
        return Cards.of("langchain4j", "", true);
    }

    @Produces
    AgentExecutor executor() {
        return new Executor(OpenAiStreamingChatModel.builder().baseUrl(System.getenv("MODEL_URL") + "/v1").apiKey("k")
                .modelName("m").build(), new ConcurrentHashMap<>());
    }

    /** What runs for a task. */
    static final class Running {
        final CountDownLatch over = new CountDownLatch(1);
        final ExecutorService tools = Executors.newCachedThreadPool();
        volatile StreamingHandle handle;
        volatile boolean stopped;

        void stop() {
            stopped = true;
            if (handle != null) {
                handle.cancel();
            }
            tools.shutdownNow();
            over.countDown();
        }
    }

    record Executor(StreamingChatModel model, Map<String, Running> tasks) implements AgentExecutor {
        @Override
        public void execute(RequestContext context, EventQueue queue) {
            Answer answer = new Answer(context, queue);
            Running running = new Running();
            tasks.put(context.getTaskId(), running);
            AiServices.builder(Assistant.class).streamingChatModel(model).tools(new Tools())
                    .executeToolsConcurrently(running.tools).build().chat(answer.text)
                    .onPartialResponseWithContext((piece, streaming) -> {
                        running.handle = streaming.streamingHandle();
                        if (running.stopped) {
                            running.handle.cancel();
                        } else {
                            answer.piece(piece.text());
                        }
                    })
                    .onCompleteResponse(response -> {
                        if (!running.stopped) {
                            answer.complete();
                        }
                        running.over.countDown();
                    })
                    .onError(error -> {
                        if (!running.stopped) {
                            answer.fail(error);
                        }
                        running.over.countDown();
                    })
                    .start();
            try {
                running.over.await();
            } catch (InterruptedException interrupt) {
                running.stop();
            }
            tasks.remove(context.getTaskId());
        }

        @Override
        public void cancel(RequestContext context, EventQueue queue) {
            Work.note("cancel");
            Running running = tasks.get(context.getTaskId());
            if (running != null) {
                running.stop();
            }
            new TaskUpdater(context, queue).cancel();
        }
    }
}
