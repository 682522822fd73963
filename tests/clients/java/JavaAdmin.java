import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ReplicaInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;

/** Kafka's Admin client, driven by JSON as JavaClient is. A failure answers {"error": name, "message": text}. */
public final class JavaAdmin {
    @FunctionalInterface
    private interface Command {
        JsonNode run(Admin admin, JsonNode request) throws ExecutionException, InterruptedException;
    }

    private static final Map<String, Command> COMMANDS = Map.ofEntries(
        Map.entry("create-topic", JavaAdmin::createTopic),
        Map.entry("describe-topic", JavaAdmin::describeTopic),
        Map.entry("list-topics", JavaAdmin::listTopics),
        Map.entry("delete-topic", JavaAdmin::deleteTopic),
        Map.entry("delete-topic-id", JavaAdmin::deleteTopicId),
        Map.entry("create-partitions", JavaAdmin::createPartitions),
        Map.entry("describe-configs", JavaAdmin::describeConfigs),
        Map.entry("alter-configs", JavaAdmin::alterConfigs),
        Map.entry("list-config-resources", JavaAdmin::listConfigResources),
        Map.entry("list-offsets", JavaAdmin::listOffsets),
        Map.entry("delete-records", JavaAdmin::deleteRecords),
        Map.entry("describe-cluster", JavaAdmin::describeCluster),
        Map.entry("describe-log-dirs", JavaAdmin::describeLogDirs),
        Map.entry("describe-producers", JavaAdmin::describeProducers));

    public static void main(String[] args) throws Exception {
        JsonNode request = JavaClient.JSON.readTree(System.in);
        JsonNode answer;
        try (Admin admin = Admin.create(JavaClient.config(request))) {
            answer = COMMANDS.get(args[0]).run(admin, request);
        } catch (ExecutionException failure) {
            answer = node().put("error", failure.getCause().getClass().getSimpleName())
                .put("message", failure.getCause().getMessage());
        }
        System.out.print(JavaClient.JSON.writeValueAsString(answer));
    }

    private static JsonNode createTopic(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        String name = request.get("topic").asText();
        NewTopic topic = newTopic(name, request).configs(texts(request.get("configs")));
        CreateTopicsOptions options = new CreateTopicsOptions().validateOnly(request.get("validate_only").asBoolean());
        CreateTopicsResult result = admin.createTopics(List.of(topic), options);
        result.all().get();
        ObjectNode answer = node();
        answer.put("partitions", result.numPartitions(name).get());
        answer.put("replication_factor", result.replicationFactor(name).get());
        answer.put("topic_id", result.topicId(name).get().toString());
        answer.set("configs", entries(result.config(name).get()));
        return answer;
    }

    private static NewTopic newTopic(String name, JsonNode request) {
        JsonNode assignments = request.get("assignments");
        if (assignments.isNull()) {
            return new NewTopic(name, request.get("partitions").asInt(), (short) request.get("replication_factor").asInt());
        }
        Map<Integer, List<Integer>> replicas = new HashMap<>();
        for (int partition = 0; partition < assignments.size(); partition++) {
            List<Integer> brokers = new ArrayList<>();
            assignments.get(partition).forEach(broker -> brokers.add(broker.asInt()));
            replicas.put(partition, brokers);
        }
        return new NewTopic(name, replicas);
    }

    private static JsonNode describeTopic(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        String name = request.get("topic").asText();
        TopicDescription topic = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
        ObjectNode answer = node().put("topic_id", topic.topicId().toString()).put("internal", topic.isInternal());
        ArrayNode partitions = answer.putArray("partitions");
        for (TopicPartitionInfo partition : topic.partitions()) {
            partitions.addObject().put("partition", partition.partition()).put("leader", partition.leader().id())
                .put("replicas", partition.replicas().size()).put("isr", partition.isr().size());
        }
        return answer;
    }

    private static JsonNode listTopics(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        ArrayNode answer = JavaClient.JSON.createArrayNode();
        admin.listTopics().names().get().stream().sorted().forEach(answer::add);
        return answer;
    }

    private static JsonNode deleteTopic(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        admin.deleteTopics(List.of(request.get("topic").asText())).all().get();
        return node();
    }

    private static JsonNode deleteTopicId(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        Uuid id = Uuid.fromString(request.get("topic_id").asText());
        admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
        return node();
    }

    private static JsonNode createPartitions(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        NewPartitions total = NewPartitions.increaseTo(request.get("total").asInt());
        admin.createPartitions(Map.of(request.get("topic").asText(), total)).all().get();
        return node();
    }

    private static JsonNode describeConfigs(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        ConfigResource resource = resource(request);
        return entries(admin.describeConfigs(List.of(resource), options).all().get().get(resource));
    }

    private static JsonNode alterConfigs(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        List<AlterConfigOp> changes = new ArrayList<>();
        for (JsonNode change : request.get("changes")) {
            ConfigEntry entry = new ConfigEntry(change.get(1).asText(), change.get(2).asText());
            changes.add(new AlterConfigOp(entry, AlterConfigOp.OpType.valueOf(change.get(0).asText())));
        }
        admin.incrementalAlterConfigs(Map.of(resource(request), changes)).all().get();
        return node();
    }

    private static JsonNode listConfigResources(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        ArrayNode answer = JavaClient.JSON.createArrayNode();
        Set<ConfigResource.Type> types = Set.of(ConfigResource.Type.TOPIC, ConfigResource.Type.BROKER);
        for (ConfigResource resource : admin.listConfigResources(types, new ListConfigResourcesOptions()).all().get()) {
            answer.addArray().add(resource.type().name()).add(resource.name());
        }
        return answer;
    }

    private static JsonNode listOffsets(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        TopicPartition partition = partition(request);
        JsonNode spec = request.get("spec");
        ListOffsetsResultInfo found = admin.listOffsets(Map.of(partition, spec(spec))).partitionResult(partition).get();
        return node().put("offset", found.offset()).put("timestamp_ms", found.timestamp());
    }

    private static OffsetSpec spec(JsonNode spec) {
        return switch (spec.asText()) {
            case "earliest" -> OffsetSpec.earliest();
            case "latest" -> OffsetSpec.latest();
            case "max-timestamp" -> OffsetSpec.maxTimestamp();
            case "earliest-local" -> OffsetSpec.earliestLocal();
            default -> OffsetSpec.forTimestamp(spec.asLong());
        };
    }

    private static JsonNode deleteRecords(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        TopicPartition partition = partition(request);
        RecordsToDelete before = RecordsToDelete.beforeOffset(request.get("before").asLong());
        return node().put("low_watermark",
            admin.deleteRecords(Map.of(partition, before)).lowWatermarks().get(partition).get().lowWatermark());
    }

    private static JsonNode describeCluster(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        DescribeClusterResult result = admin.describeCluster();
        ObjectNode answer = node().put("cluster_id", result.clusterId().get()).put("controller", result.controller().get().id());
        ArrayNode brokers = answer.putArray("brokers");
        result.nodes().get().forEach(broker -> brokers.addObject().put("id", broker.id()).put("port", broker.port()));
        return answer;
    }

    private static JsonNode describeLogDirs(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        ObjectNode answer = node();
        int broker = request.get("broker").asInt();
        Map<String, LogDirDescription> directories = admin.describeLogDirs(List.of(broker)).allDescriptions().get().get(broker);
        for (LogDirDescription directory : directories.values()) {
            for (Map.Entry<TopicPartition, ReplicaInfo> replica : directory.replicaInfos().entrySet()) {
                answer.put(replica.getKey().toString(), replica.getValue().size());
            }
        }
        return answer;
    }

    private static JsonNode describeProducers(Admin admin, JsonNode request) throws ExecutionException, InterruptedException {
        ArrayNode answer = JavaClient.JSON.createArrayNode();
        TopicPartition partition = partition(request);
        for (ProducerState producer :
                admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers()) {
            answer.addObject().put("producer_id", producer.producerId()).put("last_sequence", producer.lastSequence());
        }
        return answer;
    }

    private static ObjectNode entries(Config config) {
        Map<String, ConfigEntry> sorted = new TreeMap<>();
        config.entries().forEach(entry -> sorted.put(entry.name(), entry));
        ObjectNode answer = node();
        sorted.forEach((name, entry) -> {
            ObjectNode shown = answer.putObject(name).put("value", entry.value()).put("source", entry.source().name())
                .put("read_only", entry.isReadOnly()).put("sensitive", entry.isSensitive()).put("type", String.valueOf(entry.type()))
                .put("documentation", entry.documentation());
            ArrayNode synonyms = shown.putArray("synonyms");
            entry.synonyms().forEach(synonym -> synonyms.addArray().add(synonym.name()).add(synonym.source().name()));
        });
        return answer;
    }

    private static ConfigResource resource(JsonNode request) {
        return new ConfigResource(ConfigResource.Type.valueOf(request.get("type").asText()), request.get("name").asText());
    }

    private static TopicPartition partition(JsonNode request) {
        return new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
    }

    private static Map<String, String> texts(JsonNode node) {
        Map<String, String> texts = new HashMap<>();
        node.properties().forEach(entry -> texts.put(entry.getKey(), entry.getValue().asText()));
        return texts;
    }

    private static ObjectNode node() {
        return JavaClient.JSON.createObjectNode();
    }
}
