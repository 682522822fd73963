import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Kafka's own client as a rider through failovers: arguments, input and output are those of cluster/rider.py. */
public final class JavaRider {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = System.out;
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long PAUSE_MS = 10;
    private static final int PARTITIONS = 2;

    private final String bootstrap;
    private final String topic;
    private final String name;
    private final CountDownLatch stopping = new CountDownLatch(1);
    private final CountDownLatch ending = new CountDownLatch(1);

    private JavaRider(String bootstrap, String topic, String name) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.name = name;
    }

    public static void main(String[] args) throws Exception {
        JavaRider rider = new JavaRider(args[0], args[1], args[2]);
        Thread listening = new Thread(rider::listen);
        listening.setDaemon(true);
        listening.start();
        Thread reading = new Thread(rider::read);
        reading.start();
        rider.produce();
        reading.join();
    }

    private void listen() {
        try {
            int letter = System.in.read();
            while (letter >= 0 && letter != '\n') {
                letter = System.in.read();
            }
            stopping.countDown();
            while (letter >= 0) {
                letter = System.in.read();
            }
        } catch (IOException gone) {
            stopping.countDown();
        }
        ending.countDown();
    }

    private void produce() throws InterruptedException {
        say(line("producer").put("producer", name).put("ordered", true).put("repeats", false));
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "acks", "all");
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; !stopping.await(PAUSE_MS, TimeUnit.MILLISECONDS); number++) {
                String value = "%s:%06d".formatted(name, number);
                int partition = number % PARTITIONS;
                say(line("sent").put("producer", name).put("topic", topic).put("partition", partition)
                    .put("value", value));
                byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
                producer.send(new ProducerRecord<>(topic, partition, null, bytes), (place, failure) -> {
                    if (failure != null) {
                        error(failure);
                    } else {
                        say(line("acknowledged").put("producer", name).put("value", value)
                            .put("offset", place.offset()));
                    }
                });
            }
            producer.flush();
        } catch (RuntimeException failure) {
            error(failure);
        }
        say(line("stopped").put("rider", name));
    }

    private void read() {
        Map<String, Object> config =
            Map.of("bootstrap.servers", bootstrap, "group.id", name, "auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (ending.getCount() > 0) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    say(line("read").put("reader", name).put("topic", topic).put("partition", record.partition())
                        .put("offset", record.offset())
                        .put("value", new String(record.value(), StandardCharsets.UTF_8)));
                }
            }
        } catch (RuntimeException failure) {
            error(failure);
        }
    }

    private void error(Exception failure) {
        say(line("error").put("rider", name).put("text", failure.toString()));
    }

    private static ObjectNode line(String kind) {
        return JSON.createObjectNode().put("kind", kind);
    }

    private static void say(ObjectNode line) {
        synchronized (OUT) {
            OUT.println(line);
            OUT.flush();
        }
    }
}
