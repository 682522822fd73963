import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of groups that are Kafka's Java consumers, several in one JVM, each in a thread of its own.
 *
 * A line of JSON in: a wish (events.py), which starts a member, or {"close": member}. Lines of JSON out: what happens to
 * the members, in the words of events.py. When there are no more lines the JVM ends.
 */
public final class JavaMember implements ConsumerRebalanceListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = System.out;
    private static final Duration POLL = Duration.ofMillis(50);
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", RangeAssignor.class.getName(),
        "roundrobin", RoundRobinAssignor.class.getName(),
        "sticky", StickyAssignor.class.getName(),
        "cooperative-sticky", CooperativeStickyAssignor.class.getName());

    private final JsonNode wish;
    private final String name;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Map<TopicPartition, Long> uncommitted = new HashMap<>();
    private long recordsSinceCommit;
    private boolean commitsTaken = true;
    private volatile boolean closing;

    private JavaMember(JsonNode wish) {
        this.wish = wish;
        this.name = wish.get("member").asText();
        this.consumer = new KafkaConsumer<>(config(wish), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    public static void main(String[] args) throws Exception {
        Map<String, JavaMember> members = new ConcurrentHashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode wish = JSON.readTree(line);
            if (wish.has("close")) {
                members.remove(wish.get("close").asText()).close();
            } else {
                JavaMember member = new JavaMember(wish);
                members.put(member.name, member);
                Thread thread = new Thread(member::run, member.name);
                thread.setDaemon(true);
                thread.start();
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> config(JsonNode wish) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", wish.get("bootstrap").asText());
        config.put("group.id", wish.get("group").asText());
        config.put("client.id", wish.get("member").asText());
        config.put("group.protocol", wish.get("protocol").asText());
        config.put("enable.auto.commit", "false");
        config.put("auto.offset.reset", "earliest");
        config.put("metadata.max.age.ms", wish.get("metadata_age_ms").asText());
        config.put("allow.auto.create.topics", "false");
        config.put("fetch.max.wait.ms", "100");
        config.put("reconnect.backoff.max.ms", "200");
        if (!wish.get("instance").asText().isEmpty()) {
            config.put("group.instance.id", wish.get("instance").asText());
        }
        String assignor = wish.get("assignor").asText();
        if (wish.get("protocol").asText().equals("consumer")) {
            config.put("group.remote.assignor", assignor);
        } else {
            config.put("partition.assignment.strategy", ASSIGNORS.get(assignor));
            config.put("session.timeout.ms", wish.get("session_timeout_ms").asText());
            config.put("heartbeat.interval.ms", wish.get("heartbeat_ms").asText());
        }
        return config;
    }

    private void run() {
        try {
            subscribe();
            while (!closing) {
                take(consumer.poll(POLL));
                if (recordsSinceCommit >= wish.get("commit_every").asLong()) {
                    commit();
                }
            }
        } catch (RuntimeException failure) {
            say("error", List.of(), List.of(), failure.toString());
        }
        try {
            consumer.close();
            say("closed", List.of(), List.of(), "");
        } catch (RuntimeException failure) {
            say("error", List.of(), List.of(), failure.toString());
        }
    }

    private void close() {
        closing = true;
    }

    private void subscribe() {
        String pattern = wish.get("pattern").asText();
        if (pattern.isEmpty()) {
            List<String> topics = new ArrayList<>();
            wish.get("topics").forEach(topic -> topics.add(topic.asText()));
            consumer.subscribe(topics, this);
        } else if (wish.get("protocol").asText().equals("consumer")) {
            consumer.subscribe(new SubscriptionPattern(pattern), this);
        } else {
            consumer.subscribe(java.util.regex.Pattern.compile(pattern), this);
        }
    }

    private void take(ConsumerRecords<byte[], byte[]> records) {
        for (TopicPartition place : records.partitions()) {
            List<ConsumerRecord<byte[], byte[]>> some = records.records(place);
            long after = some.get(some.size() - 1).offset() + 1;
            say("read", List.of(place), List.of(some.get(0).offset(), after), "");
            uncommitted.put(place, after);
            recordsSinceCommit += some.size();
        }
    }

    private void commit() {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        Map<TopicPartition, Long> told = new HashMap<>(uncommitted);
        told.forEach((place, after) -> offsets.put(place, new OffsetAndMetadata(after)));
        uncommitted.clear();
        recordsSinceCommit = 0;
        commitsTaken = true;
        if (told.isEmpty()) {
            return;
        }
        List<TopicPartition> places = new ArrayList<>(told.keySet());
        List<Long> after = places.stream().map(told::get).toList();
        say("committing", places, after, "");
        try {
            consumer.commitSync(offsets);
            say("committed", places, after, "");
        } catch (RuntimeException failure) {
            commitsTaken = false;
            told.forEach(uncommitted::putIfAbsent);
            recordsSinceCommit = wish.get("commit_every").asLong(); // so that it is tried again
            say("failed", places, after, failure.toString());
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> places) {
        say("assigned", places, List.of(), "");
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> places) {
        commit();
        places.forEach(uncommitted::remove); // it is not for us to commit what others read from now on
        say(commitsTaken ? "revoked" : "lost", places, List.of(), "");
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> places) {
        places.forEach(uncommitted::remove);
        say("lost", places, List.of(), "");
    }

    private void say(String kind, Collection<TopicPartition> places, List<Long> offsets, String text) {
        ObjectNode event = JSON.createObjectNode();
        event.put("at", System.nanoTime() / 1e9);
        event.put("member", name);
        event.put("kind", kind);
        ArrayNode named = event.putArray("places");
        places.forEach(place -> named.addArray().add(place.topic()).add(place.partition()));
        ArrayNode numbers = event.putArray("offsets");
        offsets.forEach(numbers::add);
        event.put("text", text);
        synchronized (OUT) {
            OUT.println(event);
            OUT.flush();
        }
    }
}
