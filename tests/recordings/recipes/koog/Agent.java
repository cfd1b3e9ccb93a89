import ai.koog.agents.core.agent.AIAgent;
import ai.koog.agents.core.tools.ToolRegistry;
import ai.koog.agents.core.tools.annotations.Tool;
import ai.koog.agents.core.tools.reflect.ToolSet;
import ai.koog.agents.features.opentelemetry.feature.OpenTelemetry;
import ai.koog.http.client.ktor.KtorKoogHttpClient;
import ai.koog.prompt.executor.clients.ConnectionTimeoutConfig;
import ai.koog.prompt.executor.clients.openai.OpenAIClientSettings;
import ai.koog.prompt.executor.clients.openai.OpenAILLMClient;
import ai.koog.prompt.executor.clients.openai.OpenAIModels;
import ai.koog.prompt.executor.llms.MultiLLMPromptExecutor;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import java.util.Map;

public class Agent {
    public static class Tools implements ToolSet {
        static String run(int index, Map<String, Object> arguments) {
            return Lab.TOOLS.get(index).run(arguments);
        }

        @Tool(customName = "get_weather")
        public String getWeather(String city) {
            return run(0, Map.of("city", city));
        }

        @Tool(customName = "get_population")
        public String getPopulation(String city) {
            return run(1, Map.of("city", city));
        }

        @Tool(customName = "convert_temp")
        public String convertTemp(double celsius) {
            return run(2, Map.of("celsius", celsius));
        }

        @Tool(customName = "refund_order")
        public String refundOrder(String order_id) {
            return run(3, Map.of("order_id", order_id));
        }
    }

    public static class Researcher implements ToolSet {
        @Tool(customName = "researcher")
        public String researcher(String query) {
            Lab.logAgent("researcher", Map.of("query", query));
            return agent("researcher", new Tools()).run(query);
        }
    }

    static AIAgent<String, String> agent(String name, ToolSet tools) {
        var settings = new OpenAIClientSettings(Lab.URL.replace("/v1", ""), new ConnectionTimeoutConfig(), "v1/chat/completions", "v1/responses", "v1/embeddings", "v1/moderations", "v1/models");
        var client = new OpenAILLMClient("scripted", settings, new KtorKoogHttpClient.Factory());
        var exporter = OtlpHttpSpanExporter.builder().setEndpoint(System.getenv("OTEL_EXPORTER_OTLP_ENDPOINT") + "/v1/traces").build();
        return AIAgent.builder().promptExecutor(new MultiLLMPromptExecutor(client)).llmModel(OpenAIModels.Chat.GPT4o).systemPrompt("You are the " + name + ".")
            .toolRegistry(ToolRegistry.builder().tools(tools).build()).id(name)
            .install(OpenTelemetry.Feature, config -> {
                config.setVerbose(true);
                config.addSpanExporter(exporter);
            })
            .build();
    }

    public static void main(String[] arguments) throws Exception {
        var assistant = agent("assistant", arguments[0].equals("delegation") ? new Researcher() : new Tools());
        Lab.run(() -> Thread.sleep(6000), () -> { // spans are exported every five seconds, and closing an agent does not wait for them
            var text = "";
            for (var question : Lab.questions(arguments[0])) {
                text = assistant.run(question);
            }
            return text;
        });
    }
}
