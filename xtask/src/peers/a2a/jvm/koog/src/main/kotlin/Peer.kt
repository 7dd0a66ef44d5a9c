package peer

import ai.koog.agents.core.agent.AIAgent
import ai.koog.agents.core.agent.functionalStrategy
import ai.koog.agents.core.agent.singleRunStrategy
import ai.koog.agents.core.tools.ToolRegistry
import ai.koog.agents.core.tools.annotations.LLMDescription
import ai.koog.agents.core.tools.annotations.Tool
import ai.koog.agents.core.tools.reflect.ToolSet
import ai.koog.prompt.executor.clients.openai.OpenAIClientSettings
import ai.koog.prompt.executor.clients.openai.OpenAILLMClient
import ai.koog.prompt.executor.clients.openai.OpenAIModels
import ai.koog.prompt.executor.llms.MultiLLMPromptExecutor
import ai.koog.prompt.streaming.StreamFrame
import io.a2a.server.PublicAgentCard
import io.a2a.server.agentexecution.AgentExecutor
import io.a2a.server.agentexecution.RequestContext
import io.a2a.server.events.EventQueue
import io.a2a.server.tasks.TaskUpdater
import io.a2a.spec.AgentCapabilities
import io.a2a.spec.AgentCard
import io.a2a.spec.TextPart
import jakarta.enterprise.inject.Produces
import jakarta.inject.Singleton
import java.io.File
import java.util.concurrent.ConcurrentHashMap
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking

/** What the work really does: a line of PEER_LOG for each fact. */
@Synchronized
fun note(fact: String) = File(System.getenv("PEER_LOG")).appendText("$fact\n")

class Tools : ToolSet {
    @Tool("sleep")
    @LLMDescription("Sleeps this number of tenths of a second; one that is deaf is in a thread that nothing ends")
    suspend fun sleep(run: Int, ticks: Int, deaf: Boolean): String {
        note("tool begins in run $run")
        try {
            repeat(ticks) {
                if (deaf) Thread.sleep(100) else delay(100)
                note("tick in run $run")
            }
        } catch (canceled: CancellationException) {
            note("interrupt in run $run")
            throw canceled
        }
        note("tool ends in run $run")
        return "slept"
    }
}

/** A Koog agent, whose job a cancel cancels and waits for. */
class Executor : AgentExecutor {
    private val scope = CoroutineScope(SupervisorJob() + Dispatchers.Default)
    private val running = ConcurrentHashMap<String, Job>()
    private val models = MultiLLMPromptExecutor(OpenAILLMClient("k", OpenAIClientSettings(System.getenv("MODEL_URL"))))

    private fun agent(text: String, tell: (String) -> Unit): AIAgent<String, String> {
        val tools = ToolRegistry { tools(Tools()) }
        // The strategy that calls tools does not stream.
        if ("tool" in text) {
            return AIAgent(models, OpenAIModels.Chat.GPT4_1Mini, strategy = singleRunStrategy(), toolRegistry = tools)
        }
        val streams = functionalStrategy<String, String>("streams") { input ->
            val whole = StringBuilder()
            requestLLMStreaming(input).collect { frame ->
                if (frame is StreamFrame.TextDelta) {
                    whole.append(frame.text)
                    tell(frame.text)
                }
            }
            whole.toString()
        }
        return AIAgent(models, OpenAIModels.Chat.GPT4_1Mini, toolRegistry = tools, strategy = streams)
    }

    override fun execute(context: RequestContext, queue: EventQueue) {
        val updater = TaskUpdater(context, queue)
        updater.submit()
        updater.startWork()
        val text = context.message.parts.filterIsInstance<TextPart>().joinToString("") { it.text }
        note("began ${context.contextId}: $text")
        var appends = false
        val tell = { piece: String ->
            updater.addArtifact(listOf(TextPart(piece)), "text", null, null, appends, null)
            appends = true
        }
        val job = scope.async {
            val answer = agent(text, tell).run(text)
            if (!appends) tell(answer)
            note("completed")
            updater.complete()
        }
        running[context.taskId] = job
        runBlocking {
            try {
                job.await()
            } catch (_: CancellationException) {
                note("canceled")
            } catch (failure: Exception) {
                note("failed: $failure")
                updater.fail()
            }
        }
    }

    override fun cancel(context: RequestContext, queue: EventQueue) {
        note("cancel")
        runBlocking { running.remove(context.taskId)?.cancelAndJoin() }
        TaskUpdater(context, queue).cancel()
    }
}

@Singleton
class Peer {
    @Produces
    @Singleton
    fun executor(): AgentExecutor = Executor()

    @Produces
    @PublicAgentCard
    fun card(): AgentCard = AgentCard.Builder().name("koog").description("koog").version("1").protocolVersion("0.3.0")
        .url(System.getenv("PEER_URL")).preferredTransport("JSONRPC")
        .capabilities(AgentCapabilities.Builder().streaming(true).build())
        .defaultInputModes(listOf("text")).defaultOutputModes(listOf("text")).skills(listOf()).build()
}
