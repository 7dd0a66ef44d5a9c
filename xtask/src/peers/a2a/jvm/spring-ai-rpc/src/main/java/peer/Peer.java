package peer;

import io.a2a.server.agentexecution.AgentExecutor;
import io.a2a.server.agentexecution.RequestContext;
import io.a2a.server.events.EventQueue;
import io.a2a.server.tasks.TaskUpdater;
import io.a2a.spec.AgentCard;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import reactor.core.Disposable;

/** A Spring AI agent that streams its Flux, and disposes of it when it is asked to cancel; {@link Rpc} serves its tasks. */
@SpringBootApplication
public class Peer {
    public static void main(String[] args) {
        SpringApplication.run(Peer.class, args);
    }

    public static class Tools {
        @Tool(description = "Sleeps this number of tenths of a second")
        public String sleep(int run, int ticks, boolean deaf) {
            return Work.sleep(run, ticks, deaf);
        }
    }

    @Bean
    AgentCard agentCard() {
        return Cards.of("spring-ai", "/rpc", true);
    }

    @Bean
    AgentExecutor agentExecutor(ChatClient.Builder builder) {
        return new Executor(builder.defaultTools(new Tools()).build(), new ConcurrentHashMap<>());
    }

    record Executor(ChatClient client, Map<String, Disposable> running) implements AgentExecutor {
        @Override
        public void execute(RequestContext context, EventQueue queue) {
            Answer answer = new Answer(context, queue);
            CountDownLatch over = new CountDownLatch(1);
            Disposable pieces = client.prompt().user(answer.text).stream().content()
                    .doFinally(signal -> over.countDown())
                    .subscribe(answer::piece, answer::fail, answer::complete);
            running.put(context.getTaskId(), pieces);
            try {
                over.await();
            } catch (InterruptedException interrupt) {
                pieces.dispose();
            }
            running.remove(context.getTaskId());
        }

        @Override
        public void cancel(RequestContext context, EventQueue queue) {
            Work.note("cancel");
            Disposable pieces = running.remove(context.getTaskId());
            if (pieces != null) {
                pieces.dispose();
            }
            new TaskUpdater(context, queue).cancel();
        }
    }
}
