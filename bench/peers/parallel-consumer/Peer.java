import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.CommitMode;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.vertx.VertxParallelStreamProcessor;
import io.vertx.core.Future;
import io.vertx.core.buffer.Buffer;
import io.vertx.ext.web.client.HttpResponse;
import io.vertx.ext.web.client.WebClient;
import io.vertx.ext.web.client.predicate.ResponsePredicate;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * {@code Peer BROKERS TOPIC GROUP URLS IN_FLIGHT TIMEOUT_MS} posts the value of each record to the URL of the
 * record's destination. It uses Confluent's parallel consumer with Vert.x, as its manual shows it. The records
 * are posted in no order, because this is the fastest way. By default, the library tries a failed request
 * again after a second, for ever. The program doesn't parse or sign anything.
 *
 * <p>URLS is a file with one URL on each line. The header source-id of a record is "source-N". Its URL is on
 * line N, counted from 0.
 */
public final class Peer {
  /** The program is suspended while others have their turns. The session is longer, as for the worker. */
  private static final int SESSION_TIMEOUT_MS = 120_000;

  private static final String SOURCE_PREFIX = "source-";

  private final List<String> urls;
  private final int timeoutMs;

  private Peer(List<String> urls, int timeoutMs) {
    this.urls = urls;
    this.timeoutMs = timeoutMs;
  }

  public static void main(String[] args) throws IOException, InterruptedException {
    String topic = args[1];
    Peer peer = new Peer(Files.readAllLines(Path.of(args[3])), Integer.parseInt(args[5]));
    var options =
        ParallelConsumerOptions.<byte[], byte[]>builder()
            .ordering(ProcessingOrder.UNORDERED)
            .maxConcurrency(Integer.parseInt(args[4]))
            .commitMode(CommitMode.PERIODIC_CONSUMER_ASYNCHRONOUS)
            .defaultMessageRetryDelay(Duration.ofSeconds(1))
            .consumer(consumerOf(args[0], args[2]))
            .build();
    var processor = VertxParallelStreamProcessor.<byte[], byte[]>createEosStreamProcessor(options);
    processor.subscribe(List.of(topic));
    processor.vertxHttpWebClient(
        (client, context) -> peer.post(client, context.getSingleConsumerRecord()), posted -> {});
    Thread.currentThread().join();
  }

  private static Consumer<byte[], byte[]> consumerOf(String brokers, String group) {
    return new KafkaConsumer<>(
        Map.of(
            "bootstrap.servers", brokers,
            "group.id", group,
            "session.timeout.ms", SESSION_TIMEOUT_MS,
            "auto.offset.reset", "earliest",
            "enable.auto.commit", false),
        new ByteArrayDeserializer(),
        new ByteArrayDeserializer());
  }

  private Future<HttpResponse<Buffer>> post(WebClient client, ConsumerRecord<byte[], byte[]> record) {
    return client
        .postAbs(urls.get(destinationOf(record)))
        .timeout(timeoutMs)
        .expect(ResponsePredicate.SC_SUCCESS)
        .putHeader("content-type", "application/json")
        .sendBuffer(Buffer.buffer(record.value()));
  }

  private static int destinationOf(ConsumerRecord<byte[], byte[]> record) {
    byte[] source = record.headers().lastHeader("source-id").value();
    return Integer.parseInt(new String(source, StandardCharsets.UTF_8).substring(SOURCE_PREFIX.length()));
  }
}
