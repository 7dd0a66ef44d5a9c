package peer;

import io.a2a.server.agentexecution.AgentExecutor;
import io.a2a.spec.AgentCard;
import org.springaicommunity.a2a.server.executor.DefaultAgentExecutor;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/** A Spring AI agent behind spring-ai-a2a-server, as its documentation has it: its own executor, its own controllers. */
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
        return Cards.of("spring-ai", "/", false);
    }

    @Bean
    AgentExecutor agentExecutor(ChatClient.Builder builder) {
        ChatClient client = builder.defaultTools(new Tools()).build();
        return new DefaultAgentExecutor(client, (chat, context) -> {
            String text = DefaultAgentExecutor.extractTextFromMessage(context.getMessage());
            Work.began(context.getContextId(), text);
            String answer = chat.prompt().user(text).call().content();
            Work.note("completed");
            return answer;
        });
    }
}
