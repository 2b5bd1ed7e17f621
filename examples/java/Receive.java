// A receiver of webhooks, without packages (Java 17):  WEBHOOK_SECRET=change-me PORT=3000 java Receive.java
import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receive {
  static final byte[] secret = System.getenv("WEBHOOK_SECRET").getBytes(UTF_8);
  // In production: a table with a unique key, because a restart forgets this.
  static final Set<String> seen = ConcurrentHashMap.newKeySet();

  public static void main(String[] args) throws IOException {
    var port = Integer.parseInt(System.getenv().getOrDefault("PORT", "3000"));
    var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext("/", Receive::receive);
    server.start();
  }

  static void receive(HttpExchange exchange) throws IOException {
    try (exchange) {
      var body = exchange.getRequestBody().readAllBytes();
      if (!isOurs(body, exchange.getRequestHeaders().getFirst("X-Signature"))) {
        exchange.sendResponseHeaders(401, -1);
        return;
      }
      // The header names the message, so that this example needs no parser of JSON. It isn't signed:
      // take the messageId of the body if you parse it.
      var id = exchange.getRequestHeaders().getFirst("X-Sluice-Message-Id");
      // In production: put the body into a queue, and work there.
      if (seen.add(id)) System.out.println("message " + id);
      exchange.sendResponseHeaders(200, -1);
    }
  }

  static boolean isOurs(byte[] body, String signature) {
    try {
      var mac = Mac.getInstance("HmacSHA1");
      mac.init(new SecretKeySpec(secret, "HmacSHA1"));
      return MessageDigest.isEqual(mac.doFinal(body), HexFormat.of().parseHex(signature));
    } catch (IllegalArgumentException | NullPointerException noSignature) {
      return false;
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }
}
