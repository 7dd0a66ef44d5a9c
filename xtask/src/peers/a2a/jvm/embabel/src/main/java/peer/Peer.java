package peer;

import com.embabel.agent.api.annotation.AchievesGoal;
import com.embabel.agent.api.annotation.Action;
import com.embabel.agent.api.annotation.Agent;
import com.embabel.agent.api.common.OperationContext;
import com.embabel.agent.domain.io.UserInput;
import com.embabel.agent.domain.library.HasContent;
import com.embabel.common.ai.model.Llm;
import org.springframework.ai.openai.OpenAiChatModel;
import org.springframework.ai.openai.OpenAiChatOptions;
import org.springframework.ai.openai.api.OpenAiApi;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/** An Embabel agent behind its own A2A server, in which nothing of A2A leads to what could end it. */
@SpringBootApplication(scanBasePackages = {"peer", "com.embabel.agent.a2a"})
public class Peer {
    public static void main(String[] args) {
        SpringApplication.run(Peer.class, args);
    }

    @Bean
    public Llm model() {
        OpenAiApi api = OpenAiApi.builder().baseUrl(System.getenv("MODEL_URL")).apiKey("k").build();
        OpenAiChatOptions options = OpenAiChatOptions.builder().model("mock").build();
        OpenAiChatModel model = OpenAiChatModel.builder().openAiApi(api).defaultOptions(options).build();
        return new Llm("mock", "openai", model, any -> options);
    }

    public static class Tools {
        @Tool(description = "Sleeps this number of tenths of a second")
        public String sleep(int run, int ticks, boolean deaf) {
            return Work.sleep(run, ticks, deaf);
        }
    }

    public record Answer(String content) implements HasContent {
        @Override
        public String getContent() {
            return content;
        }
    }

    @Agent(description = "Answers whatever it is asked")
    public static class Answering {
        @AchievesGoal(description = "Whatever was asked is answered")
        @Action
        public Answer answer(UserInput asked, OperationContext context) {
            Work.began(context.getProcessContext().getAgentProcess().getId(), asked.getContent());
            String text = context.ai().withDefaultLlm().withToolObject(new Tools()).generateText(asked.getContent());
            Work.note("completed");
            return new Answer(text);
        }
    }
}
