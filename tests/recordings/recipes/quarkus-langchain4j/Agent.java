import dev.langchain4j.agent.tool.Tool;
import dev.langchain4j.service.SystemMessage;
import dev.langchain4j.service.UserMessage;
import io.quarkiverse.langchain4j.RegisterAiService;
import io.quarkiverse.langchain4j.ToolBox;
import io.quarkus.runtime.Quarkus;
import io.quarkus.runtime.QuarkusApplication;
import io.quarkus.runtime.annotations.QuarkusMain;
import io.smallrye.mutiny.Multi;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.context.control.ActivateRequestContext;
import jakarta.inject.Inject;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;

@QuarkusMain
public class Agent implements QuarkusApplication {
    @RegisterAiService
    @SystemMessage("You are the assistant.")
    public interface Assistant {
        @ToolBox(Tools.class)
        String ask(@UserMessage String question);
        @ToolBox(Tools.class)
        Multi<String> stream(@UserMessage String question);
        @ToolBox(Team.class)
        String askTeam(@UserMessage String question);
    }

    @RegisterAiService
    @SystemMessage("You are the researcher.")
    public interface Researcher {
        @ToolBox(Tools.class)
        String research(@UserMessage String question);
    }

    @ApplicationScoped
    public static class Tools {
        static final Map<String, Lab.Tool> BY_NAME = new java.util.HashMap<>();
        static { for (var tool : Lab.TOOLS) BY_NAME.put(tool.name(), tool); }

        @Tool("The weather in a city")
        public String get_weather(String city) { return BY_NAME.get("get_weather").run(Map.of("city", city)); }

        @Tool("How many people live in a city")
        public String get_population(String city) { return BY_NAME.get("get_population").run(Map.of("city", city)); }

        @Tool("Celsius to Fahrenheit")
        public String convert_temp(double celsius) { return BY_NAME.get("convert_temp").run(Map.of("celsius", celsius)); }

        @Tool("Refund an order")
        public String refund_order(String order_id) { return BY_NAME.get("refund_order").run(Map.of("order_id", order_id)); }
    }

    @ApplicationScoped
    public static class Team {
        @Inject
        Researcher helper;

        @Tool("Ask the researcher")
        public String researcher(String query) {
            Lab.logAgent("researcher", Map.of("query", query));
            return helper.research(query);
        }
    }

    @Inject
    Assistant assistant;

    @Override
    @ActivateRequestContext
    public int run(String... arguments) {
        try {
            var scenario = arguments[0];
            Lab.answer(switch (scenario) {
                case "streaming" -> String.join("", assistant.stream(Lab.QUESTION).collect().asList().await().indefinitely());
                case "delegation" -> assistant.askTeam(Lab.QUESTION);
                default -> assistant.ask(Lab.QUESTION);
            });
            return 0;
        } catch (Exception error) {
            error.printStackTrace();
            return 1;
        }
    }

    public static void main(String[] arguments) {
        Quarkus.run(Agent.class, arguments);
    }
}
