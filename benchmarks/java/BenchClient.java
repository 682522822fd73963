import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The two measurements that no stock tool makes well enough, with Kafka's own Java client. Each prints one JSON line.
 *
 * consume BOOTSTRAP TOPIC WARM_UPS PASSES CONSUMERS: reads every partition of the topic, by assignment, from its
 * beginning to its end, the partitions shared among CONSUMERS consumers; WARM_UPS times for Java to compile it, then
 * PASSES times. The seconds are those of all PASSES, the bytes those of one pass. (ConsumerPerformance and
 * ConsoleConsumer go through a topic only once, while Java is still compiling.)
 *
 * latency BOOTSTRAP TOPIC WARMUP COUNT SIZE ACKS FETCH_WAIT_MS: sends a record, waits for the acknowledgement, polls
 * until the record arrives, and so on. (EndToEndLatency does the same but rounds its percentiles to milliseconds.)
 */
public final class BenchClient {
    private static final Duration POLL = Duration.ofSeconds(10);
    private static final long PATIENCE_S = 300;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "consume" -> consume(args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]),
                Integer.parseInt(args[5]));
            case "latency" -> latency(args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]),
                Integer.parseInt(args[5]), args[6], args[7]);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void consume(String bootstrap, String topic, int warmUps, int counted, int consumers)
            throws Exception {
        int passes = warmUps + counted;
        ExecutorService threads = Executors.newFixedThreadPool(consumers);
        CyclicBarrier together = new CyclicBarrier(consumers + 1);
        List<Future<Long>> sizes = new ArrayList<>();
        for (int number = 0; number < consumers; number++) {
            int share = number;
            sizes.add(threads.submit(() -> consumeShare(bootstrap, topic, passes, share, consumers, together)));
        }
        double seconds = 0;
        for (int pass = 0; pass < passes; pass++) {
            together.await(PATIENCE_S, TimeUnit.SECONDS);
            long begin = System.nanoTime();
            together.await(PATIENCE_S, TimeUnit.SECONDS);
            seconds += pass < warmUps ? 0 : (System.nanoTime() - begin) / 1e9;
        }
        long bytes = 0;
        for (Future<Long> size : sizes) {
            bytes += size.get();
        }
        threads.shutdown();
        System.out.printf(Locale.ROOT, "{\"bytes\": %d, \"seconds\": %.6f}%n", bytes, seconds);
    }

    /** Reads every consumers-th partition, in step with the other consumers; returns the bytes of one pass. */
    private static long consumeShare(
            String bootstrap, String topic, int passes, int share, int consumers, CyclicBarrier together) throws Exception {
        // No fetch waits at the broker: one sent at the end of a pass would hold up the next pass by half a second.
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, "0")) {
            List<TopicPartition> partitions = partitions(consumer, topic).stream()
                .filter(partition -> partition.partition() % consumers == share)
                .toList();
            consumer.assign(partitions);
            long expected = total(consumer.endOffsets(partitions)) - total(consumer.beginningOffsets(partitions));
            long bytes = 0;
            for (int pass = 0; pass < passes; pass++) {
                consumer.seekToBeginning(partitions);
                together.await(PATIENCE_S, TimeUnit.SECONDS);
                bytes = readAll(consumer, expected);
                together.await(PATIENCE_S, TimeUnit.SECONDS);
            }
            return bytes;
        }
    }

    private static long readAll(KafkaConsumer<byte[], byte[]> consumer, long expected) {
        long bytes = 0;
        for (long records = 0; records < expected; ) {
            ConsumerRecords<byte[], byte[]> batch = consumer.poll(POLL);
            if (batch.isEmpty()) {
                throw new IllegalStateException("nothing arrived for " + POLL + " after " + records + " records");
            }
            records += batch.count();
            for (ConsumerRecord<byte[], byte[]> record : batch) {
                bytes += record.serializedValueSize();
            }
        }
        return bytes;
    }

    private static void latency(
            String bootstrap, String topic, int warmUp, int count, int size, String acks, String fetchWaitMs)
            throws ExecutionException, InterruptedException {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, fetchWaitMs);
             KafkaProducer<byte[], byte[]> producer = producer(bootstrap, acks)) {
            List<TopicPartition> partitions = partitions(consumer, topic);
            consumer.assign(partitions);
            consumer.seekToEnd(partitions);
            partitions.forEach(consumer::position);
            long[] nanos = new long[count];
            for (int i = -warmUp; i < count; i++) {
                byte[] value = new byte[size];
                long begin = System.nanoTime();
                producer.send(new ProducerRecord<>(topic, value)).get();
                int arrived = 0;
                while (arrived == 0) {
                    arrived = consumer.poll(POLL).count();
                }
                long elapsed = System.nanoTime() - begin;
                if (arrived != 1) {
                    throw new IllegalStateException(arrived + " records where one was sent");
                }
                if (i >= 0) {
                    nanos[i] = elapsed;
                }
            }
            Arrays.sort(nanos);
            System.out.printf(Locale.ROOT, "{\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f}%n",
                percentile(nanos, 0.5), percentile(nanos, 0.99), percentile(nanos, 0.999));
        }
    }

    private static double percentile(long[] sorted, double fraction) {
        return sorted[(int) (sorted.length * fraction)] / 1e6;
    }

    private static long total(Map<TopicPartition, Long> offsets) {
        return offsets.values().stream().mapToLong(Long::longValue).sum();
    }

    private static List<TopicPartition> partitions(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        return consumer.partitionsFor(topic).stream()
            .map(info -> new TopicPartition(info.topic(), info.partition()))
            .toList();
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String fetchWaitMs) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("auto.offset.reset", "earliest");
        properties.put("fetch.max.wait.ms", fetchWaitMs);
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String acks) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("acks", acks);
        properties.put("linger.ms", "0");
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }
}
