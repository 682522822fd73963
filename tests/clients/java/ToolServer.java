import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main method of any class again and again in one JVM, because starting a JVM for each costs a second.
 *
 * A line of JSON in: {"main": class, "args": [...], "input": text}. A line of JSON out: {"code", "out", "err"}.
 * Kafka's tools end through Kafka's own Exit class, whose procedures can be replaced: an exit becomes an exception here,
 * and shutdown hooks run when the tool ends.
 */
public final class ToolServer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<Runnable> HOOKS = new ArrayList<>();
    // The same two streams for good: tools written in Scala keep those that they meet first.
    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();

    private static Integer exitCode;

    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Ended(int code) {
            super("exit " + code, null, false, false);
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        InputStream input = System.in;
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        Exit.Procedure end = (code, message) -> {
            // Some tools catch the exception of their own exit and exit once more: the first one counts.
            exitCode = exitCode == null ? code : exitCode;
            throw new Ended(code);
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        BufferedReader requests = new BufferedReader(new InputStreamReader(input, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode answer = run(JSON.readTree(line));
            answers.write((JSON.writeValueAsString(answer) + "\n").getBytes(StandardCharsets.UTF_8));
            answers.flush();
        }
    }

    private static ObjectNode run(JsonNode request) throws Exception {
        OUT.reset();
        ERR.reset();
        exitCode = null;
        System.setIn(new ByteArrayInputStream(request.get("input").asText().getBytes(StandardCharsets.UTF_8)));
        int code = call(request);
        HOOKS.forEach(Runnable::run);
        HOOKS.clear();
        ObjectNode answer = JSON.createObjectNode();
        answer.put("code", code);
        answer.put("out", OUT.toString(StandardCharsets.UTF_8));
        answer.put("err", ERR.toString(StandardCharsets.UTF_8));
        return answer;
    }

    private static int call(JsonNode request) throws Exception {
        String[] args = JSON.convertValue(request.get("args"), String[].class);
        try {
            Class.forName(request.get("main").asText()).getMethod("main", String[].class).invoke(null, (Object) args);
            return exitCode == null ? 0 : exitCode;
        } catch (InvocationTargetException failure) {
            if (exitCode != null) {
                return exitCode;
            }
            failure.getCause().printStackTrace(System.err);
            return 1;
        }
    }
}
