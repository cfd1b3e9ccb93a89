import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/** What the agent programs of the Java recipes share: the tools, which log their own calls, the answer and the exporter. */
public class Lab {
    public static final String QUESTION = "What is the weather in Paris?";
    public static final String URL = System.getenv("OPENAI_BASE_URL");

    /** A tool with one argument. */
    public record Tool(String name, String description, String parameter, String type, Function<Object, String> body) {
        public Map<String, Object> schema() {
            return Map.of("type", "object", "properties", Map.of(parameter, Map.of("type", type)), "required", List.of(parameter));
        }

        public String run(Map<String, Object> arguments) {
            try {
                var result = body.apply(arguments.get(parameter));
                log(name, arguments, false, "");
                return result;
            } catch (RuntimeException error) {
                log(name, arguments, true, "");
                throw error;
            }
        }
    }

    public static final List<Tool> TOOLS = List.of(
        new Tool("get_weather", "The weather in a city", "city", "string", city -> "21 degrees in " + city),
        new Tool("get_population", "How many people live in a city", "city", "string", city -> "2100000 people in " + city),
        new Tool("convert_temp", "Celsius to Fahrenheit", "celsius", "number", celsius -> ((Number) celsius).doubleValue() * 9 / 5 + 32 + " F"),
        new Tool("refund_order", "Refund an order", "order_id", "string", id -> { throw new IllegalStateException("refund of " + id + " failed"); }));

    /** The questions of a scenario, one a turn. */
    public static List<String> questions(String scenario) {
        return scenario.equals("two_turns") ? List.of(QUESTION, "And in Oslo?") : List.of(QUESTION);
    }

    /** Writes down a call of an agent that is a tool of another one. */
    public static void logAgent(String name, Map<String, Object> arguments) {
        log(name, arguments, false, "agent_as_tool");
    }

    private static synchronized void log(String name, Map<String, Object> arguments, boolean failed, String kind) {
        var entry = Map.of("name", name, "arguments", arguments, "error", failed, "kind", kind);
        write(System.getenv("TOOLS_LOG"), json(entry) + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    /** Writes down what the agent answered. */
    public static void answer(String text) {
        write(System.getenv("ANSWER_FILE"), json(text), StandardOpenOption.CREATE);
    }

    private static void write(String path, String text, StandardOpenOption... options) {
        try {
            Files.writeString(Path.of(path), text, options);
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private static String json(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(e -> json(e.getKey()) + ": " + json(e.getValue())).collect(Collectors.joining(", ", "{", "}"));
        }
        if (value instanceof Number || value instanceof Boolean) {
            return value.toString();
        }
        return '"' + value.toString().replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
    }

    /** A global SDK that exports each span at once to the endpoint of the environment. */
    public static OpenTelemetrySdk export() {
        var exporter = OtlpHttpSpanExporter.builder().setEndpoint(System.getenv("OTEL_EXPORTER_OTLP_ENDPOINT") + "/v1/traces").build();
        return OpenTelemetrySdk.builder()
            .setTracerProvider(SdkTracerProvider.builder().addSpanProcessor(SimpleSpanProcessor.create(exporter)).build())
            .buildAndRegisterGlobal();
    }

    /** Something that may fail. */
    public interface Run {
        String call() throws Exception;
    }

    /** Runs the agent, exports what is left and ends the process. */
    public static void run(AutoCloseable exporter, Run agent) throws Exception {
        var code = 0;
        try {
            answer(agent.call());
        } catch (Exception error) {
            error.printStackTrace();
            code = 1;
        }
        exporter.close();
        System.exit(code);
    }
}
