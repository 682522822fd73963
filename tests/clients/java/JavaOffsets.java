import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Committed offsets of a group through KafkaConsumer, which only assigns and never joins. Driven as JavaClient is.
 *
 * An offset is [topic, partition, offset, metadata, leader epoch or null].
 */
public final class JavaOffsets {
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    public static void main(String[] args) throws Exception {
        JsonNode request = JavaClient.JSON.readTree(System.in);
        JsonNode answer;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                JavaClient.config(request), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            Map<TopicPartition, OffsetAndMetadata> offsets = offsets(request);
            consumer.assign(offsets.keySet());
            answer = switch (args[0]) {
                case "commit" -> commit(consumer, offsets);
                case "commit-async" -> commitAsync(consumer, offsets);
                case "committed" -> committed(consumer, offsets.keySet());
                default -> throw new IllegalArgumentException(args[0]);
            };
        }
        System.out.print(JavaClient.JSON.writeValueAsString(answer));
    }

    private static JsonNode commit(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, OffsetAndMetadata> offsets) {
        try {
            consumer.commitSync(offsets, PATIENCE);
            return outcome(null);
        } catch (RuntimeException failure) {
            return outcome(failure);
        }
    }

    private static JsonNode commitAsync(
            KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, OffsetAndMetadata> offsets) {
        AtomicReference<JsonNode> told = new AtomicReference<>();
        consumer.commitAsync(offsets, (ignored, failure) -> told.set(outcome(failure)));
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (told.get() == null && System.nanoTime() < deadline) {
            consumer.poll(Duration.ofMillis(20));
        }
        return told.get();
    }

    private static JsonNode committed(KafkaConsumer<byte[], byte[]> consumer, Set<TopicPartition> places) {
        ArrayNode answer = JavaClient.JSON.createArrayNode();
        consumer.committed(places, PATIENCE).forEach((place, kept) -> {
            if (kept != null) {
                ArrayNode entry = answer.addArray().add(place.topic()).add(place.partition()).add(kept.offset());
                entry.add(kept.metadata()).add(kept.leaderEpoch().orElse(null));
            }
        });
        return answer;
    }

    private static ObjectNode outcome(Exception failure) {
        ObjectNode outcome = JavaClient.JSON.createObjectNode();
        if (failure != null) {
            outcome.put("error", failure.getClass().getSimpleName());
        }
        return outcome;
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode request) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode entry : request.get("offsets")) {
            Optional<Integer> epoch = entry.get(4).isNull() ? Optional.empty() : Optional.of(entry.get(4).asInt());
            offsets.put(
                new TopicPartition(entry.get(0).asText(), entry.get(1).asInt()),
                new OffsetAndMetadata(entry.get(2).asLong(), epoch, entry.get(3).asText()));
        }
        return offsets;
    }
}
