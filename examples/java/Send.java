// Sends a message to the gateway, without packages (Java 17):  SLUICE_URL=http://127.0.0.1:8080 WRITE_KEY=shop-write-key java Send.java
import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Base64;
import java.util.UUID;

public class Send {
  public static void main(String[] args) throws Exception {
    // Keep the id if you send the message again: Sluice then drops the repeat.
    var messageId = UUID.randomUUID().toString();
    var message = """
        {"messageId": "%s", "userId": "u1", "event": "Order Completed",
         "properties": {"orderId": "order-4711", "total": 30}}""".formatted(messageId);
    var login = Base64.getEncoder().encodeToString((System.getenv("WRITE_KEY") + ":").getBytes(UTF_8));
    var request = HttpRequest.newBuilder(URI.create(System.getenv("SLUICE_URL") + "/v1/track"))
        .header("Authorization", "Basic " + login)
        .header("Content-Type", "application/json")
        .POST(BodyPublishers.ofString(message))
        .build();
    var response = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
    // 200 means that Kafka has it. After 429, 5xx or no answer, send it again later.
    if (response.statusCode() != 200) throw new IllegalStateException(response.statusCode() + ": " + response.body());
    System.out.println(messageId);
  }
}
