package peer;

import com.azure.ai.openai.OpenAIAsyncClient;
import com.azure.ai.openai.OpenAIClientBuilder;
import com.azure.core.credential.KeyCredential;
import com.azure.core.http.HttpPipelineBuilder;
import com.microsoft.semantickernel.Kernel;
import com.microsoft.semantickernel.aiservices.openai.chatcompletion.OpenAIChatCompletion;
import com.microsoft.semantickernel.orchestration.InvocationContext;
import com.microsoft.semantickernel.orchestration.ToolCallBehavior;
import com.microsoft.semantickernel.plugin.KernelPluginFactory;
import com.microsoft.semantickernel.semanticfunctions.annotations.DefineKernelFunction;
import com.microsoft.semantickernel.semanticfunctions.annotations.KernelFunctionParameter;
import com.microsoft.semantickernel.services.chatcompletion.ChatCompletionService;
import com.microsoft.semantickernel.services.chatcompletion.ChatHistory;
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
import reactor.core.Disposable;
import reactor.core.publisher.Flux;

/**
 * Semantic Kernel behind a2a-java. It has no cancel itself: a cancel disposes of the subscription. Its streams cannot
 * call tools, so what asks for a tool is not streamed.
 */
@ApplicationScoped
public class Peer {
    public static class Tools {
        @DefineKernelFunction(name = "sleep", description = "Sleeps this number of tenths of a second", returnType = "string")
        public String sleep(
                @KernelFunctionParameter(name = "run", description = "its run", type = int.class) int run,
                @KernelFunctionParameter(name = "ticks", description = "how long", type = int.class) int ticks,
                @KernelFunctionParameter(name = "deaf", description = "to interrupts", type = boolean.class) boolean deaf) {
            return Work.sleep(run, ticks, deaf);
        }
    }

    @Produces
    @PublicAgentCard
    AgentCard card() {
        return Cards.of("semantic-kernel", "", true);
    }

    @Produces
    AgentExecutor executor() {
        // A separate pipeline: the usual one refuses to send a key over plain HTTP.
        OpenAIAsyncClient client = new OpenAIClientBuilder().endpoint(System.getenv("MODEL_URL") + "/v1")
                .credential(new KeyCredential("k")).pipeline(new HttpPipelineBuilder().build()).buildAsyncClient();
        ChatCompletionService chat = OpenAIChatCompletion.builder().withOpenAIAsyncClient(client).withModelId("m").build();
        Kernel kernel = Kernel.builder().withAIService(ChatCompletionService.class, chat)
                .withPlugin(KernelPluginFactory.createFromObject(new Tools(), "tools")).build();
        return new Executor(chat, kernel, new ConcurrentHashMap<>());
    }

    record Executor(ChatCompletionService chat, Kernel kernel, Map<String, Disposable> running) implements AgentExecutor {
        private Flux<String> pieces(String text) {
            ChatHistory history = new ChatHistory();
            history.addUserMessage(text);
            if (text.contains("tool")) {
                InvocationContext tools = InvocationContext.builder()
                        .withToolCallBehavior(ToolCallBehavior.allowAllKernelFunctions(true)).build();
                return chat.getChatMessageContentsAsync(history, kernel, tools)
                        .flatMapIterable(all -> all).map(one -> String.valueOf(one.getContent())).takeLast(1);
            }
            return chat.getStreamingChatMessageContentsAsync(history, null, null)
                    .mapNotNull(piece -> piece.getContent()).filter(piece -> !piece.isEmpty());
        }

        @Override
        public void execute(RequestContext context, EventQueue queue) {
            Answer answer = new Answer(context, queue);
            CountDownLatch over = new CountDownLatch(1);
            Disposable pieces = pieces(answer.text).doFinally(signal -> over.countDown())
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
