package peer;

import io.a2a.spec.AgentCapabilities;
import io.a2a.spec.AgentCard;
import io.a2a.spec.AgentSkill;
import java.util.List;

/** The card of an agent: it is at a path of PEER_URL, and speaks JSON-RPC of A2A 0.3. */
final class Cards {
    private Cards() {}

    static AgentCard of(String name, String path, boolean streams) {
        AgentSkill skill = new AgentSkill.Builder().id("a").name("a").description("a").tags(List.of("a")).build();
        return new AgentCard.Builder().name(name).description(name).version("1").protocolVersion("0.3.0")
                .url(System.getenv("PEER_URL") + path).preferredTransport("JSONRPC")
                .capabilities(new AgentCapabilities.Builder().streaming(streams).build())
                .defaultInputModes(List.of("text")).defaultOutputModes(List.of("text")).skills(List.of(skill)).build();
    }
}
