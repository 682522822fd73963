import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * KafkaProducer and KafkaConsumer, driven by JSON: the first argument is the command, standard input its request,
 * standard output the answer. What is right and what is wrong is decided by the tests, not here. Bytes are base64.
 */
public final class JavaClient {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    public static void main(String[] args) throws Exception {
        JsonNode request = JSON.readTree(System.in);
        JsonNode answer = switch (args[0]) {
            case "produce" -> produce(request);
            case "consume" -> consume(request);
            case "offsets-for-times" -> offsetsForTimes(request);
            default -> throw new IllegalArgumentException(args[0]);
        };
        System.out.print(JSON.writeValueAsString(answer));
    }

    /** Every record's place, or the name of the exception that it met. All are sent before the first is waited for. */
    private static JsonNode produce(JsonNode request) throws InterruptedException, IOException {
        ArrayNode answer = JSON.createArrayNode();
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(config(request), new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : request.get("records")) {
                sent.add(producer.send(record(record)));
            }
            for (Future<RecordMetadata> future : sent) {
                answer.add(place(future));
            }
        }
        return answer;
    }

    private static ProducerRecord<byte[], byte[]> record(JsonNode record) throws IOException {
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.get("headers")) {
            headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
        }
        Integer partition = record.get("partition").isNull() ? null : record.get("partition").asInt();
        Long timestamp = record.get("timestamp_ms").isNull() ? null : record.get("timestamp_ms").asLong();
        return new ProducerRecord<>(record.get("topic").asText(), partition, timestamp, bytes(record.get("key")),
            bytes(record.get("value")), headers);
    }

    private static ObjectNode place(Future<RecordMetadata> future) throws InterruptedException {
        ObjectNode place = JSON.createObjectNode();
        try {
            RecordMetadata metadata = future.get();
            place.put("partition", metadata.partition());
            place.put("offset", metadata.hasOffset() ? metadata.offset() : -1);
            place.put("timestamp_ms", metadata.hasTimestamp() ? metadata.timestamp() : -1);
        } catch (ExecutionException failure) {
            place.put("error", failure.getCause().getClass().getSimpleName());
        }
        return place;
    }

    /** The first `count` records of the partitions named, each read from its offset on. */
    private static JsonNode consume(JsonNode request) throws IOException {
        int count = request.get("count").asInt();
        ArrayNode answer = JSON.createArrayNode();
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(config(request), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            Map<TopicPartition, Long> starts = partitions(request);
            consumer.assign(starts.keySet());
            starts.forEach(consumer::seek);
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (answer.size() < count && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    answer.add(read(record));
                }
            }
        }
        return answer;
    }

    private static ObjectNode read(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode read = JSON.createObjectNode();
        read.put("topic", record.topic());
        read.put("partition", record.partition());
        read.put("offset", record.offset());
        read.put("timestamp_ms", record.timestamp());
        read.put("key", record.key());
        read.put("value", record.value());
        ArrayNode headers = read.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        return read;
    }

    private static JsonNode offsetsForTimes(JsonNode request) throws IOException {
        ObjectNode answer = JSON.createObjectNode();
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(config(request), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            for (Map.Entry<TopicPartition, OffsetAndTimestamp> found :
                    consumer.offsetsForTimes(partitions(request)).entrySet()) {
                String key = String.valueOf(found.getKey().partition());
                if (found.getValue() == null) {
                    answer.putNull(key);
                } else {
                    answer.putArray(key).add(found.getValue().offset()).add(found.getValue().timestamp());
                }
            }
        }
        return answer;
    }

    /** The request's "partitions": [topic, partition, number] each, the number an offset or a time. */
    private static Map<TopicPartition, Long> partitions(JsonNode request) {
        Map<TopicPartition, Long> partitions = new HashMap<>();
        for (JsonNode entry : request.get("partitions")) {
            partitions.put(new TopicPartition(entry.get(0).asText(), entry.get(1).asInt()), entry.get(2).asLong());
        }
        return partitions;
    }

    static Map<String, Object> config(JsonNode request) {
        Map<String, Object> config = new HashMap<>();
        request.get("config").properties().forEach(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        return config;
    }

    private static byte[] bytes(JsonNode node) throws IOException {
        return node.isNull() ? null : node.binaryValue();
    }
}
