import dev.braintrust.Braintrust;
import dev.braintrust.config.BraintrustConfig;
import dev.braintrust.instrumentation.langchain.BraintrustLangchain;
import dev.langchain4j.agent.tool.P;
import dev.langchain4j.agent.tool.Tool;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.service.AiServices;
import dev.langchain4j.service.SystemMessage;
import dev.langchain4j.service.UserMessage;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.logs.SdkLoggerProvider;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import java.util.Map;

/** LangChain4j's AI services under Braintrust's wrapper. */
public class Agent {
    public static class Tools {
        static String run(int index, Map<String, Object> arguments) {
            return Lab.TOOLS.get(index).run(arguments);
        }

        @Tool(name = "get_weather", value = "The weather in a city")
        public String getWeather(@P(name = "city", value = "city") String city) {
            return run(0, Map.of("city", city));
        }

        @Tool(name = "get_population", value = "How many people live in a city")
        public String getPopulation(@P(name = "city", value = "city") String city) {
            return run(1, Map.of("city", city));
        }

        @Tool(name = "convert_temp", value = "Celsius to Fahrenheit")
        public String convertTemp(@P(name = "celsius", value = "degrees") double celsius) {
            return run(2, Map.of("celsius", celsius));
        }

        @Tool(name = "refund_order", value = "Refund an order")
        public String refundOrder(@P(name = "order_id", value = "order") String order_id) {
            return run(3, Map.of("order_id", order_id));
        }
    }

    public static class Helpers {
        final OpenTelemetry telemetry;

        Helpers(OpenTelemetry telemetry) {
            this.telemetry = telemetry;
        }

        @Tool(name = "researcher", value = "Ask the researcher")
        public String researcher(@P(name = "query", value = "query") String query) {
            Lab.logAgent("researcher", Map.of("query", query));
            return service(telemetry, Researcher.class, new Tools()).research(query);
        }
    }

    public interface Assistant {
        @SystemMessage("You are the assistant.")
        String answer(@UserMessage String question);
    }

    public interface Researcher {
        @SystemMessage("You are the researcher.")
        String research(@UserMessage String question);
    }

    static <T> T service(OpenTelemetry telemetry, Class<T> kind, Object tools) {
        var model = OpenAiChatModel.builder().apiKey("scripted").baseUrl(Lab.URL).modelName("gpt-4o").maxRetries(0).build();
        return BraintrustLangchain.wrap(telemetry, AiServices.builder(kind).chatModel(model).tools(tools));
    }

    public static void main(String[] arguments) throws Exception {
        var exporter = OtlpHttpSpanExporter.builder().setEndpoint(System.getenv("OTEL_EXPORTER_OTLP_ENDPOINT") + "/v1/traces").build();
        var tracing = SdkTracerProvider.builder().addSpanProcessor(SimpleSpanProcessor.create(exporter));
        var config = BraintrustConfig.of("BRAINTRUST_API_KEY", "none", "BRAINTRUST_API_URL", Lab.URL, "BRAINTRUST_DEFAULT_PROJECT_ID", "weather");
        Braintrust.of(config).openTelemetryEnable(tracing, SdkLoggerProvider.builder(), SdkMeterProvider.builder());
        var sdk = OpenTelemetrySdk.builder().setTracerProvider(tracing.build()).buildAndRegisterGlobal();
        var tools = arguments[0].equals("delegation") ? new Helpers(sdk) : new Tools();
        Lab.run(sdk, () -> service(sdk, Assistant.class, tools).answer(Lab.QUESTION));
    }
}
