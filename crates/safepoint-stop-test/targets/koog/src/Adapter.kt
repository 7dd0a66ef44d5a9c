import ai.koog.agents.chatMemory.feature.ChatMemory
import ai.koog.agents.core.agent.AIAgent
import ai.koog.agents.core.dsl.builder.node
import ai.koog.agents.core.dsl.builder.strategy
import ai.koog.agents.core.dsl.extension.nodeExecuteTools
import ai.koog.agents.core.dsl.extension.nodeLLMRequestStreaming
import ai.koog.agents.core.dsl.extension.nodeLLMSendToolResultsStreaming
import ai.koog.agents.core.dsl.extension.onTextMessage
import ai.koog.agents.core.dsl.extension.onToolCalls
import ai.koog.agents.core.tools.ToolRegistry
import ai.koog.agents.core.tools.annotations.LLMDescription
import ai.koog.agents.core.tools.annotations.Tool
import ai.koog.agents.core.tools.reflect.ToolSet
import ai.koog.prompt.executor.clients.openai.OpenAIClientSettings
import ai.koog.prompt.executor.clients.openai.OpenAILLMClient
import ai.koog.prompt.executor.clients.openai.OpenAIModels
import ai.koog.prompt.executor.llms.MultiLLMPromptExecutor
import ai.koog.prompt.message.Message
import ai.koog.prompt.streaming.StreamFrame
import ai.koog.prompt.streaming.toMessageResponse
import io.ktor.client.HttpClient
import io.ktor.client.engine.cio.CIO
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import io.ktor.client.statement.bodyAsText
import io.ktor.http.ContentType
import io.ktor.http.contentType
import java.net.HttpURLConnection
import java.net.URI
import kotlin.system.exitProcess
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.toList
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.put
import kotlinx.serialization.json.putJsonArray

/*
 * Drives Koog as its documentation says, for `stop-test`: a graph of Koog's own nodes that streams each answer ("Streaming API"), with a
 * tool set and the feature `ChatMemory`, which keeps the conversation of a session.
 *
 * Its way to stop, "cancel", is that of every suspending function of Kotlin, as `AIAgent.run` is one: the `Job` in which it runs is
 * cancelled, and `run` ends with a `CancellationException`. `work` suspends, so it is cancelled with its caller; `deaf` blocks its thread.
 */

val TOOLS: String = System.getenv("STOP_TEST_TOOLS")

class Tools : ToolSet {
    private val client = HttpClient(CIO) { engine { requestTimeout = 0 } }

    @Tool
    @LLMDescription("Works.")
    suspend fun work(what: String = ""): String =
        client.post("$TOOLS/work") { contentType(ContentType.Application.Json); setBody(arguments(what)) }.bodyAsText()

    @Tool
    @LLMDescription("Works, and looks at no stop.")
    fun deaf(what: String = ""): String {
        val request = URI.create("$TOOLS/deaf").toURL().openConnection() as HttpURLConnection
        request.setRequestProperty("content-type", "application/json")
        request.doOutput = true
        request.outputStream.write(arguments(what).toByteArray())
        return request.inputStream.readAllBytes().decodeToString()
    }

    private fun arguments(what: String) = buildJsonObject { put("what", what) }.toString()
}

val streaming = strategy<String, String>("streaming") {
    val ask by nodeLLMRequestStreaming()
    val collect by node<Flow<StreamFrame>, Message.Assistant> { frames ->
        frames.toList().toMessageResponse().also { answer -> llm.writeSession { appendPrompt { message(answer) } } }
    }
    val callTools by nodeExecuteTools()
    val sendResults by nodeLLMSendToolResultsStreaming()
    edge(nodeStart forwardTo ask)
    edge(ask forwardTo collect)
    edge(collect forwardTo callTools onToolCalls { true })
    edge(collect forwardTo nodeFinish onTextMessage { true })
    edge(callTools forwardTo sendResults)
    edge(sendResults forwardTo collect)
}

/** A turn is over: its job has completed, and so have all coroutines of it. */
fun told(cause: Throwable?) {
    val says = when (cause) {
        null -> "done"
        is CancellationException -> "stopped"
        else -> "failed".also { System.err.println(cause) }
    }
    println(buildJsonObject { put("at", "told"); put("says", says) })
}

fun main() {
    val settings = OpenAIClientSettings(baseUrl = System.getenv("OPENAI_BASE_URL").removeSuffix("/v1"))
    val agent = AIAgent(
        promptExecutor = MultiLLMPromptExecutor(OpenAILLMClient(System.getenv("OPENAI_API_KEY"), settings)),
        llmModel = OpenAIModels.Chat.GPT4_1Mini.copy(id = "stop-test"),
        strategy = streaming,
        toolRegistry = ToolRegistry { tools(Tools()) },
    ) {
        install(ChatMemory)
    }
    println(buildJsonObject { put("at", "ready"); putJsonArray("stops") { add(JsonPrimitive("cancel")) } })
    val scope = CoroutineScope(SupervisorJob() + Dispatchers.Default)
    var job: Job? = null
    for (line in generateSequence(::readLine)) {
        val wish = Json.parseToJsonElement(line).jsonObject
        if (wish["do"]?.jsonPrimitive?.content == "stop") {
            job?.cancel()
        } else {
            val text = wish["text"]!!.jsonPrimitive.content
            job = scope.async { agent.run(text, "1") }.apply { invokeOnCompletion(::told) }
        }
    }
    exitProcess(0)
}
